//! Passed pawns and promotions.

use super::board::after;
use super::words::{self, san, side};
use super::{Fact, Topic, best_capture};
use shakmaty::{Bitboard, Board, Chess, Color, Move, Position, Role, Square};

/// Returns whether no enemy pawn stands in front of a pawn, on its own or a neighbouring file.
fn is_passed(board: &Board, square: Square, color: Color) -> bool {
    let is_before = |other: Square| {
        let beside = (u32::from(other.file()) as i32 - u32::from(square.file()) as i32).abs() <= 1;
        let (other, own) = (other.rank(), square.rank());
        beside && color.fold_wb(other > own, other < own)
    };
    let enemies: Bitboard = board.pawns() & board.by_color(!color);
    !enemies.into_iter().any(is_before)
}

/// Returns the pawn of the moving side that `mv` turns into a passed pawn.
pub fn new_passed_pawn(position: &Chess, mv: Move) -> Option<Fact> {
    let color = position.turn();
    let next = after(position, mv);
    let passed = |board: &Board| -> Vec<Square> {
        let pawns = board.pawns() & board.by_color(color);
        let pawns = pawns.into_iter();
        pawns
            .filter(|&square| is_passed(board, square, color))
            .collect()
    };
    let old = passed(position.board());
    // If the moved pawn is passed, check whether it was already passed on its original square.
    let was_one = |square: Square| {
        old.contains(&square) || mv.to() == square && mv.from().is_some_and(|it| old.contains(&it))
    };
    let new = passed(next.board());
    let square = new.into_iter().find(|&square| !was_one(square))?;
    let text = format!(
        "{} makes the pawn on {square} a passed pawn.",
        san(position, mv)
    );
    Some(Fact::new(Topic::PassedPawn, text, [square]))
}

/// States that `mv` advances a passed pawn.
pub fn passed_pawn_advanced(position: &Chess, mv: Move) -> Option<Fact> {
    let from = mv.from()?;
    let is_pawn = mv.role() == Role::Pawn && !mv.is_capture() && !mv.is_promotion();
    let text = format!("{} advances a passed pawn.", san(position, mv));
    let is_one = is_pawn && is_passed(position.board(), from, position.turn());
    is_one.then(|| Fact::new(Topic::PassedPawn, text, [from, mv.to()]))
}

/// States that `mv` puts a piece in front of an enemy passed pawn that was not blocked before.
pub fn blockade(position: &Chess, mv: Move) -> Option<Fact> {
    let (board, enemy) = (position.board(), !position.turn());
    let pawn = mv.to().offset(enemy.fold_wb(-8, 8))?;
    let is_pawn = board.piece_at(pawn) == Some(Role::Pawn.of(enemy));
    let is_new = !mv.is_capture() && !mv.is_castle() && is_pawn;
    let text = format!("{} blocks the passed pawn on {pawn}.", san(position, mv));
    let is_safe = best_capture(&after(position, mv), mv.to()) == 0;
    let holds = is_new && is_safe && is_passed(board, pawn, enemy);
    holds.then(|| Fact::new(Topic::PassedPawn, text, [mv.to(), pawn]))
}

