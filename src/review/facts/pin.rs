//! A pin: a slider moves to a square from which an enemy piece stands between it and a more
//! valuable one.

use super::board::{after, lines, moved, value};
use super::exchange::is_safe;
use super::words::{piece, san};
use super::{Fact, Topic};
use shakmaty::{Chess, Move, Position, Role};

/// Returns the pin that `mv` gives. A piece other than a pawn is pinned to the king, or to a piece
/// that is worth more than both it and the slider. The opponent must be unable to capture the
/// slider without loss.
pub fn pin(position: &Chess, mv: Move) -> Option<Fact> {
    let slider = moved(position, mv)?;
    if !matches!(slider.piece.role, Role::Bishop | Role::Rook | Role::Queen) {
        return None;
    }
    let next = after(position, mv);
    let board = next.board();
    let color = slider.piece.color;
    let is_pin = |&(first, behind): &(_, _)| {
        let (Some(first), Some(behind)) = (board.piece_at(first), board.piece_at(behind)) else {
            return false;
        };
        let is_worth_more =
            value(behind.role) > value(first.role) && value(behind.role) > value(slider.piece.role);
        first.color == !color
            && behind.color == !color
            && !matches!(first.role, Role::Pawn | Role::King)
            && (behind.role == Role::King || is_worth_more)
    };
    let (first, behind) = lines(board, slider.to).into_iter().find(is_pin)?;
    if !is_safe(&next, slider.to) {
        return None;
    }
    let text = format!(
        "{} pins {} to {}.",
        san(position, mv),
        piece(board, first),
        piece(board, behind)
    );
    Some(Fact::new(Topic::Pin, text, [slider.to, first, behind]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn pins() {
        check(
            pin,
            &[
                (
                    "4k3/8/2n5/8/8/8/8/4KB2 w - - 0 1",
                    "Bb5",
                    "Bb5 pins the knight on c6 to the king on e8.",
                ),
                (
                    "3qk3/8/5n2/8/8/8/8/2B1K3 w - - 0 1",
                    "Bg5",
                    "Bg5 pins the knight on f6 to the queen on d8.",
                ),
                ("4k3/8/4q3/8/8/8/8/R5K1 w - - 0 1", "Re1", ""),
                (
                    "4k3/4b3/8/8/8/8/8/R5K1 w - - 0 1",
                    "Re1",
                    "Re1 pins the bishop on e7 to the king on e8.",
                ),
                ("1k6/8/1r6/8/8/8/8/3Q2K1 w - - 0 1", "Qb3", ""),
                (
                    "1k6/8/1n6/8/8/8/8/3Q2K1 w - - 0 1",
                    "Qb3",
                    "Qb3 pins the knight on b6 to the king on b8.",
                ),
            ],
        );
    }

    #[test]
    fn lines_that_are_none() {
        check(
            pin,
            &[
                // No pin: a pawn is in front; nothing is behind; the piece behind is cheaper; a
                // friendly piece is in front; the bishop can be captured.
                ("4k3/3p4/8/8/8/8/8/4KB2 w - - 0 1", "Bb5", ""),
                ("7k/8/2n5/8/8/8/8/4KB2 w - - 0 1", "Bb5", ""),
                ("4b2k/8/2n5/8/8/8/8/4KB2 w - - 0 1", "Bb5", ""),
                ("4k3/8/2N5/8/8/8/8/4KB2 w - - 0 1", "Bb5", ""),
                ("4k3/8/p1n5/8/8/8/8/4KB2 w - - 0 1", "Bb5", ""),
                ("4k3/8/2n5/8/8/8/8/4KB2 w - - 0 1", "Kd1", ""),
            ],
        );
    }
}
