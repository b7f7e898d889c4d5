//! Exchanges that change the character of a game: the queens or all pieces are traded.

use super::board::after;
use super::board::balance;
use super::words::{self, side};
use super::{Fact, Topic};
use shakmaty::{Chess, Color, Move, Position};

/// Number of moves of a line within which the exchange has to take place.
const PLIES: usize = 4;
/// Minimum number of pawns by which a side has to be ahead.
const AHEAD: i32 = 2;

/// States that the queens are traded in a line, after which `ahead` has more material.
pub fn queens_off(position: &Chess, line: &[Move], ahead: Color) -> Option<Fact> {
    let queens = |position: &Chess| position.board().queens().count();
    let (plies, end) = first(position, line, |it| queens(it) == 0)?;
    let more = ahead.fold_wb(1, -1) * balance(&end);
    if queens(position) < 2 || more < AHEAD {
        return None;
    }
    let (moves, name) = (words::line(position, &line[..plies]), side(ahead));
    let text = format!(
        "After {moves}, the queens are off, and {name} is ahead by material worth {more} pawns."
    );
    Some(Fact::new(Topic::Exchange, text, [line[plies - 1].to()]))
}

/// States that only kings and pawns are left after some moves of a line.
pub fn pawn_ending(position: &Chess, line: &[Move]) -> Option<Fact> {
    let is_one = |position: &Chess| {
        let board = position.board();
        board.occupied() == board.pawns() | board.kings()
    };
    let (plies, _) = first(position, line, is_one)?;
    let moves = words::line(position, &line[..plies]);
    let text = format!("After {moves}, only kings and pawns are left.");
    let is_new = !is_one(position);
    is_new.then(|| Fact::new(Topic::Exchange, text, [line[plies - 1].to()]))
}

/// Returns the first quiet position of a line that satisfies the condition.
fn first(
    position: &Chess,
    line: &[Move],
    holds: impl Fn(&Chess) -> bool,
) -> Option<(usize, Chess)> {
    let mut current = position.clone();
    for (place, &mv) in line.iter().take(PLIES).enumerate() {
        current = after(&current, mv);
        let next = line.get(place + 1);
        let goes_on = next.is_some_and(|next| next.is_capture() && next.to() == mv.to());
        if holds(&current) && !goes_on {
            return Some((place + 1, current));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, position};
    use super::*;

    fn check(expected: &[(&str, &str, &str, &str)]) {
        for &(fen, moves, queens, ending) in expected {
            let position = position(fen);
            let line = line(&position, moves);
            let text = |fact: Option<Fact>| fact.map(|it| it.text).unwrap_or_default();
            let found = text(queens_off(&position, &line, Color::White));
            assert_eq!(found, queens, "{moves} in {fen}");
            let found = text(pawn_ending(&position, &line));
            assert_eq!(found, ending, "{moves} in {fen}");
        }
    }

    #[test]
    fn exchanges() {
        check(&[
            (
                "3qk3/8/8/8/8/8/3QP3/R3K3 b Q - 0 1",
                "Qxd2+ Kxd2 Kd7",
                "After Qxd2+ Kxd2, the queens are off, and White is ahead by material worth 6 pawns.",
                "",
            ),
            (
                "8/5k2/8/8/4n3/3P4/PP6/4K3 b - - 0 1",
                "Nc3 bxc3 Ke7",
                "",
                "After Nc3 bxc3, only kings and pawns are left.",
            ),
            ("8/5k2/8/8/4B3/3n4/PP6/4K3 w - - 0 1", "Bxd3 Ke7", "", ""),
            // No fact: neither side is far enough ahead; a queen remains; the exchange comes too
            // late.
            (
                "3qk3/8/8/8/8/8/3QPP2/4K1N1 b - - 0 1",
                "Kf7 Ke1d1 Qxd2+",
                "",
                "",
            ),
            ("3qk3/8/8/8/8/8/3Q4/R3K2Q b Q - 0 1", "Qxd2+ Kxd2", "", ""),
        ]);
    }
}
