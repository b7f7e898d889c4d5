//! A missed recapture.

use super::words::san;
use super::{Fact, Topic, gain};
use shakmaty::{Chess, Move};

/// States that `best` recaptures on the square of the opponent's last capture.
pub fn recapture(position: &Chess, last: Move, best: Move) -> Option<Fact> {
    let square = best.to();
    let takes_back = last.is_capture() && best.is_capture() && last.to() == square;
    if !takes_back || last.is_en_passant() || gain(position, best) < 0 {
        return None;
    }
    let text = format!("{} recaptures on {square}.", san(position, best));
    Some(Fact::new(Topic::Recapture, text, [square]))
}

#[cfg(test)]
mod tests {
    use super::super::board::after;
    use super::super::testing::{line, position};
    use super::*;

    #[test]
    fn pieces_taken_back() {
        for (fen, moves, expected) in [
            (
                "4k3/8/3p4/4n3/8/8/4R3/4K3 w - - 0 1",
                "Rxe5+ dxe5",
                "dxe5 recaptures on e5.",
            ),
            (
                "4k3/8/3p4/4n3/3P4/8/8/4K3 w - - 0 1",
                "dxe5 dxe5",
                "dxe5 recaptures on e5.",
            ),
            (
                "3qk3/8/8/8/8/8/8/3QK3 w - - 0 1",
                "Qxd8+ Kxd8",
                "Kxd8 recaptures on d8.",
            ),
            (
                "r3k3/8/1n6/3p4/4P3/8/8/4K3 w - - 0 1",
                "exd5 Nxd5",
                "Nxd5 recaptures on d5.",
            ),
            // No fact: the recapture loses material; it is on another square; nothing was captured;
            // the best move captures nothing.
            ("3rk3/8/8/3p4/4P3/2N5/8/4K3 w - - 0 1", "exd5 Rxd5", ""),
            (
                "3qk3/8/8/3p4/4P2b/8/8/4K2R w - - 0 1",
                "Rxh4 Qxh4+",
                "Qxh4+ recaptures on h4.",
            ),
            (
                "3qk3/8/8/3p4/4P3/8/8/4K2R w - - 0 1",
                "exd5 Qxd5",
                "Qxd5 recaptures on d5.",
            ),
            ("3qk3/8/8/3p4/4P3/8/8/4K2R w - - 0 1", "e5 Qc7", ""),
            ("3qk3/8/8/3p4/4P3/8/8/4K2R w - - 0 1", "exd5 Qc7", ""),
            ("3qk3/8/8/3p4/4P3/8/7R/4K3 w - - 0 1", "Rh1 dxe4", ""),
        ] {
            let before = position(fen);
            let [last, best] = line(&before, moves)[..] else {
                panic!("two moves");
            };
            let found = recapture(&after(&before, last), last, best);
            let found = found.map(|fact| fact.text).unwrap_or_default();
            assert_eq!(found, expected, "{moves} in {fen}");
        }
    }
}
