//! A threat that a move creates: if the other side passed, a mate or a capture would follow.

use super::board::{after, passed};
use super::words::san;
use super::{Fact, Topic, best_capture, gain};
use shakmaty::{Chess, Move, Position};

/// Returns the threat that a line's first move creates and its third carries out: a capture that
/// gains material, and more than it would have gained before. Three kinds of move create no threat:
/// a check, because the opponent cannot pass; a capture, because it is answered first; and the move
/// of a piece that can be captured at a profit.
pub fn new_threat(position: &Chess, line: &[Move]) -> Option<Fact> {
    let &[mv, _, executed, ..] = line else {
        return None;
    };
    let next = after_passing(position, mv)?;
    let is_there = executed.is_capture() && next.legal_moves().contains(&executed);
    let gains = if is_there { gain(&next, executed) } else { 0 };
    let is_new = gains > 0 && gains > gained_before(position, executed);
    is_new.then(|| fact(position, mv, &next, executed))
}

/// Returns the mate in one that a move threatens.
pub fn mate_threat(position: &Chess, mv: Move) -> Option<Fact> {
    let next = after_passing(position, mv)?;
    let mut moves = next.legal_moves().into_iter();
    let threat = moves.find(|&mv| after(&next, mv).is_checkmate())?;
    Some(fact(position, mv, &next, threat))
}

/// Returns the position in which the opponent has passed after a move that may create a threat.
fn after_passing(position: &Chess, mv: Move) -> Option<Chess> {
    let answered = after(position, mv);
    let is_answered = mv.is_capture() || best_capture(&answered, mv.to()) > 0;
    passed(&answered).filter(|_| !is_answered)
}

fn fact(position: &Chess, mv: Move, next: &Chess, threat: Move) -> Fact {
    let text = format!("{} threatens {}.", san(position, mv), san(next, threat));
    let squares = threat.from().into_iter().chain([threat.to()]);
    Fact::new(Topic::Threat, text, squares)
}

/// Returns the gain of the same capture in a position; 0 if it is illegal.
pub(super) fn gained_before(position: &Chess, capture: Move) -> i32 {
    let is_legal = position.legal_moves().contains(&capture);
    if is_legal { gain(position, capture) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, line, position};
    use super::*;

    #[test]
    fn threats_that_the_line_carries_out() {
        for (fen, moves, expected) in [
            (
                "7k/8/8/8/3n4/8/8/4R1K1 b - - 0 1",
                "Nc2 Kg2 Nxe1+",
                "Nc2 threatens Nxe1.",
            ),
            // The move opens the line.
            (
                "3qk3/8/8/8/3N4/8/8/3RK3 w - - 0 1",
                "Nb3 Ke7 Rxd8",
                "Nb3 threatens Rxd8+.",
            ),
            (
                "4k3/8/2p5/3p4/8/4N3/2P5/4K3 w - - 0 1",
                "c4 Kd7 cxd5",
                "c4 threatens cxd5.",
            ),
            // No threat: the line does not carry it out; a capture; a piece left hanging; a check;
            // nothing new.
            ("7k/8/8/8/3n4/8/8/4R1K1 b - - 0 1", "Nc2 Rd1 Nb4", ""),
            ("4k3/8/8/8/3n4/8/2P5/R5K1 b - - 0 1", "Nxc2 Kf1 Nxa1", ""),
            ("4k3/8/8/8/3n4/3B4/8/R5K1 b - - 0 1", "Nc2 Kf1 Nxa1", ""),
            ("3nk3/8/8/1p6/8/8/8/R5K1 w - - 0 1", "Re1+ Kf8 Rd1", ""),
            ("4k3/8/8/1p6/8/8/7P/1R4K1 w - - 0 1", "h3 Ke7 Rxb5", ""),
        ] {
            let position = position(fen);
            let found = new_threat(&position, &line(&position, moves));
            let found = found.map(|fact| fact.text).unwrap_or_default();
            assert_eq!(found, expected, "{moves} in {fen}");
        }
    }

    #[test]
    fn mates_that_are_threatened() {
        check(
            mate_threat,
            &[
                (
                    "6k1/5ppp/8/8/8/8/8/1R4K1 w - - 0 1",
                    "Ra1",
                    "Ra1 threatens Ra8#.",
                ),
                ("6k1/5ppp/8/8/8/8/8/R5K1 b - - 0 1", "Kf8", ""),
                ("4k3/8/8/8/8/8/7P/1R4K1 w - - 0 1", "h3", ""),
            ],
        );
    }
}
