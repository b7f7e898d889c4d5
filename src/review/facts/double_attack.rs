//! A quiet move that creates two threats; the line carries out one of them.

use super::board::{after, passed};
use super::new_threat::gained_before;
use super::words::{list, san};
use super::{Fact, Topic, best_capture, fork, gain};
use shakmaty::{Chess, Move, Position, Square};

/// Returns the two threats of a line's first move, if its third move carries out one of them. A
/// threat is a capture that gains material, more than it would have gained before the move. A
/// check creates no threats in this sense, because the opponent cannot pass.
pub fn double_attack(position: &Chess, line: &[Move]) -> Option<Fact> {
    let &[mv, _, executed, ..] = line else {
        return None;
    };
    let answered = after(position, mv);
    if mv.is_capture() || fork(position, mv).is_some() || best_capture(&answered, mv.to()) > 0 {
        return None;
    }
    let next = passed(&answered)?;
    let is_new = |threat: &Move| {
        let gains = gain(&next, *threat);
        threat.is_capture() && gains > 0 && gains > gained_before(position, *threat)
    };
    let threats = next.legal_moves().into_iter().filter(is_new);
    let threats: Vec<Move> = threats.collect();
    let first = threats.iter().find(|&&threat| threat == executed)?;
    let others = threats.iter().filter(|it| it.to() != first.to());
    let second = others.max_by_key(|&&mv| gain(&next, mv))?;
    let names = [first, second].map(|&threat| san(&next, threat));
    let text = format!("{} threatens {} at once.", san(position, mv), list(&names));
    let squares: [Square; 3] = [mv.to(), first.to(), second.to()];
    Some(Fact::new(Topic::Threat, text, squares))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{line, position};
    use super::*;

    #[test]
    fn two_threats_at_once() {
        // The Opera game: 7.Qb3 attacks f7 and b7.
        let fen = "rn1qkb1r/ppp2ppp/5n2/4p3/2B1P3/5Q2/PPP2PPP/RNB1K2R w KQkq - 2 7";
        for (moves, expected) in [
            ("Qb3 Qe7 Qxb7", "Qb3 threatens Qxb7 and Bxf7+ at once."),
            ("Qb3 Qd7 Bxf7+", "Qb3 threatens Bxf7+ and Qxb7 at once."),
            // No fact: the line carries out neither threat; there is one threat only.
            ("Qb3 Qe7 O-O", ""),
            ("Qg3 Qe7 Qxe5", ""),
        ] {
            let position = position(fen);
            let found = double_attack(&position, &line(&position, moves));
            let found = found.map(|fact| fact.text).unwrap_or_default();
            assert_eq!(found, expected, "{moves}");
        }
    }
}
