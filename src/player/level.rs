//! Levels above those of people.
//!
//! At the top of the learned human ratings the engine is still far below its full strength. Levels
//! above are the search itself with a number of nodes. Doublings come closer together as levels
//! rise, so that the first steps are no larger than those between human levels. `bench/people.md`
//! has the matches.

use crate::agent::HIGHEST_RATING;

/// The highest level. Its nodes take less than a second on a processor core: at shorter
/// times it is the full strength.
pub const HIGHEST_LEVEL: u16 = 3200;
/// Nodes of a level just above people's ratings, as strong as the last of those, …
const FIRST_NODES: f64 = 20.0;
/// … how often they have doubled at the highest level, …
const DOUBLINGS: f64 = 7.0;
/// … and the power of the way to it with which doublings grow.
const POWER: f64 = 1.5;
/// At this temperature moves are drawn by their visits, so that games differ: a move with
/// half the visits of another is drawn a thirtieth as often.
pub(super) const TEMPERATURE: f32 = 0.2;

/// The nodes of a level above people's ratings.
pub(super) fn nodes(level: u16) -> u64 {
    let above = f64::from(level.saturating_sub(HIGHEST_RATING));
    let way = above / f64::from(HIGHEST_LEVEL - HIGHEST_RATING);
    (FIRST_NODES * (DOUBLINGS * way.powf(POWER)).exp2()) as u64
}
