//! Castling rights that were given up, and castling that was missed.

use super::board::after;
use super::words::{self, side};
use super::{Fact, Topic};
use shakmaty::{Chess, Move, Position};

/// Number of plies within which the right is lost.
const PLIES: usize = 3;

/// States that the player who moved can no longer castle after the first moves of a line, including
/// the played move, but could have kept the right or used it.
pub fn castling_given_up(before: &Chess, line: &[Move], best: Move) -> Option<Fact> {
    let mover = before.turn();
    let has_right = |position: &Chess| position.castles().has_color(mover);
    if !has_right(before) || !best.is_castle() && !has_right(&after(before, best)) {
        return None;
    }
    let mut position = before.clone();
    for (plies, &mv) in (1..).zip(line.iter().take(PLIES)) {
        if position.turn() == mover && mv.is_castle() {
            return None;
        }
        position = after(&position, mv);
        if !has_right(&position) {
            let (moves, name) = (words::line(before, &line[..plies]), side(mover));
            let text = format!("After {moves}, {name} can no longer castle.");
            return Some(Fact::new(
                Topic::Castling,
                text,
                position.board().king_of(mover),
            ));
        }
    }
    None
}

/// States that the best move castles.
pub fn castling_missed(before: &Chess, best: Move) -> Option<Fact> {
    let text = format!("{} could have castled.", side(before.turn()));
    let squares = before.board().king_of(before.turn());
    best.is_castle()
        .then(|| Fact::new(Topic::Castling, text, squares))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, mv, position};
    use super::*;

    #[test]
    fn rights_that_are_lost() {
        let fen = "r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R w KQkq - 0 1";
        let before = position(fen);
        let bare = position("4k3/8/8/8/8/8/8/4K2R w - - 0 1");
        let text = |fact: Option<Fact>| fact.map(|it| it.text).unwrap_or_default();
        let given_up = "After Kf1, White can no longer castle.";
        for (played, best, expected) in [
            ("Kf1", "O-O", given_up),
            ("Kf1", "a4", given_up),
            // No fact: the right to castle on one side is left; both moves give up the right; the
            // move castles.
            ("Rg1", "O-O", ""),
            ("Kf1", "Kd1", ""),
            ("O-O", "a4", ""),
        ] {
            let [played, best] = [played, best].map(|text| mv(&before, text));
            let found = text(castling_given_up(&before, &[played], best));
            assert_eq!(found, expected);
        }
        let [king, rook] = ["Kf1", "Rg1"].map(|text| mv(&bare, text));
        assert_eq!(castling_given_up(&bare, &[king], rook), None);
        // A check forces the king to move.
        let checked = position("r3k3/8/8/8/8/8/4P3/4K2R w K - 0 1");
        let moves = line(&checked, "e3 Ra1+ Ke2");
        let found = text(castling_given_up(&checked, &moves, mv(&checked, "O-O")));
        assert_eq!(found, "After e3 Ra1+ Ke2, White can no longer castle.");
        let missed = text(castling_missed(&before, mv(&before, "O-O-O")));
        assert_eq!(missed, "White could have castled.");
        assert_eq!(castling_missed(&before, mv(&before, "a4")), None);
    }
}
