//! Finds mates in one.

use super::after;
use shakmaty::attacks::{bishop_attacks, knight_attacks, pawn_attacks, rook_attacks};
use shakmaty::{Bitboard, Chess, Move, Position, Role};

/// Returns the first of these legal moves that gives checkmate.
pub fn mate_in_one(position: &Chess, moves: &[Move]) -> Option<Move> {
    let checks = Checks::new(position)?;
    moves
        .iter()
        .copied()
        .find(|&mv| checks.may_be_given_by(mv) && after(position, mv).is_checkmate())
}

/// The squares from which each kind of piece would check the enemy king. They rule out nearly all
/// moves without playing them.
pub struct Checks {
    knight: Bitboard,
    diagonal: Bitboard,
    straight: Bitboard,
    pawn: Bitboard,
    /// Own pieces that may block the line between the enemy king and one of our sliders.
    screens: Bitboard,
}

impl Checks {
    /// Computes the squares. Returns `None` if the enemy has no king.
    pub fn new(position: &Chess) -> Option<Checks> {
        let (board, turn) = (position.board(), position.turn());
        let king = board.king_of(!turn)?;
        let (occupied, own) = (board.occupied(), board.by_color(turn));
        let diagonal = bishop_attacks(king, occupied);
        let straight = rook_attacks(king, occupied);
        let (diagonal_screens, straight_screens) = (diagonal & own, straight & own);
        let beyond_diagonal = bishop_attacks(king, occupied ^ diagonal_screens);
        let beyond_straight = rook_attacks(king, occupied ^ straight_screens);
        let mut screens = Bitboard::EMPTY;
        if (beyond_diagonal & own & board.bishops_and_queens()).any() {
            screens |= diagonal_screens;
        }
        if (beyond_straight & own & board.rooks_and_queens()).any() {
            screens |= straight_screens;
        }
        Some(Checks {
            knight: knight_attacks(king),
            diagonal,
            straight,
            pawn: pawn_attacks(!turn, king),
            screens,
        })
    }

    /// Returns whether a legal move might give check. Only playing the move shows whether it does.
    pub fn may_be_given_by(&self, mv: Move) -> bool {
        let Move::Normal {
            role,
            from,
            to,
            promotion: None,
            ..
        } = mv
        else {
            return true;
        };
        let direct = match role {
            Role::Pawn => self.pawn,
            Role::Knight => self.knight,
            Role::Bishop => self.diagonal,
            Role::Rook => self.straight,
            Role::Queen => self.diagonal | self.straight,
            Role::King => Bitboard::EMPTY,
        };
        direct.contains(to) || self.screens.contains(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use shakmaty::CastlingMode;

    /// Finds mates by playing every move.
    fn mates(position: &Chess) -> Vec<Move> {
        let mut moves: Vec<Move> = position.legal_moves().into_iter().collect();
        moves.retain(|&mv| {
            let mut after = position.clone();
            after.play_unchecked(mv);
            after.is_checkmate()
        });
        moves
    }

    #[test]
    fn mates_of_every_kind_are_seen() {
        for (fen, mv) in [
            ("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", "a1a8"),
            // A smothered mate.
            ("6rk/6pp/8/6N1/8/8/8/7K w - - 0 1", "g5f7"),
            // A mate by promotion.
            ("6k1/P4ppp/8/8/8/8/8/7K w - - 0 1", "a7a8q"),
            // A mate by castling.
            ("8/8/8/8/8/8/7R/R3K1k1 w Q - 0 1", ""),
            // A double check, including a discovered one.
            ("3qkb2/3ppp2/8/8/4N3/8/8/K3R3 w - - 0 1", "e4d6"),
            ("8/8/8/8/8/8/8/K6k w - - 0 1", ""),
        ] {
            let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
            let moves = game.position().legal_moves();
            let found = mate_in_one(game.position(), &moves);
            assert_eq!(found, mates(game.position()).first().copied(), "{fen}");
            if let Some(found) = found.filter(|_| !mv.is_empty()) {
                assert_eq!(game.format_move(found), mv);
            }
        }
    }

    /// In thousands of random positions with exposed kings, no mate is ruled out.
    #[test]
    fn nothing_is_missed() {
        let mut state = 1u64;
        let mut draw = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut seen = 0;
        for _ in 0..400 {
            let mut position = Chess::default();
            for _ in 0..120 {
                let moves = position.legal_moves();
                if moves.is_empty() {
                    break;
                }
                let expected = mates(&position);
                let found = mate_in_one(&position, &moves);
                assert_eq!(found, expected.first().copied());
                seen += usize::from(found.is_some());
                position.play_unchecked(moves[draw(moves.len())]);
            }
        }
        assert!(seen > 50, "{seen}");
    }
}
