//! A piece moved away, so that another lost its defence or a line to it was opened.

use super::board::{after, moved};
use super::words::{capitalized, name, piece, san};
use super::{Fact, Topic};
use shakmaty::attacks::between;
use shakmaty::{Chess, Move, Position};

/// States that the piece moved by `played` defended the piece that the reply captures, and no
/// longer does.
pub fn defence_given_up(before: &Chess, played: Move, reply: Move) -> Option<Fact> {
    let mover = moved(before, played)?;
    let next = after(before, played);
    let target = reply.to();
    let own = next.board().color_at(target) == Some(before.turn());
    let defended = before.board().attacks_from(mover.from).contains(target);
    let defends = next.board().attacks_from(mover.to).contains(target);
    if !reply.is_capture() || !own || target == mover.to || !defended || defends {
        return None;
    }
    // The move may have captured on that square, in which case there was nothing to defend before.
    let was_own = before.board().color_at(target) == Some(before.turn());
    let text = format!(
        "The {} that moved to {} no longer defends {}.",
        name(mover.piece.role),
        mover.to,
        piece(next.board(), target)
    );
    let fact = Fact::new(Topic::Defender, text, [mover.from, mover.to, target]);
    (was_own && played.promotion().is_none()).then_some(fact)
}

/// States that `played` opened the line along which the reply captures.
pub fn line_opened(before: &Chess, played: Move, reply: Move) -> Option<Fact> {
    let mover = moved(before, played)?;
    let next = after(before, played);
    let (from, target) = (reply.from()?, reply.to());
    let was_closed = between(from, target).contains(mover.from)
        && before.board().piece_at(from) == next.board().piece_at(from);
    if !reply.is_capture() || reply.is_en_passant() || target == mover.to || !was_closed {
        return None;
    }
    let text = format!(
        "The move opens the line from {} to {}.",
        piece(next.board(), from),
        piece(next.board(), target)
    );
    Some(Fact::new(
        Topic::OpenedLine,
        capitalized(&text),
        [from, mover.from, target],
    ))
}

/// States that a line's first move captures the defender of the piece that its third move captures.
pub fn defender_removed(position: &Chess, line: &[Move]) -> Option<Fact> {
    let &[first, answer, second, ..] = line else {
        return None;
    };
    let (board, taken, target) = (position.board(), first.to(), second.to());
    let enemy = !position.turn();
    let stood_there = board.color_at(target) == Some(enemy) && answer.to() != target;
    let defended = board.attacks_from(taken).contains(target);
    let is_capture = first.is_capture() && !first.is_en_passant() && second.is_capture();
    if !is_capture || second.is_en_passant() || taken == target || !stood_there || !defended {
        return None;
    }
    let text = format!(
        "{} takes {}, which defended {}.",
        san(position, first),
        piece(board, taken),
        piece(board, target)
    );
    Some(Fact::new(Topic::Defender, text, [taken, target]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, position};
    use super::*;

    fn check(fact: fn(&Chess, Move, Move) -> Option<Fact>, cases: &[(&str, &str, &str)]) {
        for (fen, moves, expected) in cases {
            let before = position(fen);
            let [played, reply] = line(&before, moves)[..] else {
                panic!("two moves");
            };
            let found = fact(&before, played, reply).map(|fact| fact.text);
            assert_eq!(&found.unwrap_or_default(), expected, "{moves} in {fen}");
        }
    }

    #[test]
    fn defences_given_up() {
        check(
            defence_given_up,
            &[
                (
                    "4k3/8/8/4r3/4P3/2N5/8/6K1 w - - 0 1",
                    "Nb5 Rxe4",
                    "The knight that moved to b5 no longer defends the pawn on e4.",
                ),
                (
                    "4k3/8/8/8/8/1b6/P7/Q5K1 w - - 0 1",
                    "Qf6 Bxa2",
                    "The queen that moved to f6 no longer defends the pawn on a2.",
                ),
                (
                    "3rk3/8/8/8/3B4/4P3/8/6K1 w - - 0 1",
                    "e4 Rxd4",
                    "The pawn that moved to e4 no longer defends the bishop on d4.",
                ),
                (
                    "3rk3/8/8/8/3B4/3K4/8/8 w - - 0 1",
                    "Kc2 Rxd4",
                    "The king that moved to c2 no longer defends the bishop on d4.",
                ),
            ],
        );
    }

    #[test]
    fn defences_kept_or_never_there() {
        check(
            defence_given_up,
            &[
                // No fact: the piece still defends; it never did; the moved piece itself is
                // captured; the reply is not a capture.
                ("4k3/8/8/4r3/4P3/8/6B1/6K1 w - - 0 1", "Bh1 Rxe4", ""),
                ("4k3/8/8/4r3/4P3/8/6N1/6K1 w - - 0 1", "Nh4 Rxe4", ""),
                ("4k3/8/8/4r3/4P3/2N5/8/6K1 w - - 0 1", "Nd5 Rxd5", ""),
                ("4k3/8/8/4r3/4P3/2N5/8/6K1 w - - 0 1", "Nb5 Rc5", ""),
            ],
        );
    }

    #[test]
    fn lines_opened() {
        check(
            line_opened,
            &[
                (
                    "4r1k1/8/8/8/4N3/8/8/4Q1K1 w - - 0 1",
                    "Nc5 Rxe1+",
                    "The move opens the line from the rook on e8 to the queen on e1.",
                ),
                (
                    "6k1/6b1/8/8/3P4/8/8/R5K1 w - - 0 1",
                    "d5 Bxa1",
                    "The move opens the line from the bishop on g7 to the rook on a1.",
                ),
                (
                    "q5k1/8/8/3N4/8/8/8/1K5R w - - 0 1",
                    "Nf4 Qxh1+",
                    "The move opens the line from the queen on a8 to the rook on h1.",
                ),
                ("3r2k1/8/8/8/8/2Pp4/8/3R2K1 b - - 0 1", "d2 Rxd2", ""),
            ],
        );
        check(
            line_opened,
            &[
                // No fact: the line was already open; the moved piece is captured; the reply is not
                // a capture.
                ("4r1k1/8/8/8/8/3N4/8/4Q1K1 w - - 0 1", "Nc5 Rxe1+", ""),
                ("4r1k1/8/8/8/4N3/8/8/4Q1K1 w - - 0 1", "Ng5 Re7", ""),
                ("4r1k1/8/8/4P3/8/8/8/4Q1K1 w - - 0 1", "e6 Rxe6", ""),
            ],
        );
    }

    #[test]
    fn defenders_that_are_taken() {
        for (fen, moves, expected) in [
            (
                "4k3/8/5n2/3b2B1/8/8/8/3RK3 w - - 0 1",
                "Bxf6 Kf7 Rxd5",
                "Bxf6 takes the knight on f6, which defended the bishop on d5.",
            ),
            // No fact: the captured piece did not defend the other; the opponent recaptures on that
            // square; the line is too short.
            ("4k3/8/5n2/2b3B1/8/8/8/2R1K3 w - - 0 1", "Bxf6 Kf7 Rxc5", ""),
            ("4k3/8/5n2/3b2B1/8/8/8/3RK3 w - - 0 1", "Bxf6 Bf7 Rd8+", ""),
            ("4k3/8/5n2/3b2B1/8/8/8/3RK3 w - - 0 1", "Bxf6", ""),
        ] {
            let position = position(fen);
            let found = defender_removed(&position, &line(&position, moves));
            let found = found.map(|fact| fact.text).unwrap_or_default();
            assert_eq!(found, expected, "{moves} in {fen}");
        }
    }
}
