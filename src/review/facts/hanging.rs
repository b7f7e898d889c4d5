//! A capture that gains material, because the piece is undefended, is worth more than the capturing
//! piece, or is attacked more often than it is defended.

use super::board::{after, attackers, value};
use super::words::{name, piece, san};
use super::{Fact, Topic, gain};
use shakmaty::{Chess, Move, Position, Role};

/// Returns the capture `mv` if it gains material on its target square.
pub fn capture(position: &Chess, mv: Move) -> Option<Fact> {
    let victim = mv.capture()?;
    if gain(position, mv) < 1 {
        return None;
    }
    let (board, turn) = (position.board(), position.turn());
    let (square, text) = (mv.to(), san(position, mv));
    let next = after(position, mv);
    let is_taken_back = next
        .legal_moves()
        .iter()
        .any(|reply| reply.is_capture() && reply.to() == square);
    let taken = match mv.is_en_passant() {
        true => "the pawn in passing".to_owned(),
        false => piece(board, square),
    };
    let text = if next.is_checkmate() {
        return None;
    } else if !is_taken_back {
        match attackers(next.board(), square, !turn).is_empty() {
            true => format!("{text} takes {taken}, which nothing defends."),
            false => format!("{text} takes {taken} and cannot be taken back."),
        }
    } else if value(victim) > value(mv.role()) && mv.role() != Role::King {
        let captor = name(mv.role());
        format!("{text} takes {taken}, which is worth more than the {captor} that takes it.")
    } else {
        let attacks = attackers(board, square, turn).count();
        let defences = attackers(board, square, !turn).count();
        if mv.is_en_passant() || attacks <= defences {
            return None;
        }
        format!("{text} takes {taken}, which is attacked more often than it is defended.")
    };
    Some(Fact::new(Topic::Hanging, text, [square]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn captures_that_gain_material() {
        check(
            capture,
            &[
                (
                    "4k3/8/8/4n3/8/8/4R3/4K3 w - - 0 1",
                    "Rxe5+",
                    "Rxe5+ takes the knight on e5, which nothing defends.",
                ),
                // The pawn is pinned by the other rook.
                (
                    "8/kp5R/2n5/8/8/8/8/2R4K w - - 0 1",
                    "Rxc6",
                    "Rxc6 takes the knight on c6 and cannot be taken back.",
                ),
                (
                    "4k3/8/3p4/4r3/8/6B1/8/4K3 w - - 0 1",
                    "Bxe5",
                    "Bxe5 takes the rook on e5, which is worth more than the bishop that takes it.",
                ),
                (
                    "4k3/4r3/8/4p3/8/3N4/4R3/4K3 w - - 0 1",
                    "Nxe5",
                    "Nxe5 takes the pawn on e5, which is attacked more often than it is defended.",
                ),
                (
                    "8/8/8/2Pp4/8/8/8/k6K w - d6 0 2",
                    "cxd6",
                    "cxd6 takes the pawn in passing, which nothing defends.",
                ),
            ],
        );
    }

    #[test]
    fn captures_that_do_not() {
        check(
            capture,
            &[
                // No fact: a pawn defends the piece; the trade is even; the move is not a capture;
                // the capture mates, which is mentioned instead.
                ("4k3/8/3p4/4n3/8/8/4R3/4K3 w - - 0 1", "Rxe5+", ""),
                ("4k3/8/3p4/4r3/8/8/4R3/4K3 w - - 0 1", "Rxe5+", ""),
                ("4k3/8/8/8/8/8/3R4/4K3 w - - 0 1", "Ke2", ""),
                ("R5rk/6pp/8/8/8/8/8/6K1 w - - 0 1", "Rxg8+", ""),
                ("r5k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", "Rxa8#", ""),
            ],
        );
    }
}
