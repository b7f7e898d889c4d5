//! The material at the ends of two lines, if neither line shows at once what the move lost.

use super::board::after;
use super::course::{Course, LEAST, PAWN, ScoreDrop};
use super::words::{list, side};
use super::{Fact, Outcome, Topic};
use shakmaty::{Chess, Move, Position};

/// The smallest difference in centipawns that is told.
const TOLD: i32 = 90;

/// States what the player has less at the end of the line of the move played than at the end of the
/// best line, which begins with `best`.
pub(super) fn less_at_the_end(
    before: &Chess,
    [played, best]: [&Course; 2],
    drop: ScoreDrop,
    name: &str,
) -> Option<Fact> {
    let mover = before.turn();
    // Before and after the last moves of the lines, which are often careless.
    let lost = [Course::last, Course::end].map(|of| {
        let [worse, better] = [end(before, played, of)?, end(before, best, of)?];
        let outcome = Outcome::between(&better, &worse);
        let less = -outcome.worth(mover);
        let lost = outcome.only_lost(mover)?;
        (less >= TOLD && drop.fits(less)).then_some(lost)
    });
    let [Some(lost), Some(same)] = lost else {
        return None;
    };
    if lost != same {
        return None;
    }
    let text = format!(
        "At the end of the lines, {} has {} less than after {name}.",
        side(mover),
        list(&lost)
    );
    Some(Fact::new(Topic::Material, text, []))
}

/// States that the material is the same at the ends of both lines, whatever happens on the way, so
/// that the loss is one of position; the best line begins with `best`.
pub(super) fn same_at_the_end(
    before: &Chess,
    [played, best]: [&Course; 2],
    name: &str,
) -> Option<Fact> {
    let mover = before.turn();
    let apart = |of: fn(&Course) -> Option<&Outcome>| {
        let [worse, better] = [end(before, played, of)?, end(before, best, of)?];
        Some(Outcome::between(&better, &worse).worth(mover).abs())
    };
    // A pawn may be on the way back in the last moves.
    let is_same = apart(Course::end)? < LEAST && apart(Course::last)? <= PAWN;
    let text = format!(
        "At the end of the lines, {} has as much material as after {name}; the loss is positional.",
        side(mover)
    );
    is_same.then(|| Fact::new(Topic::Positional, text, []))
}

/// Returns one of a line's last quiet positions.
fn end(before: &Chess, course: &Course, of: impl Fn(&Course) -> Option<&Outcome>) -> Option<Chess> {
    let moves: &[Move] = &course.line[..of(course)?.quiet];
    Some(moves.iter().fold(before.clone(), |it, &mv| after(&it, mv)))
}
