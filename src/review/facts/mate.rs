//! A line that ends in mate.

use super::board::after;
use super::words::{san, side};
use super::{Fact, Topic};
use shakmaty::{Chess, Move, Position};

/// Returns the mate by the side that moves first in a line, which must have been proven to be
/// forced. If the line does not show it, the number of moves is not told.
pub fn forced_mate(position: &Chess, line: &[Move]) -> Option<Fact> {
    let &first = line.first()?;
    let mut end = position.clone();
    for &mv in line {
        if !end.legal_moves().contains(&mv) {
            return None;
        }
        end = after(&end, mv);
    }
    let is_shown = end.is_checkmate() && !line.len().is_multiple_of(2);
    let text = match line.len().div_ceil(2) {
        _ if !is_shown => format!(
            "{} can force mate, beginning with {}.",
            side(position.turn()),
            san(position, first)
        ),
        1 => format!("{} is mate.", san(position, first)),
        moves => format!(
            "{} mates in {moves} moves, beginning with {}.",
            side(position.turn()),
            san(position, first)
        ),
    };
    let squares = first.from().into_iter().chain([first.to()]);
    let king = end.board().king_of(end.turn());
    Some(Fact::new(Topic::Mate, text, squares.chain(king)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, position};
    use super::*;

    #[test]
    fn lines_that_mate_and_lines_that_do_not() {
        for (fen, moves, expected) in [
            ("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", "Ra8#", "Ra8# is mate."),
            (
                "6k1/8/8/8/8/R7/1R6/6K1 w - - 0 1",
                "Ra7 Kf8 Rb8#",
                "White mates in 2 moves, beginning with Ra7.",
            ),
            (
                "rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq - 0 2",
                "Qh4#",
                "Qh4# is mate.",
            ),
            ("8/8/8/8/8/k7/7r/K7 b - - 0 1", "Rh1#", "Rh1# is mate."),
            // The line is shorter than the mate.
            (
                "6k1/8/8/8/8/R7/1R6/6K1 w - - 0 1",
                "Ra7 Kf8",
                "White can force mate, beginning with Ra7.",
            ),
            // No fact: the line is empty.
            ("6k1/8/8/8/8/R7/1R6/6K1 w - - 0 1", "", ""),
        ] {
            let position = position(fen);
            let found = forced_mate(&position, &line(&position, moves));
            let found = found.map(|fact| fact.text).unwrap_or_default();
            assert_eq!(found, expected, "{moves} in {fen}");
        }
    }
}
