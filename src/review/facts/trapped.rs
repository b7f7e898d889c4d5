//! A trapped piece, which is attacked and is lost on every square to which it can move.

use super::board::{after, passed, value};
use super::words::{piece, san};
use super::{Fact, Topic, best_capture};
use shakmaty::{Chess, Move, Position, Role, Square};

/// Returns the piece, other than a pawn, that `mv` leaves attacked and without a safe square.
pub fn trapped_piece(position: &Chess, mv: Move) -> Option<Fact> {
    let next = after(position, mv);
    let threat = passed(&next)?;
    let board = next.board();
    let is_trapped = |&square: &Square| {
        let role = board.role_at(square);
        !matches!(role, None | Some(Role::Pawn | Role::King))
            && best_capture(&threat, square) >= 2
            && has_no_safe_square(&next, square)
    };
    let pieces = board.by_color(next.turn()).into_iter();
    let trapped = pieces.filter(is_trapped);
    let square = trapped.max_by_key(|&square| board.role_at(square).map(value))?;
    let text = format!(
        "{} attacks {}, which has no safe square.",
        san(position, mv),
        piece(board, square)
    );
    Some(Fact::new(Topic::Trapped, text, [square]))
}

/// Returns whether each move of the piece on a square loses at least two pawns' worth through
/// captures on its target square.
fn has_no_safe_square(position: &Chess, square: Square) -> bool {
    let moves = position.legal_moves();
    let mut own = moves.iter().filter(|mv| mv.from() == Some(square));
    own.all(|&mv| {
        let captured = mv.capture().map_or(0, value);
        let next = after(position, mv);
        !next.is_checkmate() && best_capture(&next, mv.to()) - captured >= 2
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn trapped_pieces() {
        check(
            trapped_piece,
            &[
                // A greedy bishop trapped in the corner.
                (
                    "r5k1/B1p5/1p6/8/8/8/8/6K1 b - - 0 1",
                    "Kf7",
                    "Kf7 attacks the bishop on a7, which has no safe square.",
                ),
                // The Noah's Ark trap.
                (
                    "6k1/8/p7/1pp5/8/1B6/P1P5/6K1 b - - 0 1",
                    "c4",
                    "c4 attacks the bishop on b3, which has no safe square.",
                ),
                ("N6r/pp1k4/8/8/8/8/8/6K1 b - - 0 1", "Rg8+", ""),
                (
                    "N6r/pp1k4/8/8/8/8/8/K7 b - - 0 1",
                    "Rg8",
                    "Rg8 attacks the knight on a8, which has no safe square.",
                ),
                (
                    "7k/5ppB/8/8/8/8/8/6K1 b - - 0 1",
                    "g6",
                    "g6 attacks the bishop on h7, which has no safe square.",
                ),
            ],
        );
    }

    #[test]
    fn pieces_that_are_not() {
        check(
            trapped_piece,
            &[
                // No fact: not attacked yet; the piece has an escape; only a pawn is attacked.
                ("5k2/5ppB/8/8/8/8/8/6K1 b - - 0 1", "g6", ""),
                ("r5k1/B1p5/8/8/8/8/8/6K1 b - - 0 1", "Kf7", ""),
                ("6k1/B1p5/1p6/8/8/8/7r/6K1 b - - 0 1", "Rh8", ""),
                ("6k1/8/8/8/8/8/r4P2/6K1 b - - 0 1", "Kf7", ""),
            ],
        );
    }
}
