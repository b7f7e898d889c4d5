//! Means over positions, with errors for a random sample of games.

use super::{Positions, by_game};
use serde::Serialize;

/// A mean with its standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The mean's standard error, for a random sample of games.
    pub error: f64,
}

/// Returns the mean of `value` over the positions at `places`, with its cluster-robust standard
/// error: the deviations within a game are summed before they are squared.
pub(super) fn estimate(
    positions: &Positions,
    places: &[usize],
    value: impl Fn(usize) -> f64,
) -> Estimate {
    let count = places.len().max(1) as f64;
    let mean = places.iter().map(|&place| value(place)).sum::<f64>() / count;
    let games = by_game(positions, places).map(|game| {
        let deviation: f64 = game.iter().map(|&place| value(place) - mean).sum();
        deviation * deviation
    });
    Estimate {
        mean,
        error: games.sum::<f64>().sqrt() / count,
    }
}
