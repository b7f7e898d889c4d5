//! Means with intervals by a bootstrap over games, such as the difference between two networks.

use super::score::loss;
use super::{Positions, Prediction, by_game};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

/// Number of resamples of the games, drawn with replacement.
const RESAMPLES: usize = 2000;
/// The share of the resamples that lies below an interval, and the share that lies above it.
const TAIL: f64 = 0.025;
/// Seed for drawing the resamples.
const SEED: u64 = 95;

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// One network's advantage over another on the same positions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The difference in the share of moves matched; above 0, the first network is better.
    pub move_match: Interval,
    /// The difference in the policy's log-loss; below 0, the first network is better.
    pub log_loss: Interval,
}

/// Returns the scores of `first` minus those of `second`, over the positions at `places`.
pub fn compare(
    positions: &Positions,
    first: &[Prediction],
    second: &[Prediction],
    places: &[usize],
) -> Difference {
    let matched = |prediction: &Prediction| f64::from(u8::from(prediction.matched));
    let lost = |prediction: &Prediction| loss(prediction.played);
    let games = |value: &dyn Fn(&Prediction) -> f64| -> Vec<(f64, f64)> {
        let difference = |&place: &usize| value(&first[place]) - value(&second[place]);
        by_game(positions, places)
            .map(|game| (game.iter().map(difference).sum(), game.len() as f64))
            .collect()
    };
    let random = &mut Xoshiro256PlusPlus::seed_from_u64(SEED);
    Difference {
        move_match: interval(&games(&matched), random),
        log_loss: interval(&games(&lost), random),
    }
}

/// Returns the mean over positions with its interval, given each game's sum and number of
/// positions.
pub fn over_games(games: &[(f64, f64)]) -> Interval {
    interval(games, &mut Xoshiro256PlusPlus::seed_from_u64(SEED))
}

fn interval(games: &[(f64, f64)], random: &mut impl Rng) -> Interval {
    let ratio = |(sum, count): (f64, f64)| sum / count.max(1.0);
    let add = |total: (f64, f64), game: &(f64, f64)| (total.0 + game.0, total.1 + game.1);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = (0..games.len()).filter_map(|_| games.choose(random));
            ratio(drawn.fold((0.0, 0.0), add))
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| means[(share * (RESAMPLES - 1) as f64).round() as usize];
    Interval {
        mean: ratio(games.iter().fold((0.0, 0.0), add)),
        low: at(TAIL),
        high: at(1.0 - TAIL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_as_wide_as_theory_has_it() {
        // There are 400 games with one position each, and the first network alone matched three
        // quarters of them.
        let games = (0..400).map(|game| (f64::from(u8::from(game % 4 > 0)), 1.0));
        let found = interval(
            &games.collect::<Vec<_>>(),
            &mut Xoshiro256PlusPlus::seed_from_u64(1),
        );
        let half = 1.96 * (0.75f64 * 0.25 / 400.0).sqrt();
        assert_eq!(found.mean, 0.75);
        assert!((found.low - (0.75 - half)).abs() < 0.01, "{found:?}");
        assert!((found.high - (0.75 + half)).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn games_are_drawn_whole() {
        // Ten positions from one game are only one piece of evidence.
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let width = |games: &[(f64, f64)], random: &mut Xoshiro256PlusPlus| {
            let found = interval(games, random);
            found.high - found.low
        };
        let apart: Vec<_> = (0..1000).map(|game| (f64::from(game % 2), 1.0)).collect();
        let together: Vec<_> = (0..100)
            .map(|game| (f64::from(game % 2) * 10.0, 10.0))
            .collect();
        let ratio = width(&together, &mut random) / width(&apart, &mut random);
        assert!((2.5..4.0).contains(&ratio), "{ratio}");
    }
}
