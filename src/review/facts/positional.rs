//! Facts about moves that lose no material.

use super::course::{Course, LEAST, PAWN};
use super::situation::Moment;
use super::{
    Fact, Topic, blockade, castling_given_up, castling_missed, doubled_pawns, new_passed_pawn,
    passed_pawn_advanced, pawn_ending, queens_off, threat_left,
};
use shakmaty::{Chess, Move, Position};

/// Passed pawns are mentioned only if at most this many pieces other than kings and pawns are left.
const ENDGAME: usize = 6;
/// Maximum number of facts; more would bury the first one.
const MOST: usize = 2;
/// If the move loses material that the best move loses as well, this drop in centipawns is the
/// largest that is called positional.
const SMALL: i32 = 250;

/// States that the loss is not one of material, given the material in both lines. A sacrifice of more
/// than a pawn in the best line, or material in return for the loss, is a sign of an attack, which is
/// not positional.
pub(super) fn positional(played: &Course, best: &Course, drop: i32) -> Option<Fact> {
    let (end, other) = (played.last()?, best.last()?);
    let gain = played.worth();
    let is_small = drop <= SMALL;
    let is_calm = gain <= PAWN && best.least() >= -2 * PAWN;
    let is_plain = is_calm && best.least() >= -PAWN;
    let dip = played.keeps().filter(|dip| is_plain && *dip <= PAWN);
    let text = if dip.is_some_and(|dip| dip < LEAST) {
        "The move loses no material; the loss is positional."
    } else if dip.is_some() {
        "In the end, the move loses no material; the loss is positional."
    } else if is_calm && is_small && end.is_like(other) && !end.is_even() {
        "The best move leaves the same material; the loss is positional."
    } else if is_calm && is_small && best.worth() <= gain && gain < 0 {
        "The best move costs as much material; the loss is positional."
    } else {
        return None;
    };
    Some(Fact::new(Topic::Positional, text.to_owned(), []))
}

/// Returns the drawbacks of the move that was played; `next` is the position after it.
pub(super) fn drawbacks(moment: &Moment<'_>, next: &Chess) -> Vec<Fact> {
    let Some(&reply) = moment.reply.moves.first() else {
        return Vec::new();
    };
    let mover = moment.before.turn();
    let best = moment.best.moves;
    let all: Vec<Move> = [&[moment.played], moment.reply.moves].concat();
    let of_best = |fact: Option<Fact>, same: Option<Fact>| fact.filter(|_| same.is_none());
    let facts = [
        best.first()
            .and_then(|&best| threat_left(moment.before, &all, best)),
        of_best(
            queens_off(moment.before, &all, !mover),
            queens_off(moment.before, best, !mover),
        ),
        of_best(
            pawn_ending(moment.before, &all),
            pawn_ending(moment.before, best),
        ),
        new_passed_pawn(next, reply).filter(|_| is_endgame(next)),
        best.first()
            .and_then(|&best| castling_given_up(moment.before, &all, best)),
        blockade(next, reply),
        doubled_pawns(next, moment.reply.moves),
    ];
    facts.into_iter().flatten().take(MOST).collect()
}

/// Returns the merits of the best move, if it neither wins material nor mates.
pub(super) fn merits(moment: &Moment<'_>) -> Option<Fact> {
    let &best = moment.best.moves.first()?;
    let (before, mover) = (moment.before, moment.before.turn());
    let facts = [
        queens_off(before, moment.best.moves, mover),
        castling_missed(before, best),
        new_passed_pawn(before, best).filter(|_| is_endgame(before)),
        passed_pawn_advanced(before, best),
        blockade(before, best),
        doubled_pawns(before, moment.best.moves),
    ];
    facts.into_iter().flatten().next()
}

fn is_endgame(position: &Chess) -> bool {
    let board = position.board();
    (board.occupied() & !board.pawns() & !board.kings()).count() <= ENDGAME
}