/// Returns the promotion by `color` in a line, however late: anybody sees where a pawn runs.
pub fn promotion(position: &Chess, line: &[Move], color: Color) -> Option<Fact> {
    let mut current = position.clone();
    for (plies, &mv) in (1..).zip(line) {
        if current.turn() == color && mv.is_promotion() {
            let (moves, side) = (words::line(position, &line[..plies]), side(color));
            let text = format!("After {moves}, {side} has promoted a pawn.");
            return Some(Fact::new(Topic::PassedPawn, text, [mv.to()]));
        }
        current = after(&current, mv);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, line, position};
    use super::*;

    #[test]
    fn pawns_that_become_passed() {
        check(
            new_passed_pawn,
            &[
                (
                    "4k3/8/3p4/4P3/8/8/8/4K3 w - - 0 1",
                    "exd6",
                    "exd6 makes the pawn on d6 a passed pawn.",
                ),
                (
                    "4k3/8/3p4/3P4/4N3/8/8/4K3 w - - 0 1",
                    "Nxd6+",
                    "Nxd6+ makes the pawn on d5 a passed pawn.",
                ),
                ("4k3/2p5/8/3P4/8/8/8/4K3 w - - 0 1", "d6", ""),
                (
                    "4k3/8/8/4p3/3P4/8/8/4K3 w - - 0 1",
                    "dxe5",
                    "dxe5 makes the pawn on e5 a passed pawn.",
                ),
                (
                    "4k3/8/8/8/3p4/4P3/8/4K3 b - - 0 1",
                    "dxe3",
                    "dxe3 makes the pawn on e3 a passed pawn.",
                ),
                // No fact: the pawn was already passed; an enemy pawn is on a neighbouring file;
                // there is no passed pawn.
                ("4k3/8/8/4P3/8/8/8/4K3 w - - 0 1", "e6", ""),
                ("4k3/2p5/3p4/4P3/8/8/8/4K3 w - - 0 1", "exd6", ""),
                ("4k3/8/8/8/8/8/8/4K3 w - - 0 1", "Kd1", ""),
            ],
        );
    }

    #[test]
    fn promotions_in_lines() {
        let found = |fen: &str, moves: &str, color| {
            let position = position(fen);
            let fact = promotion(&position, &line(&position, moves), color);
            fact.map(|fact| fact.text).unwrap_or_default()
        };
        let fen = "8/P6k/8/8/8/8/p6K/8 w - - 0 1";
        for (fen, moves, color, expected) in [
            (
                fen,
                "a8=Q a1=Q",
                Color::White,
                "After a8=Q, White has promoted a pawn.",
            ),
            (
                fen,
                "a8=Q a1=Q",
                Color::Black,
                "After a8=Q a1=Q, Black has promoted a pawn.",
            ),
            (
                fen,
                "Kg3 a1=N",
                Color::Black,
                "After Kg3 a1=N, Black has promoted a pawn.",
            ),
            (
                "8/P6k/8/8/8/8/7K/8 w - - 0 1",
                "Kg3 Kg6 a8=R",
                Color::White,
                "After Kg3 Kg6 a8=R, White has promoted a pawn.",
            ),
            (
                "3k4/3r4/R1p5/1p6/1B5p/7P/6PK/8 b - - 0 56",
                "Kc7 Ra7+ Kd8 Rxd7+ Kxd7 g3 Ke6 gxh4 Kd5 h5 Kc4 h6 Kxb4 h7 Kb3 h8=Q",
                Color::White,
                "After Kc7 Ra7+ Kd8 Rxd7+ Kxd7 g3 Ke6 gxh4 Kd5 h5 Kc4 h6 Kxb4 h7 Kb3 h8=Q, White has \
                 promoted a pawn.",
            ),
        ] {
            assert_eq!(found(fen, moves, color), expected);
        }
        assert_eq!(found(fen, "a8=Q", Color::Black), "");
        assert_eq!(found(fen, "Kg3 Kg6", Color::White), "");
        assert_eq!(found(fen, "", Color::White), "");
        assert_eq!(found(fen, "Kg3 a1=Q", Color::White), "");
    }

    #[test]
    fn passed_pawns_are_advanced_and_blocked() {
        let found = |fact: fn(&Chess, Move) -> Option<Fact>, fen: &str, text: &str| {
            let position = position(fen);
            let fact = fact(&position, line(&position, text)[0]);
            fact.map(|fact| fact.text).unwrap_or_default()
        };
        for (fen, mv, expected) in [
            (
                "4k3/8/8/8/3P4/8/8/4K3 w - - 0 1",
                "d5",
                "d5 advances a passed pawn.",
            ),
            ("4k3/4p3/8/8/3P4/8/8/4K3 w - - 0 1", "d5", ""),
            ("4k3/8/8/8/3P4/8/8/4K3 w - - 0 1", "Kd2", ""),
            ("8/3P4/8/8/k7/8/8/4K3 w - - 0 1", "d8=Q", ""),
        ] {
            assert_eq!(
                found(passed_pawn_advanced, fen, mv),
                expected,
                "{mv} in {fen}"
            );
        }
        for (fen, mv, expected) in [
            (
                "4k3/8/4b3/8/3P4/8/8/4K3 b - - 0 1",
                "Bd5",
                "Bd5 blocks the passed pawn on d4.",
            ),
            // No fact: the pawn is not passed; the blocker would be captured; the piece is not in
            // front of the pawn.
            ("4k3/4p3/4b3/8/3P4/8/8/4K3 b - - 0 1", "Bd5", ""),
            ("4k3/8/4b3/8/3P4/2N5/8/4K3 b - - 0 1", "Bd5", ""),
            ("4k3/8/4b3/8/3P4/8/8/4K3 b - - 0 1", "Bc4", ""),
        ] {
            assert_eq!(found(blockade, fen, mv), expected, "{mv} in {fen}");
        }
    }
}
