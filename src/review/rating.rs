//! A player's rating, estimated from the moves with the model of human play.
//!
//! The likelihood of the moves is the product of the shares of players who play them, computed for
//! each rating as a sum of logarithms. Moves in one game are not independent, so the likelihood is
//! raised to the power `TEMPER`. Games are not independent either: a player's style misleads the
//! model in the same way in all of them, with an error of standard deviation `SHARED` that no
//! number of games removes, so the likelihood is blurred by it. The prior is a normal distribution
//! of players' ratings (`USUAL`, `SPREAD`). The estimate is the mean of the posterior, and the
//! interval contains 80 % of it. `bench/review.md` states how the constants were chosen and tested.

use super::people::{Curve, RATINGS};
use serde::{Deserialize, Serialize};

/// The power to which the likelihood is raised.
const TEMPER: f64 = 0.6;
/// The mean of players' ratings; `SPREAD` is their standard deviation.
const USUAL: f64 = 1550.0;
const SPREAD: f64 = 350.0;
/// Standard deviation of the error that a player's games share.
const SHARED: f64 = 100.0;
/// Smaller shares count as this much, so that one odd move does not decide the estimate.
const LEAST: f32 = 0.002;
/// Step in rating points between the ratings compared.
const STEP: usize = 10;
/// Minimum number of moves for an estimate.
const FEWEST: usize = 5;

/// The logarithm of the likelihood at each of [`RATINGS`].
pub type LogLikelihood = [f64; RATINGS.len()];

/// An estimate of a player's rating.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Rating {
    /// The estimate.
    pub estimate: u16,
    /// Lower end of the 80 % interval.
    pub low: u16,
    /// Upper end of the 80 % interval.
    pub high: u16,
    /// Number of moves on which the estimate is based.
    pub moves: usize,
}

/// Adds the shares of players who play a move that was played.
pub fn add(sum: &mut LogLikelihood, shares: &Curve) {
    for (sum, &share) in sum.iter_mut().zip(shares) {
        *sum += f64::from(share.max(LEAST)).ln();
    }
}

/// Returns the player's rating, or `None` if there are too few moves.
pub fn estimate(likelihood: &LogLikelihood, moves: usize) -> Option<Rating> {
    if moves < FEWEST {
        return None;
    }
    let [lowest, highest] = [RATINGS[0], RATINGS[RATINGS.len() - 1]];
    let ratings: Vec<f64> = (lowest..=highest).step_by(STEP).map(f64::from).collect();
    let prior = |&rating: &f64| normal(rating - USUAL, SPREAD);
    let blurred = blurred(likelihood, &ratings);
    let weights = ratings.iter().map(prior).zip(blurred);
    let weights: Vec<f64> = weights.map(|(prior, likely)| prior * likely).collect();
    let total: f64 = weights.iter().sum();
    let pairs = || ratings.iter().zip(&weights);
    let mean = pairs().map(|(rating, weight)| rating * weight).sum::<f64>() / total;
    let quantile = |share: f64| {
        let mut sum = 0.0;
        let mut found = pairs().find(|&(_, weight)| {
            sum += weight;
            sum >= share * total
        });
        found.take().map_or(mean, |(&rating, _)| rating)
    };
    Some(Rating {
        estimate: mean.round() as u16,
        low: quantile(0.1).min(mean).round() as u16,
        high: quantile(0.9).max(mean).round() as u16,
        moves,
    })
}

/// Returns the likelihood of ratings, up to a factor, blurred by the error that a player's games
/// share.
fn blurred(likelihood: &LogLikelihood, ratings: &[f64]) -> Vec<f64> {
    let logarithms = ratings.iter().map(|&at| TEMPER * between(likelihood, at));
    let logarithms: Vec<f64> = logarithms.collect();
    let most = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let likely: Vec<f64> = logarithms.iter().map(|it| (it - most).exp()).collect();
    let at = |&rating: &f64| {
        let pairs = ratings.iter().zip(&likely);
        pairs
            .map(|(other, likely)| likely * normal(rating - other, SHARED))
            .sum()
    };
    ratings.iter().map(at).collect()
}

/// Returns the density of a normal distribution, up to a factor.
fn normal(distance: f64, deviation: f64) -> f64 {
    (-0.5 * (distance / deviation).powi(2)).exp()
}

/// Returns the logarithm of the likelihood at a rating, interpolated linearly between the known
/// ones.
fn between(likelihood: &LogLikelihood, rating: f64) -> f64 {
    let step = f64::from(RATINGS[1] - RATINGS[0]);
    let place = ((rating - f64::from(RATINGS[0])) / step).max(0.0);
    let low = (place as usize).min(likelihood.len() - 2);
    let part = place - low as f64;
    likelihood[low] * (1.0 - part) + likelihood[low + 1] * part
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the log-likelihood of `moves` moves, each of whose popularity peaks at `rating`.
    fn likelihood(rating: u16, moves: usize) -> LogLikelihood {
        let curve: Curve = std::array::from_fn(|place| {
            let distance = f32::from(RATINGS[place]) - f32::from(rating);
            0.5 * (-0.5 * (distance / 1000.0).powi(2)).exp()
        });
        let mut sum = LogLikelihood::default();
        (0..moves).for_each(|_| add(&mut sum, &curve));
        sum
    }

    #[test]
    fn more_moves_tell_more() {
        assert_eq!(estimate(&likelihood(2200, 4), 4), None);
        let few = estimate(&likelihood(2200, 10), 10).unwrap();
        let many = estimate(&likelihood(2200, 1000), 1000).unwrap();
        assert!(few.estimate > 1550 && few.estimate < many.estimate);
        assert!(many.estimate.abs_diff(2200) < 60, "{many:?}");
        assert!(many.high - many.low < few.high - few.low);
        assert!(few.low < few.estimate && few.estimate < few.high);
    }

    #[test]
    fn no_number_of_moves_is_certain() {
        let many = estimate(&likelihood(1800, 100_000), 60_000).unwrap();
        let width = many.high - many.low;
        // 80 % of a normal distribution lies within 1.28 standard deviations.
        let least = 2.0 * 1.28 * SHARED * SPREAD / SHARED.hypot(SPREAD);
        assert!(f64::from(width) > least - 25.0, "{many:?}");
    }

    #[test]
    fn moves_that_all_play_alike_tell_nothing() {
        let mut flat = LogLikelihood::default();
        (0..50).for_each(|_| add(&mut flat, &[0.3; 11]));
        let rating = estimate(&flat, 50).unwrap();
        assert!(rating.estimate.abs_diff(1550) < 60, "{rating:?}");
        assert!(rating.high - rating.low > 800, "{rating:?}");
        // Shares of zero must not break the estimate.
        add(&mut flat, &[0.0; 11]);
        assert!(estimate(&flat, 51).is_some());
    }
}
