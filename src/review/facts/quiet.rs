//! Positions in which nothing is about to be captured, where material can be counted.

use super::board::{after, passed, value};
use super::{balance, gain};
use shakmaty::{Chess, Move, Position, Role};

/// Number of plies of captures that are searched.
const DEPTH: usize = 8;
/// A value above all material.
const MOST: i32 = 1_000;

/// Returns whether the side to move is not in check and gains nothing by captures and promotions,
/// against the best captures in return.
pub fn is_quiet(position: &Chess) -> bool {
    let own = worth(position);
    !position.is_check() && settled(position, own, own + 1, DEPTH) <= own
}

/// Returns whether material can be counted in a quiet position: the opponent does not take, after
/// the next move of a line, what it could also take if the side to move passed. Where the line
/// ends, nothing may be left to be taken.
pub fn is_settled(position: &Chess, line: &[Move]) -> bool {
    let is_later = |passed: &Chess| match *line {
        [_, mv, ..] => {
            let loud = mv.is_capture() || mv.is_promotion();
            loud && passed.legal_moves().contains(&mv) && gain(passed, mv) > 0
        }
        _ => !is_quiet(passed),
    };
    !passed(position).is_some_and(|passed| is_later(&passed))
}

/// Returns whether no single capture or promotion gains material by the exchange on its square.
pub fn wins_nothing(position: &Chess) -> bool {
    let mut loud = position.legal_moves().into_iter();
    !loud.any(|mv| (mv.is_capture() || mv.is_promotion()) && gain(position, mv) > 0)
}

/// Returns the material of the side to move minus the opponent's, in pawns.
fn worth(position: &Chess) -> i32 {
    position.turn().fold_wb(1, -1) * balance(position)
}

/// Returns the material of the side to move, within bounds, after the best captures of both sides,
/// each of which may stop capturing at any point unless it is in check.
fn settled(position: &Chess, low: i32, high: i32, depth: usize) -> i32 {
    let own = worth(position);
    let is_check = position.is_check();
    let legal = position.legal_moves();
    if legal.is_empty() {
        return if is_check { -MOST } else { 0 };
    }
    if depth == 0 || !is_check && own >= high {
        return own;
    }
    let mut best = if is_check { -MOST } else { own };
    let is_loud = |mv: &Move| mv.is_capture() || mv.promotion() == Some(Role::Queen);
    let mut moves: Vec<Move> = legal.into_iter().collect();
    moves.retain(|mv| is_check || is_loud(mv));
    moves.sort_by_key(|mv| value(mv.role()) - 10 * mv.capture().map_or(0, value));
    for mv in moves {
        let next = after(position, mv);
        best = best.max(-settled(&next, -high, -low.max(best), depth - 1));
        if best >= high {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::testing::position;
    use super::*;

    #[test]
    fn captures_and_promotions_disturb() {
        for (fen, expected) in [
            ("5k2/8/8/8/8/8/4R3/4K3 w - - 0 1", true),
            ("5k2/8/8/4n3/8/8/4R3/4K3 w - - 0 1", false),
            // A pawn defends the knight.
            ("4k3/8/3p4/4n3/8/8/4R3/4K3 w - - 0 1", true),
            // The bishop defends two knights, so one of them is lost.
            ("6k1/8/3b4/4n3/1n6/8/1R2R3/4K3 w - - 0 1", false),
            ("4k3/8/8/8/8/8/4R3/4K3 b - - 0 1", false),
            ("7k/P7/8/8/8/8/8/7K w - - 0 1", false),
            ("7k/P7/8/8/8/8/8/7K b - - 0 1", true),
        ] {
            assert_eq!(is_quiet(&position(fen)), expected, "{fen}");
        }
    }
}
