//! Compares networks' predictions with people's moves, by the rating of the player to move.
//!
//! The measure is Maia's (McIlroy-Young et al., "Aligning Superhuman AI with Human Behavior: Chess
//! as a Model System", 2020): the frequency with which the policy's likeliest move was played,
//! excluding openings. The policy's log-loss and calibration are also reported, as well as how well
//! the value predicts the result.

mod bootstrap;
mod estimate;
mod frequency;
mod habits;
mod listing;
mod positions;
mod prediction;
mod samples;
mod score;

pub use bootstrap::{Difference, Interval, compare, over_games};
pub use estimate::Estimate;
pub use frequency::{Frequency, frequencies};
pub use habits::{Followed, Habit, NAMES as HABIT_NAMES};
pub use listing::{Listed, list};
pub use positions::{Position, Positions, Selection, read};
pub use prediction::{
    Answer, Evaluator, Prediction, PredictionError, Respondent, Response, Sampler, Uncorrected, ask,
};
pub use samples::{Sample, samples};
pub use score::{Score, score};

use serde::Serialize;
use std::collections::BTreeMap;

/// Width of a rating band.
pub const BAND: u16 = 200;
/// The lower end of the last band, which has no upper end.
pub const LAST_BAND: u16 = 2200;

/// A band of ratings of the player to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Band {
    /// The lowest rating in the band.
    pub from: u16,
    /// The highest rating in the band; `None` for the last band.
    pub to: Option<u16>,
}

impl Band {
    /// Returns the band of a rating.
    pub fn of(rating: u16) -> Band {
        let from = (rating / BAND * BAND).min(LAST_BAND);
        Band {
            from,
            to: (from < LAST_BAND).then_some(from + BAND - 1),
        }
    }
}

/// Calls `measure` with the indices of each band's positions, and with all indices under `None`.
pub fn by_band<T>(
    positions: &Positions,
    mut measure: impl FnMut(&[usize]) -> T,
) -> Vec<(Option<Band>, T)> {
    let mut bands: BTreeMap<Band, Vec<usize>> = BTreeMap::new();
    for (place, position) in positions.positions.iter().enumerate() {
        bands
            .entry(Band::of(position.rating))
            .or_default()
            .push(place);
    }
    let all: Vec<usize> = (0..positions.positions.len()).collect();
    let parts = bands.into_iter().map(|(band, places)| (Some(band), places));
    let parts = parts.chain([(None, all)]);
    parts
        .map(|(band, places)| (band, measure(&places)))
        .collect()
}

/// Groups indices by game. Positions in a game are similar, so standard errors are computed for a
/// random sample of games, not of positions.
fn by_game<'a>(positions: &'a Positions, places: &'a [usize]) -> impl Iterator<Item = &'a [usize]> {
    let game = |place: usize| positions.positions[place].game;
    places.chunk_by(move |&a, &b| game(a) == game(b))
}
