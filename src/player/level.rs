//! Levels above human ratings.
//!
//! At the highest rating of the training games, the engine is still far below its full
//! strength. From there on, a level is the search with a limited number of nodes. Doublings
//! come closer together as levels rise, so that the first steps are no larger than those
//! between human levels. `bench/people.md` has the matches.

use crate::agent::HIGHEST_RATING;

/// The highest level. Its nodes take less than a second on a processor core; with less time
/// it is full strength.
pub const HIGHEST_LEVEL: u16 = 3200;
/// Nodes of the level just above human ratings, as strong as the highest of those, …
const FIRST_NODES: f64 = 20.0;
/// … the number of doublings at the highest level, …
const DOUBLINGS: f64 = 7.0;
/// … and the power of the progress to it with which doublings grow.
const POWER: f64 = 1.5;
/// The temperature at which moves are sampled by visits, so that games differ: a move with
/// half the visits of another is sampled a thirtieth as often.
pub(super) const TEMPERATURE: f32 = 0.2;

/// Returns the nodes of a level above human ratings.
pub(super) fn nodes(level: u16) -> u64 {
    let above = f64::from(level.saturating_sub(HIGHEST_RATING));
    let way = above / f64::from(HIGHEST_LEVEL - HIGHEST_RATING);
    (FIRST_NODES * (DOUBLINGS * way.powf(POWER)).exp2()) as u64
}
