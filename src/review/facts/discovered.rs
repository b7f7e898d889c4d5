//! A discovered attack: a piece moves off a line along which a slider behind it attacks.

use super::board::{after, is_undefended, moved, value};
use super::words::{piece, san};
use super::{Fact, Topic};
use shakmaty::attacks::between;
use shakmaty::{Chess, Move, Position, Role, Square};

/// Returns the attack that `mv` discovers by another piece. The target is the king, a piece worth
/// more than the slider, or an undefended piece other than a pawn.
pub fn discovered_attack(position: &Chess, mv: Move) -> Option<Fact> {
    let mover = moved(position, mv)?;
    let color = mover.piece.color;
    let next = after(position, mv);
    let (old, board) = (position.board(), next.board());
    let sliders = board.by_color(color) & board.sliders();
    let uncovered = |slider: Square| {
        let new = board.attacks_from(slider) & board.by_color(!color) & !old.attacks_from(slider);
        let is_target = |&target: &Square| {
            let role = board.role_at(target).unwrap_or(Role::Pawn);
            let is_worth_it = value(role) > value(board.role_at(slider).unwrap_or(Role::King))
                || role != Role::Pawn && is_undefended(board, target, !color);
            is_worth_it && between(slider, target).contains(mover.from)
        };
        let targets = new.into_iter().filter(is_target);
        let best = targets.max_by_key(|&target| board.role_at(target).map(value))?;
        Some((slider, best))
    };
    let found = sliders.into_iter().filter(|&slider| slider != mover.to);
    let found = found.filter_map(uncovered);
    let (slider, target) = found.max_by_key(|&(_, target)| board.role_at(target).map(value))?;
    if next.is_checkmate() {
        return None;
    }
    let attacker = piece(board, slider);
    let text = match board.role_at(target) {
        Some(Role::King) => {
            format!("{} discovers check from {attacker}.", san(position, mv))
        }
        _ => format!(
            "{} uncovers the attack of {attacker} on {}.",
            san(position, mv),
            piece(board, target)
        ),
    };
    Some(Fact::new(Topic::Discovered, text, [slider, target]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn discovered_attacks() {
        check(
            discovered_attack,
            &[
                (
                    "4k3/8/8/8/4N3/8/8/4R1K1 w - - 0 1",
                    "Nf6+",
                    "Nf6+ discovers check from the rook on e1.",
                ),
                (
                    "7k/4q3/8/8/4N3/8/8/4R1K1 w - - 0 1",
                    "Ng5",
                    "Ng5 uncovers the attack of the rook on e1 on the queen on e7.",
                ),
                ("7k/6b1/8/8/3P4/8/1B6/7K w - - 0 1", "d5", ""),
                (
                    "8/6n1/8/k7/3P4/8/1B6/7K w - - 0 1",
                    "d5",
                    "d5 uncovers the attack of the bishop on b2 on the knight on g7.",
                ),
                (
                    "3r2k1/8/8/8/3r4/8/8/3R2K1 b - - 0 1",
                    "Ra4",
                    "Ra4 uncovers the attack of the rook on d8 on the rook on d1.",
                ),
                (
                    "3r2k1/8/8/3n4/8/8/8/3Q2K1 b - - 0 1",
                    "Nf4",
                    "Nf4 uncovers the attack of the rook on d8 on the queen on d1.",
                ),
            ],
        );
    }

    #[test]
    fn moves_that_uncover_nothing() {
        check(
            discovered_attack,
            &[
                // No fact: the piece moves along the line; the target is defended and of the same
                // value; it is a pawn; there is no target.
                ("7k/4q3/8/8/4P3/8/8/4R1K1 w - - 0 1", "e5", ""),
                ("4k3/4r3/8/8/4N3/8/8/4R1K1 w - - 0 1", "Nc3", ""),
                ("7k/4p3/8/8/4N3/8/8/4R1K1 w - - 0 1", "Nc3", ""),
                ("7k/8/8/8/4N3/8/8/4R1K1 w - - 0 1", "Nc3", ""),
            ],
        );
    }
}
