//! Static exchange evaluation with legal moves, which accounts for pins, checks and x-rays.

use super::board::{after, value};
use shakmaty::{Chess, Move, Position, Role, Square};

/// Returns the material in pawns that the side to move gains by captures on `square`, each by the
/// least valuable piece, where both sides may stop at any point; 0 if no capture gains material.
pub fn best_capture(position: &Chess, square: Square) -> i32 {
    let captures = position.legal_moves().into_iter();
    let captures = captures.filter(|mv| {
        let best_promotion = mv.promotion().is_none_or(|role| role == Role::Queen);
        mv.is_capture() && mv.to() == square && best_promotion
    });
    let least = captures.min_by_key(|mv| value(mv.role()));
    least.map_or(0, |mv| gain(position, mv).max(0))
}

/// Returns the material in pawns that a legal move gains or loses through captures on its target
/// square.
pub fn gain(position: &Chess, mv: Move) -> i32 {
    let captured = mv.capture().map_or(0, value);
    let promoted = mv
        .promotion()
        .map_or(0, |role| value(role) - value(Role::Pawn));
    match mv.is_castle() {
        true => 0,
        false => captured + promoted - best_capture(&after(position, mv), mv.to()),
    }
}

/// Returns whether the side to move can capture the piece on a square only at a loss, because every
/// capturing piece is worth more than the captured one and is then lost.
pub(super) fn is_safe(position: &Chess, square: Square) -> bool {
    let Some(role) = position.board().role_at(square) else {
        return false;
    };
    let takers = position.legal_moves().into_iter();
    let mut takers = takers.filter(|mv| mv.is_capture() && mv.to() == square);
    takers.all(|mv| value(mv.role()) > value(role) && gain(position, mv) < 0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{mv, position};
    use super::*;

    #[test]
    fn gains_of_captures() {
        for (fen, text, expected) in [
            // Nothing defends the pawn; a pawn defends it; a rook supports the attack.
            ("4k3/8/8/4p3/8/8/4R3/4K3 w - - 0 1", "Rxe5+", 1),
            ("4k3/8/3p4/4p3/8/8/4R3/4K3 w - - 0 1", "Rxe5+", 1 - 5),
            ("4k3/8/3p4/4p3/8/4R3/4R3/4K3 w - - 0 1", "Rxe5+", 1 - 5 + 1),
            ("4k3/8/3p4/4n3/8/8/4R3/4K3 w - - 0 1", "Rxe5+", 3 - 5),
            ("4k3/8/3p4/4r3/8/8/4R3/4K3 w - - 0 1", "Rxe5+", 0),
            // The defending pawn is pinned.
            ("4k3/3p4/2n5/1B6/8/8/8/4K3 w - - 0 1", "Bxc6", 0),
            ("8/3k4/2pn4/1B6/8/8/3R4/4K3 w - - 0 1", "Rxd6+", 3 - 5),
            // The king may not capture a defended piece.
            ("4k3/3r4/8/1B6/8/8/3R4/4K3 w - - 0 1", "Rxd7", 5),
            // A promotion, and one after which the new piece is captured.
            ("7k/P7/8/8/8/8/8/K7 w - - 0 1", "a8=Q+", 8),
            ("1r5k/P7/8/8/8/8/8/K7 w - - 0 1", "a8=Q", 8 - 9),
            ("1r5k/P7/8/8/8/8/8/K7 w - - 0 1", "axb8=Q+", 13),
            ("8/8/8/2Pp4/8/8/8/k6K w - d6 0 2", "cxd6", 1),
            ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "O-O", 0),
        ] {
            let position = position(fen);
            assert_eq!(gain(&position, mv(&position, text)), expected, "{fen}");
        }
    }

    #[test]
    fn nobody_need_capture() {
        let defended = position("4k3/8/3p4/4p3/8/8/4R3/4K3 w - - 0 1");
        assert_eq!(best_capture(&defended, Square::E5), 0);
        let quiet = position("4k3/8/8/8/8/8/8/4K3 w - - 0 1");
        assert_eq!(best_capture(&quiet, Square::E5), 0);
        // The cheaper of two pieces captures.
        let two = position("4k3/8/5b2/4n3/3P4/8/4R3/4K3 w - - 0 1");
        assert_eq!(best_capture(&two, Square::E5), 3);
    }
}
