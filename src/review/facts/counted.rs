//! The material in a line of Tessera's own search, which is short and noisy. It counts only if the
//! side that begins the line can force it, and if it fits the score.

use super::board::after;
use super::course::Course;
use super::situation::Variation;
use super::{Outcome, balance, forced, gives_away, outcome};
use shakmaty::{Chess, Move, Position};

/// Number of plies of a line in which material counts; later moves of a line have few visits.
const HORIZON: usize = 6;
/// The maximum difference in centipawns between a score and the material that its line leaves. If
/// the difference is larger, the score is not due to that material.
const ASTRAY: i32 = 300;

/// Returns the part of a line that counts, or that of the best defence if the line is not forced:
/// `first` leads from `before` to the position in which the line begins. Returns `None` if nothing
/// is certain.
pub(super) fn counted(before: &Chess, first: &[Move], line: &Variation<'_>) -> Option<Course> {
    let mut position = before.clone();
    first.iter().for_each(|&mv| position = after(&position, mv));
    let forced = forced(&position, line.moves)?;
    let side = position.turn();
    let sign = if side == before.turn() { 1 } else { -1 };
    let score = line.centipawns.map(|score| sign * score);
    let most = side.fold_wb(1, -1) * (forced.balance - balance(before));
    let of = |line: Vec<Move>| {
        let outcome = outcome(before, &line)?;
        let told = &line[first.len()..outcome.quiet.max(first.len())];
        let is_forced = outcome.gain(side) <= most
            && !gives_away(&position, told)
            && fits(before, &outcome, score);
        let wins = outcome.gain(side) > 0;
        let told = line[..outcome.quiet].to_vec();
        is_forced.then(|| (wins, Course::new(before, told)))
    };
    let joined = |rest: &[Move]| [first, rest].concat();
    let mut searched = joined(line.moves);
    searched.truncate(HORIZON);
    let expected = of(searched);
    let found = match expected {
        Some((true, _)) => expected,
        expected => of(joined(&forced.line))
            .filter(|(wins, _)| *wins)
            .or(expected),
    };
    found.map(|(_, course)| course)
}

/// Returns whether the score of the player who moved fits the material that a line leaves.
fn fits(before: &Chess, outcome: &Outcome, score: Option<i32>) -> bool {
    let mover = before.turn();
    let gain = outcome.gain(mover);
    let material = mover.fold_wb(1, -1) * balance(before) + gain;
    let material = (100 * material).clamp(-1000, 1000);
    score.is_none_or(|score| match gain {
        ..0 => score <= material + ASTRAY,
        _ => score >= material - ASTRAY,
    })
}
