//! A threat that existed before the move: if the side to move passes, the reply still works.

use super::board::{after, passed};
use super::words::{san, side};
use super::{Fact, Topic, gain};
use shakmaty::{Chess, Move, Position};

/// States that the reply wins material and would have done so after a null move.
pub fn threatened(before: &Chess, reply: Move) -> Option<Fact> {
    let position = passed(before)?;
    let is_there = position.legal_moves().contains(&reply);
    if !is_there || !reply.is_capture() || gain(&position, reply) < 1 {
        return None;
    }
    Some(fact(&position, reply))
}

/// States that the reply mates immediately and would have done so after a null move.
pub fn mate_threatened(before: &Chess, reply: Move) -> Option<Fact> {
    let position = passed(before)?;
    let is_there = position.legal_moves().contains(&reply);
    let is_mate = is_there && after(&position, reply).is_checkmate();
    is_mate.then(|| fact(&position, reply))
}

/// Returns the threatened capture that the played move allows, that the best move parries and that
/// the line carries out later than at once. The line begins with the played move.
pub fn threat_left(before: &Chess, line: &[Move], best: Move) -> Option<Fact> {
    let position = passed(before)?;
    let threatens = |position: &Chess, mv: &Move| {
        position.legal_moves().contains(mv) && gain(position, *mv) >= 1
    };
    let [played, parried] = [*line.first()?, best].map(|mv| after(before, mv));
    let later = line.iter().skip(3).step_by(2);
    let mut threats = later.filter(|mv| {
        mv.is_capture()
            && threatens(&position, mv)
            && threatens(&played, mv)
            && !threatens(&parried, mv)
    });
    let &threat = threats.next()?;
    let text = format!(
        "{} was threatening {} before the move and still is; {} parries it.",
        side(position.turn()),
        san(&position, threat),
        san(before, best)
    );
    let squares = threat.from().into_iter().chain([threat.to()]);
    Some(Fact::new(Topic::Threat, text, squares))
}

fn fact(position: &Chess, reply: Move) -> Fact {
    let text = format!(
        "{} was threatening {} before the move.",
        side(position.turn()),
        san(position, reply)
    );
    Fact::new(
        Topic::Threat,
        text,
        reply.from().into_iter().chain([reply.to()]),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, position};
    use super::*;

    fn check(fact: fn(&Chess, Move) -> Option<Fact>, cases: &[(&str, &str, &str)]) {
        for (fen, moves, expected) in cases {
            let before = position(fen);
            let reply = line(&before, moves)[1];
            let found = fact(&before, reply).map(|fact| fact.text);
            assert_eq!(&found.unwrap_or_default(), expected, "{moves} in {fen}");
        }
    }

    #[test]
    fn captures_that_were_threatened() {
        check(
            threatened,
            &[
                (
                    "4k3/8/8/4r3/4N3/8/7P/6K1 w - - 0 1",
                    "h3 Rxe4",
                    "Black was threatening Rxe4 before the move.",
                ),
                (
                    "3k4/8/8/8/3n4/8/4Q2P/6K1 w - - 0 1",
                    "h3 Nxe2+",
                    "Black was threatening Nxe2+ before the move.",
                ),
                (
                    "1q2k3/p7/8/8/8/8/8/1R4K1 b - - 0 1",
                    "a6 Rxb8+",
                    "White was threatening Rxb8+ before the move.",
                ),
                (
                    "4k3/8/8/2p5/3B4/8/7P/6K1 w - - 0 1",
                    "h3 cxd4",
                    "Black was threatening cxd4 before the move.",
                ),
                // No fact: the move itself made the capture possible; the player was in check; the
                // piece was defended; the reply is not a capture.
                ("4k3/8/8/4r3/8/2N5/7P/6K1 w - - 0 1", "Ne4 Rxe4", ""),
                ("4k3/8/8/8/1b6/N7/8/4K3 w - - 0 1", "Kf1 Bxa3", ""),
                ("4k3/8/8/4r3/4N3/3P4/7P/6K1 w - - 0 1", "h3 Rxe4", ""),
                ("4k3/8/8/4r3/4N3/8/7P/6K1 w - - 0 1", "h3 Re7", ""),
            ],
        );
    }

    #[test]
    fn threats_that_are_left() {
        for (fen, moves, best, expected) in [
            (
                "4k3/8/8/4r3/4N3/8/7P/6K1 w - - 0 1",
                "h3 Kd7 h4 Rxe4",
                "Ng3",
                "Black was threatening Rxe4 before the move and still is; Ng3 parries it.",
            ),
            // No fact: the line does not carry out the threat, or at once; the best move does not
            // parry it; there was no threat.
            (
                "4k3/8/8/4r3/4N3/8/7P/6K1 w - - 0 1",
                "h3 Kd7 h4 Re6",
                "Ng3",
                "",
            ),
            ("4k3/8/8/4r3/4N3/8/7P/6K1 w - - 0 1", "h3 Rxe4", "Ng3", ""),
            (
                "4k3/8/8/4r3/4N3/8/7P/6K1 w - - 0 1",
                "h3 Kd7 Kf2 Rxe4",
                "h4",
                "",
            ),
            (
                "4k3/8/8/8/4N3/8/7P/6K1 w - - 0 1",
                "h3 Kd7 h4 Kc6",
                "Ng3",
                "",
            ),
        ] {
            let before = position(fen);
            let best = line(&before, best)[0];
            let found = threat_left(&before, &line(&before, moves), best);
            let found = found.map(|fact| fact.text);
            assert_eq!(found.unwrap_or_default(), expected, "{moves} in {fen}");
        }
    }

    #[test]
    fn mates_that_were_threatened() {
        check(
            mate_threatened,
            &[
                (
                    "3r2k1/8/8/8/8/8/5PPP/B5K1 w - - 0 1",
                    "Bc3 Rd1+",
                    "Black was threatening Rd1# before the move.",
                ),
                ("3r2k1/8/8/1B6/8/8/P4PPP/6K1 w - - 0 1", "a4 Rd1+", ""),
                ("7k/8/8/7Q/8/3B4/p7/7K b - - 0 1", "Kg7 Qh7+", ""),
                (
                    "3q2k1/8/8/8/8/P7/5PPP/6K1 w - - 0 1",
                    "a4 Qd1+",
                    "Black was threatening Qd1# before the move.",
                ),
                (
                    "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR b KQkq - 0 1",
                    "Nf6 Qxf7#",
                    "White was threatening Qxf7# before the move.",
                ),
                (
                    "6k1/5ppp/8/8/8/8/p7/R3R1K1 b - - 0 1",
                    "h5 Re8+",
                    "White was threatening Re8# before the move.",
                ),
                // No fact: the king has an escape square; the move itself made the mate possible.
                ("3q2k1/8/8/8/8/P6P/5PP1/6K1 w - - 0 1", "a4 Qd1+", ""),
                ("3q2k1/8/8/8/8/7P/5PP1/5RK1 w - - 0 1", "Re1 Qd2", ""),
            ],
        );
    }
}
