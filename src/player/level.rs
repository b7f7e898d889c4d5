//! Levels above human ratings.
//!
//! At the highest rating in the training games, the engine is still far below its full strength.
//! Above that rating, each level is a search with a limited number of nodes. The number doubles
//! over fewer and fewer rating points as levels rise, so that the first steps are no larger than
//! those between human levels. The matches are in `bench/people.md`.

use crate::agent::HIGHEST_RATING;

/// The highest level. A search of its nodes takes less than a second on one CPU core; if the clock
/// allows less time, this level plays at full strength.
pub const HIGHEST_LEVEL: u16 = 3200;
/// Number of nodes at the level just above human ratings, which is as strong as the highest human
/// level, …
const FIRST_NODES: f64 = 20.0;
/// … the number of doublings from there to the highest level, …
const DOUBLINGS: f64 = 7.0;
/// … and the exponent of the power law by which the doublings increase with the level.
const POWER: f64 = 1.5;
/// The temperature at which moves are sampled by visits, so that games differ. A move with half as
/// many visits as another is sampled a thirtieth as often.
pub(super) const TEMPERATURE: f32 = 0.2;

/// Returns the number of nodes at a level above human ratings.
pub(super) fn nodes(level: u16) -> u64 {
    let above = f64::from(level.saturating_sub(HIGHEST_RATING));
    let way = above / f64::from(HIGHEST_LEVEL - HIGHEST_RATING);
    (FIRST_NODES * (DOUBLINGS * way.powf(POWER)).exp2()) as u64
}
