//! Chess relations between two squares of a position.

use serde::Serialize;
use shakmaty::{Bitboard, Board, Chess, Color, Position, Role, Square, attacks};

/// A relation between two squares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The square itself.
    Identity,
    /// Squares on the same rank or file.
    RookLine,
    /// Squares on the same diagonal.
    BishopLine,
    /// Squares that are a knight's move away.
    KnightMove,
    /// Neighbouring squares.
    KingMove,
    /// Squares with pieces of the side to move.
    OwnPieces,
    /// Squares with pieces of the opponent.
    EnemyPieces,
    /// Enemy pieces that the square's piece attacks.
    Attacks,
    /// Enemy pieces that attack the square's piece.
    AttackedBy,
    /// Pieces of the same side that the square's piece protects.
    Defends,
    /// Pieces of the same side that protect the square's piece.
    DefendedBy,
    /// Pawns of either side on the same or a neighbouring file, if the square has a pawn.
    PawnStructure,
}

impl Relation {
    /// All relations.
    pub const ALL: [Relation; 12] = [
        Relation::Identity,
        Relation::RookLine,
        Relation::BishopLine,
        Relation::KnightMove,
        Relation::KingMove,
        Relation::OwnPieces,
        Relation::EnemyPieces,
        Relation::Attacks,
        Relation::AttackedBy,
        Relation::Defends,
        Relation::DefendedBy,
        Relation::PawnStructure,
    ];

    /// Returns the squares that are in this relation to `square`.
    pub fn squares(self, position: &Chess, square: Square) -> Bitboard {
        let (board, turn) = (position.board(), position.turn());
        let none = Bitboard::EMPTY;
        let color = board.color_at(square);
        let side = |color: Option<Color>| color.map_or(none, |color| board.by_color(color));
        match self {
            Relation::Identity => square.into(),
            Relation::RookLine => attacks::rook_attacks(square, none),
            Relation::BishopLine => attacks::bishop_attacks(square, none),
            Relation::KnightMove => attacks::knight_attacks(square),
            Relation::KingMove => attacks::king_attacks(square),
            Relation::OwnPieces => board.by_color(turn),
            Relation::EnemyPieces => board.by_color(!turn),
            Relation::Attacks => board.attacks_from(square) & side(color.map(|it| !it)),
            Relation::AttackedBy => attackers(board, square, color.map(|it| !it)),
            Relation::Defends => board.attacks_from(square) & side(color),
            Relation::DefendedBy => attackers(board, square, color),
            Relation::PawnStructure => pawns(board, square),
        }
    }
}

/// Returns the pieces of a colour that attack a square, or none if the colour is `None`.
fn attackers(board: &Board, square: Square, color: Option<Color>) -> Bitboard {
    color.map_or(Bitboard::EMPTY, |color| {
        board.attacks_to(square, color, board.occupied())
    })
}

/// Returns the other pawns on a pawn's file and on the neighbouring files.
fn pawns(board: &Board, square: Square) -> Bitboard {
    if board.role_at(square) != Some(Role::Pawn) {
        return Bitboard::EMPTY;
    }
    let near = board
        .pawns()
        .into_iter()
        .filter(|other| *other != square && other.file().distance(square.file()) <= 1);
    near.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use shakmaty::CastlingMode;

    #[test]
    fn relations_are_those_of_the_board() {
        // White: Ke1, Ra1, Bb2, pawns a2 c2; Black: Ke8, Rh8, Nf6, pawn b7.
        let fen = "4k2r/1p6/5n2/8/8/8/PBP5/R3K3 w - - 0 1";
        let game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        let of = |relation: Relation, square: Square| -> Vec<Square> {
            relation
                .squares(game.position(), square)
                .into_iter()
                .collect()
        };
        use Square::*;
        assert_eq!(of(Relation::Attacks, B2), [F6]);
        assert_eq!(of(Relation::AttackedBy, F6), [B2]);
        assert_eq!(of(Relation::Attacks, F6), []);
        assert_eq!(of(Relation::Defends, A1), [E1, A2]);
        assert_eq!(of(Relation::DefendedBy, A2), [A1]);
        assert_eq!(of(Relation::Defends, D5), []);
        assert_eq!(of(Relation::PawnStructure, B7), [A2, C2]);
        assert_eq!(of(Relation::PawnStructure, B2), []);
        assert_eq!(of(Relation::OwnPieces, D5), [A1, E1, A2, B2, C2]);
        assert_eq!(of(Relation::EnemyPieces, A1), [F6, B7, E8, H8]);
        assert_eq!(of(Relation::Identity, D5), [D5]);
        assert_eq!(of(Relation::RookLine, D5).len(), 14);
        assert_eq!(of(Relation::BishopLine, A1).len(), 7);
        assert_eq!(of(Relation::KnightMove, A1), [C2, B3]);
        assert_eq!(of(Relation::KingMove, A1), [B1, A2, B2]);
    }
}
