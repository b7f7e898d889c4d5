//! Doubled pawns that result from an exchange.

use super::board::after;
use super::words::{self, side};
use super::{Fact, Topic};
use shakmaty::{Chess, File, Move, Position, Role};

/// States that the other side recaptures with a pawn in a line's second move, which leaves it with
/// doubled pawns on that file.
pub fn doubled_pawns(position: &Chess, line: &[Move]) -> Option<Fact> {
    let &[first, answer, ..] = line else {
        return None;
    };
    let takes_back = first.is_capture() && answer.is_capture() && answer.to() == first.to();
    if !takes_back || answer.role() != Role::Pawn || answer.is_promotion() {
        return None;
    }
    let other = !position.turn();
    let end = after(&after(position, first), answer);
    let file = answer.to().file();
    let on_file = |position: &Chess, file: File| {
        let pawns = position.board().pawns() & position.board().by_color(other);
        pawns.into_iter().filter(|it| it.file() == file).count()
    };
    if on_file(position, file) == 0 || on_file(&end, file) < 2 {
        return None;
    }
    let (moves, name) = (words::line(position, &line[..2]), side(other));
    let text = format!(
        "After {moves}, {name} has doubled pawns on the {}-file.",
        file.char()
    );
    let pawns = end.board().pawns() & end.board().by_color(other);
    let squares = pawns.into_iter().filter(|it| it.file() == file);
    Some(Fact::new(Topic::Structure, text, squares))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, position};
    use super::*;

    #[test]
    fn pawns_are_doubled() {
        for (fen, moves, expected) in [
            (
                "4k3/1pp5/2n5/1B6/8/8/8/4K3 w - - 0 1",
                "Bxc6+ bxc6",
                "After Bxc6+ bxc6, Black has doubled pawns on the c-file.",
            ),
            // No fact: there is no second pawn; a piece recaptures; the capture is on another
            // square.
            ("4k3/1p6/2n5/1B6/8/8/8/4K3 w - - 0 1", "Bxc6+ bxc6", ""),
            ("4k3/2p5/2n5/1B6/2q5/8/8/4K3 w - - 0 1", "Bxc6+ Qxc6", ""),
            ("4k3/ppp5/2n5/1B6/8/P7/8/4K3 w - - 0 1", "Bxc6+ Kf8", ""),
        ] {
            let position = position(fen);
            let found = doubled_pawns(&position, &line(&position, moves));
            let found = found.map(|fact| fact.text).unwrap_or_default();
            assert_eq!(found, expected, "{moves} in {fen}");
        }
    }
}
