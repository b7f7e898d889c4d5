//! A threat that a move creates: if the other side passed, a mate or a capture would follow.

use super::board::{after, passed};
use super::words::san;
use super::{Fact, Topic, best_capture, gain};
use shakmaty::{Chess, Move, Position};

/// Returns the threat that `mv` creates: a mate, or otherwise the capture that would gain most and
/// would have gained less before the move. Three kinds of move create no threat: a check, because
/// the opponent cannot pass; a capture, because it is answered first; and the move of a piece that
/// can be captured at a profit.
#[must_use]
pub fn new_threat(position: &Chess, mv: Move) -> Option<Fact> {
    let answered = after(position, mv);
    if mv.is_capture() || best_capture(&answered, mv.to()) > 0 {
        return None;
    }
    let next = passed(&answered)?;
    let moves = next.legal_moves();
    let is_mate = |&mv: &Move| after(&next, mv).is_checkmate();
    let threat = moves.iter().copied().find(is_mate).or_else(|| {
        let gains = moves.iter().filter(|mv| mv.is_capture());
        let gains = gains.map(|&mv| (gain(&next, mv), mv));
        let new = gains.filter(|&(gains, mv)| gains > 0 && gains > gained_before(position, mv));
        new.max_by_key(|&(gains, _)| gains).map(|(_, mv)| mv)
    })?;
    let text = format!("{} threatens {}.", san(position, mv), san(&next, threat));
    let squares = threat.from().into_iter().chain([threat.to()]);
    Some(Fact::new(Topic::Threat, text, squares))
}

/// Returns the gain of the same capture in a position; 0 if it is illegal.
fn gained_before(position: &Chess, capture: Move) -> i32 {
    let is_legal = position.legal_moves().contains(&capture);
    if is_legal { gain(position, capture) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn threats() {
        check(
            new_threat,
            &[
                (
                    "7k/8/8/8/3n4/8/8/4R1K1 b - - 0 1",
                    "Nc2",
                    "Nc2 threatens Nxe1.",
                ),
                ("6k1/5ppp/8/8/8/8/8/R5K1 b - - 0 1", "Kf8", ""),
                (
                    "6k1/5ppp/8/8/8/8/8/1R4K1 w - - 0 1",
                    "Ra1",
                    "Ra1 threatens Ra8#.",
                ),
                // The move opens the line.
                (
                    "3qk3/8/8/8/3N4/8/8/3RK3 w - - 0 1",
                    "Nb3",
                    "Nb3 threatens Rxd8+.",
                ),
                (
                    "4k3/8/2p5/3p4/8/4N3/2P5/4K3 w - - 0 1",
                    "c4",
                    "c4 threatens cxd5.",
                ),
            ],
        );
    }

    #[test]
    fn moves_that_threaten_nothing() {
        check(
            new_threat,
            &[
                // No threat: a capture; a piece left hanging; a check; nothing new; nothing within
                // reach.
                ("4k3/8/8/8/3n4/8/2P5/R5K1 b - - 0 1", "Nxc2", ""),
                ("4k3/8/8/8/3n4/1P6/8/R5K1 b - - 0 1", "Nxb3", ""),
                ("4k3/8/8/8/3n4/3B4/8/R5K1 b - - 0 1", "Nc2", ""),
                ("4k3/8/8/8/8/2n5/8/R3K3 b - - 0 1", "Ne2", ""),
                ("3nk3/8/8/1p6/8/8/8/R5K1 w - - 0 1", "Re1+", ""),
                ("4k3/p7/1p6/8/8/8/8/1R4K1 w - - 0 1", "Kg2", ""),
                ("4k3/8/8/1p6/8/8/7P/1R4K1 w - - 0 1", "h3", ""),
                ("4k3/8/8/8/8/8/7P/1R4K1 w - - 0 1", "h3", ""),
            ],
        );
    }
}
