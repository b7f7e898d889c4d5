//! Moves in 16 bits.

use shakmaty::{Board, Move, Role, Square};

/// Packs a move in 16 bits: origin, target, and a tag for special moves.
pub(crate) fn pack_move(mv: Move) -> u16 {
    let (from, to, kind) = match mv {
        Move::Normal {
            from,
            to,
            promotion,
            ..
        } => (from, to, promotion.map_or(0, u16::from)),
        Move::Castle { king, rook } => (king, rook, CASTLE),
        Move::EnPassant { from, to } => (from, to, EN_PASSANT),
        // Drops belong to other variants; shakmaty never generates one here.
        Move::Put { to, .. } => (to, to, 0),
    };
    u16::from(u8::from(from)) | u16::from(u8::from(to)) << 6 | kind << 12
}

const CASTLE: u16 = 14;
const EN_PASSANT: u16 = 15;

/// Returns the move that [`pack_move`] packed, on the board where it was legal.
pub(crate) fn unpack_move(packed: u16, board: &Board) -> Move {
    let from = Square::new(u32::from(packed) & 63);
    let to = Square::new(u32::from(packed) >> 6 & 63);
    match packed >> 12 {
        CASTLE => Move::Castle {
            king: from,
            rook: to,
        },
        EN_PASSANT => Move::EnPassant { from, to },
        promotion => Move::Normal {
            role: board.role_at(from).unwrap_or(Role::Pawn),
            from,
            capture: board.role_at(to),
            to,
            promotion: Role::try_from(promotion).ok(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use shakmaty::{CastlingMode, Position};

    #[test]
    fn every_kind_of_move_survives_packing() {
        for fen in [
            "r3k2r/pPppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
            "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        ] {
            let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            for mv in game.position().legal_moves() {
                assert_eq!(unpack_move(pack_move(mv), game.position().board()), mv);
            }
        }
    }
}
