//! A fork: a piece moves to a square from which it attacks two or more pieces that have to be
//! saved.

use super::board::{after, is_pinned, is_undefended, moved, passed, value};
use super::exchange::is_safe;
use super::words::{list, piece, san};
use super::{Fact, Topic};
use shakmaty::{Chess, Move, Position, Role, Square};

/// Returns the fork that `mv` gives. The targets are pieces that are worth more than the moved
/// piece, undefended pieces other than pawns, or the king. The forking piece must not be pinned,
/// and the opponent must be unable to capture it without loss.
pub fn fork(position: &Chess, mv: Move) -> Option<Fact> {
    let forker = moved(position, mv)?;
    let color = forker.piece.color;
    let next = after(position, mv);
    let board = next.board();
    let is_target = |square: Square| {
        let role = board.role_at(square)?;
        let is_worth_it = match role {
            Role::King => true,
            Role::Pawn => false,
            _ => value(role) > value(forker.piece.role) || is_undefended(board, square, !color),
        };
        is_worth_it.then_some(square)
    };
    let attacked = board.attacks_from(forker.to) & board.by_color(!color);
    let targets: Vec<Square> = attacked.into_iter().filter_map(is_target).collect();
    let old = position.board().attacks_from(forker.from);
    let is_new = targets.iter().any(|&target| !old.contains(target));
    // If no king is in check, attacked pieces can be captured.
    let can_take = |target: &Square| {
        passed(&next).is_none_or(|passed| {
            let moves = passed.legal_moves();
            let mut captures = moves.iter().filter(|mv| mv.is_capture());
            captures.any(|mv| mv.from() == Some(forker.to) && mv.to() == *target)
        })
    };
    if targets.len() < 2
        || forker.piece.role == Role::King
        || !is_new
        || next.is_checkmate()
        || is_pinned(board, forker.to, color)
        || !is_safe(&next, forker.to)
        || !targets.iter().all(can_take)
    {
        return None;
    }
    let names: Vec<String> = targets.iter().map(|&it| piece(board, it)).collect();
    let text = format!("{} forks {}.", san(position, mv), list(&names));
    Some(Fact::new(
        Topic::Fork,
        text,
        [forker.to].into_iter().chain(targets),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn forks() {
        check(
            fork,
            &[
                (
                    "r3k3/8/8/3N4/8/8/8/4K3 w - - 0 1",
                    "Nc7+",
                    "Nc7+ forks the rook on a8 and the king on e8.",
                ),
                (
                    "4k3/8/8/2r1b3/8/3PP3/8/4K3 w - - 0 1",
                    "d4",
                    "d4 forks the rook on c5 and the bishop on e5.",
                ),
                // Two undefended pieces.
                (
                    "6k1/8/8/2n3n1/8/8/8/Q3K3 w - - 0 1",
                    "Qc1",
                    "Qc1 forks the knight on c5 and the knight on g5.",
                ),
                ("4k3/8/8/1n3b2/8/8/8/Q3K3 w - - 0 1", "Qa5", ""),
                ("3qk3/8/2r5/8/4N3/8/8/4K3 w - - 0 1", "Nd6+", ""),
                ("r2qk2r/8/8/3N4/8/8/8/4K3 w - - 0 1", "Nf6+", ""),
                (
                    "2q1k3/8/8/8/4N3/8/8/4K3 w - - 0 1",
                    "Nd6+",
                    "Nd6+ forks the queen on c8 and the king on e8.",
                ),
            ],
        );
    }

    #[test]
    fn attacks_that_are_none() {
        check(
            fork,
            &[
                // No fork: the forking piece can be captured; there is only one target; both
                // targets are defended and cheaper; the forking piece is pinned; the move castles.
                ("r3kb2/3n4/8/8/4N3/8/8/4K3 w - - 0 1", "Nd6+", ""),
                ("4k3/8/8/8/4N3/8/8/4K3 w - - 0 1", "Nd6+", ""),
                ("6k1/1p3p2/2n3b1/8/8/8/8/Q3K3 w - - 0 1", "Qa6", ""),
                ("4r2k/8/8/2r1b3/8/4N3/8/4K3 w - - 0 1", "Kd1", ""),
                ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "O-O", ""),
            ],
        );
    }
}
