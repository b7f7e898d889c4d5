//! A skewer: a slider attacks a piece that has to move, and another piece stands behind it.

use super::board::{after, is_undefended, lines, moved, value};
use super::exchange::is_safe;
use super::words::{piece, san};
use super::{Fact, Topic};
use shakmaty::{Chess, Move, Position, Role, Square};

/// Returns the skewer that `mv` gives. The front piece is the king or a piece worth more than the
/// slider. The piece behind is not worth more than the front one, and is either worth more than the
/// slider or undefended. The opponent must be unable to capture the slider without loss.
pub fn skewer(position: &Chess, mv: Move) -> Option<Fact> {
    let slider = moved(position, mv)?;
    if !matches!(slider.piece.role, Role::Bishop | Role::Rook | Role::Queen) {
        return None;
    }
    let next = after(position, mv);
    let board = next.board();
    let (color, own) = (slider.piece.color, value(slider.piece.role));
    let is_skewer = |&(front, behind): &(Square, Square)| {
        let (Some(first), Some(second)) = (board.piece_at(front), board.piece_at(behind)) else {
            return false;
        };
        let must_go = first.role == Role::King || value(first.role) > own;
        // Only the front piece may defend the piece behind it.
        let falls = value(second.role) > own || is_undefended(board, behind, !color);
        first.color == !color
            && second.color == !color
            && !matches!(second.role, Role::Pawn | Role::King)
            && value(first.role) >= value(second.role)
            && must_go
            && falls
    };
    let (front, behind) = lines(board, slider.to).into_iter().find(is_skewer)?;
    if next.is_checkmate() || !is_safe(&next, slider.to) {
        return None;
    }
    let text = format!(
        "{} skewers {}: behind it stands {}.",
        san(position, mv),
        piece(board, front),
        piece(board, behind)
    );
    Some(Fact::new(Topic::Skewer, text, [slider.to, front, behind]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn skewers() {
        check(
            skewer,
            &[
                (
                    "r7/8/2k5/8/8/8/8/4KB2 w - - 0 1",
                    "Bg2+",
                    "Bg2+ skewers the king on c6: behind it stands the rook on a8.",
                ),
                ("7k/6r1/5q2/8/8/8/1P6/2B1K3 w - - 0 1", "b3", ""),
                (
                    "8/6r1/5q2/7k/8/8/8/1KB5 w - - 0 1",
                    "Bb2",
                    "Bb2 skewers the queen on f6: behind it stands the rook on g7.",
                ),
                (
                    "4q3/8/8/4k3/8/8/8/R5K1 w - - 0 1",
                    "Re1+",
                    "Re1+ skewers the king on e5: behind it stands the queen on e8.",
                ),
                ("8/8/8/k2n4/8/8/8/5KQ1 w - - 0 1", "Qg5", ""),
                (
                    "8/8/8/1n2k3/8/8/8/5KQ1 w - - 0 1",
                    "Qg5+",
                    "Qg5+ skewers the king on e5: behind it stands the knight on b5.",
                ),
            ],
        );
    }

    #[test]
    fn lines_that_are_none() {
        check(
            skewer,
            &[
                // No skewer: a pawn is behind; a defended knight is behind; the bishop can be
                // captured; nothing is behind; the piece is not a slider.
                ("8/1p6/2k5/8/8/8/8/4KB2 w - - 0 1", "Bg2+", ""),
                ("8/1n6/2k5/8/8/8/8/4KB2 w - - 0 1", "Bg2+", ""),
                ("r7/8/2k5/8/8/8/6pr/4KB2 w - - 0 1", "Bxg2+", ""),
                ("8/8/2k5/8/8/8/8/4KB2 w - - 0 1", "Bg2+", ""),
                ("r7/8/2k5/8/8/8/8/4KN2 w - - 0 1", "Ng3", ""),
            ],
        );
    }
}
