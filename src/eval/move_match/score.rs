//! The fit of predictions to human moves.

use super::estimate::{Estimate, estimate};
use super::frequency::{Frequency, frequencies};
use super::habits::HABITS;
use super::positions::Positions;
use super::{Prediction, by_game};
use crate::data::sample::Wdl;
use serde::Serialize;

/// Number of bins, of equal width, for the expected calibration error (Guo et al., "On Calibration
/// of Modern Neural Networks", 2017).
const BINS: usize = 15;
/// Probabilities are raised to at least this value; otherwise a value head without draws would have
/// an infinite loss.
const LEAST_PROBABILITY: f32 = 1e-6;

/// The fit of a network over some positions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Number of positions.
    pub positions: usize,
    /// Number of games that the positions come from.
    pub games: usize,
    /// Share of the positions in which the likeliest move was played.
    pub move_match: Estimate,
    /// −ln of the probability of the move played.
    pub log_loss: Estimate,
    /// Expected calibration error of the likeliest move's probability, in 0…1.
    pub calibration_error: f64,
    /// How often people follow habits, and how often the predictions say so.
    pub habits: [Frequency; HABITS],
    /// Number of positions from games with a result; the following figures are computed over these.
    pub with_result: usize,
    /// Share of the positions in which the likeliest result occurred.
    pub result_accuracy: Estimate,
    /// −ln of the result's probability.
    pub result_log_loss: Estimate,
    /// Expected calibration error of the expected score, in points (0…1).
    pub score_calibration_error: f64,
}

/// Returns the fit of `predictions`, one for each position, over the positions at `places`.
pub fn score(positions: &Positions, predictions: &[Prediction], places: &[usize]) -> Score {
    let has_result = |&place: &usize| positions.positions[place].result.is_some();
    let with_result: Vec<usize> = places.iter().copied().filter(has_result).collect();
    let result = |place: usize| positions.positions[place].result.map_or(0, slot);
    let move_of = |place: usize| {
        let prediction = &predictions[place];
        let matched = f64::from(u8::from(prediction.matched));
        (f64::from(prediction.confidence), matched)
    };
    let score_of = |place: usize| {
        let [win, draw, _] = predictions[place].wdl;
        let scored = [1.0, 0.5, 0.0][result(place)];
        (f64::from(win + draw / 2.0), scored)
    };
    Score {
        positions: places.len(),
        games: by_game(positions, places).count(),
        move_match: estimate(positions, places, |place| move_of(place).1),
        log_loss: estimate(positions, places, |place| loss(predictions[place].played)),
        calibration_error: calibration_error(places.iter().map(|&place| move_of(place))),
        habits: frequencies(positions, predictions, places),
        with_result: with_result.len(),
        result_accuracy: estimate(positions, &with_result, |place| {
            f64::from(u8::from(likeliest(predictions[place].wdl) == result(place)))
        }),
        result_log_loss: estimate(positions, &with_result, |place| {
            loss(predictions[place].wdl[result(place)])
        }),
        score_calibration_error: calibration_error(
            with_result.iter().map(|&place| score_of(place)),
        ),
    }
}

/// Returns the index of a result among win, draw and loss.
fn slot(result: Wdl) -> usize {
    match result {
        Wdl::Win => 0,
        Wdl::Draw => 1,
        Wdl::Loss => 2,
    }
}

fn likeliest(wdl: [f32; 3]) -> usize {
    (0..3)
        .rev()
        .max_by(|&a, &b| wdl[a].total_cmp(&wdl[b]))
        .unwrap_or(0)
}

pub(super) fn loss(probability: f32) -> f64 {
    -f64::from(probability.max(LEAST_PROBABILITY)).ln()
}

/// Returns the mean over bins of |mean predicted − mean observed|, weighted by bin size. Each pair
/// consists of the prediction, in 0…1, and the observation.
fn calibration_error(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut bins = [0.0; BINS];
    let mut count = 0;
    for (foretold, came) in pairs {
        let bin = (foretold * BINS as f64) as usize;
        bins[bin.min(BINS - 1)] += foretold - came;
        count += 1;
    }
    bins.iter().map(|sum| f64::abs(*sum)).sum::<f64>() / f64::from(count.max(1))
}

#[cfg(test)]
mod tests {
    use super::super::positions::tests::{ALL, positions};
    use super::*;

    const GAMES: &str = "\
[Result \"1-0\"]\n[WhiteElo \"1500\"]\n[BlackElo \"1700\"]\n\n1. e4 e5 1-0\n
[Result \"1/2-1/2\"]\n[WhiteElo \"1500\"]\n[BlackElo \"1700\"]\n\n1. d4 d5 1/2-1/2\n
[Result \"*\"]\n[WhiteElo \"1500\"]\n\n1. c4 *\n";

    fn prediction(matched: bool, played: f32, wdl: [f32; 3]) -> Prediction {
        Prediction {
            matched,
            confidence: 0.75,
            played,
            wdl,
            habits: [None; HABITS],
        }
    }

    #[test]
    fn figures_are_those_of_the_definitions() {
        let set = positions(GAMES, &ALL);
        let even = [0.5, 0.0, 0.5];
        let predictions = [
            prediction(true, 0.75, [0.8, 0.2, 0.0]),
            prediction(true, 0.5, [0.0, 0.2, 0.8]),
            prediction(false, 0.25, even),
            prediction(true, 0.75, even),
            prediction(true, 0.75, even),
        ];
        let found = score(&set, &predictions, &[0, 1, 2, 3, 4]);
        assert_eq!((found.positions, found.games, found.with_result), (5, 3, 4));
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
        };
        near(found.move_match.mean, 0.8);
        // The deviations are 0.2 + 0.2, −0.8 + 0.2 and 0.2.
        near(found.move_match.error, (0.16f64 + 0.36 + 0.04).sqrt() / 5.0);
        let losses = 3.0 * 0.75f64.ln() + 0.5f64.ln() + 0.25f64.ln();
        near(found.log_loss.mean, -losses / 5.0);
        near(found.calibration_error, 0.05);
        near(found.result_accuracy.mean, 0.5);
        let impossible = f64::from(LEAST_PROBABILITY).ln();
        near(
            found.result_log_loss.mean,
            -(2.0 * 0.8f64.ln() + 2.0 * impossible) / 4.0,
        );
        // The pairs are 0.9 predicted and 1 scored, 0.1 and 0, and twice 0.5 and 0.5.
        near(found.score_calibration_error, 0.05);
    }

    #[test]
    fn nothing_measured_is_no_panic() {
        let set = positions(GAMES, &ALL);
        let found = score(&set, &[Prediction::default(); 5], &[4]);
        assert_eq!(found.with_result, 0);
        assert_eq!(found.result_accuracy, Estimate::default());
    }
}
