//! Finds features that predict puzzle themes.

use super::Transcoder;
use crate::chess::Game;
use crate::explain::ExplainError;
use crate::explain::evaluator::{Evaluator, floats};
use crate::network::Network;
use serde::{Deserialize, Serialize};
use tch::Kind;

/// Tactical motifs, by Lichess's names of the themes.
pub const MOTIFS: [&str; 14] = [
    "fork",
    "pin",
    "skewer",
    "discoveredAttack",
    "doubleCheck",
    "deflection",
    "attraction",
    "hangingPiece",
    "trappedPiece",
    "backRankMate",
    "smotheredMate",
    "promotion",
    "xRayAttack",
    "exposedKing",
];

/// Minimum number of selection puzzles that must have a theme.
const FEWEST: usize = 20;

/// A position from a puzzle.
#[derive(Clone, Debug)]
pub struct LabelledGame {
    /// The game up to the first position to solve.
    pub game: Game,
    /// The puzzle's themes.
    pub themes: Vec<String>,
    /// Whether the puzzle is used to select features. Otherwise it is used to evaluate them.
    pub selects: bool,
}

/// The feature that best predicts a theme. It predicts that the puzzle has the theme if the
/// feature's greatest activation over the squares exceeds a threshold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThemeFeature {
    /// The theme.
    pub theme: String,
    /// The feature, numbered from 0. With this feature and this threshold, the prediction has the
    /// best F1 over the puzzles used for selection.
    pub feature: usize,
    /// The threshold of the activation.
    pub threshold: f32,
    /// Fraction of the evaluation puzzles above the threshold that have the theme.
    pub precision: f64,
    /// Fraction of the evaluation puzzles with the theme that are above the threshold.
    pub recall: f64,
    /// Fraction of all evaluation puzzles that have the theme, which is the precision of chance.
    pub base_rate: f64,
    /// Number of evaluation puzzles.
    pub puzzles: usize,
}

/// For each motif, finds the feature that best predicts it over the selection puzzles, and
/// evaluates the feature on the other puzzles. Motifs with too few puzzles are skipped.
///
/// # Errors
/// [`ExplainError`] if the network has no such layer.
pub fn predict_themes(
    transcoder: &Transcoder,
    network: &Network,
    puzzles: &[LabelledGame],
) -> Result<Vec<ThemeFeature>, ExplainError> {
    let _guard = tch::no_grad_guard();
    let evaluator = Evaluator::new(network)?;
    let mut scores: Vec<f32> = Vec::new();
    for puzzles in puzzles.chunks(super::BATCH) {
        let games: Vec<Game> = puzzles.iter().map(|it| it.game.clone()).collect();
        let active = transcoder.activations(&evaluator, &games)?;
        scores.extend(floats(
            &active.amax([1i64].as_slice(), false).to_kind(Kind::Float),
        ));
    }
    let features = transcoder.about.features;
    let half = |selects: bool| -> Vec<usize> {
        let places = 0..puzzles.len();
        places
            .filter(|&place| puzzles[place].selects == selects)
            .collect()
    };
    let (selecting, judging) = (half(true), half(false));
    let score = |puzzle: usize, feature: usize| scores[features * puzzle + feature];
    // The order of the puzzles by each feature's activation, strongest first.
    let orders: Vec<Vec<usize>> = (0..features)
        .map(|feature| {
            let mut order = selecting.clone();
            order.sort_by(|&a, &b| score(b, feature).total_cmp(&score(a, feature)));
            order
        })
        .collect();
    let motifs = MOTIFS.iter().filter_map(|&theme| {
        let has: Vec<bool> = puzzles
            .iter()
            .map(|it| it.themes.iter().any(|name| name == theme))
            .collect();
        let count = |places: &[usize]| places.iter().filter(|&&place| has[place]).count();
        if count(&selecting) < FEWEST || count(&judging) == 0 {
            return None;
        }
        let best = orders.iter().enumerate().map(|(feature, order)| {
            let of = |puzzle| score(puzzle, feature);
            let (f1, threshold) = best_threshold(order, &has, of);
            (f1, feature, threshold)
        });
        let best = best.max_by(|a, b| a.0.total_cmp(&b.0));
        let (_, feature, threshold) = best.filter(|&(f1, ..)| f1 > 0.0)?;
        let above: Vec<usize> = judging
            .iter()
            .copied()
            .filter(|&puzzle| score(puzzle, feature) > threshold)
            .collect();
        Some(ThemeFeature {
            theme: theme.to_owned(),
            feature,
            threshold,
            precision: count(&above) as f64 / above.len().max(1) as f64,
            recall: count(&above) as f64 / count(&judging) as f64,
            base_rate: count(&judging) as f64 / judging.len() as f64,
            puzzles: judging.len(),
        })
    });
    Ok(motifs.collect())
}

/// Returns the best F1, and the threshold with which it is reached. `order` lists the puzzles by
/// decreasing score. Puzzles with scores at or below the threshold are classified as not having the
/// theme.
fn best_threshold(order: &[usize], has: &[bool], score: impl Fn(usize) -> f32) -> (f64, f32) {
    let all = order.iter().filter(|&&puzzle| has[puzzle]).count();
    let mut found = (0.0, f32::INFINITY);
    let mut hits = 0;
    for (place, &puzzle) in order.iter().enumerate() {
        hits += usize::from(has[puzzle]);
        let next = order
            .get(place + 1)
            .map_or(f32::NEG_INFINITY, |&it| score(it));
        let here = score(puzzle);
        // Puzzles with equal scores are always on the same side of a threshold, and an inactive
        // feature is not evidence of a theme.
        if here <= 0.0 {
            break;
        }
        if next < here {
            let f1 = 2.0 * hits as f64 / (place + 1 + all) as f64;
            if f1 > found.0 {
                found = (f1, next.max(0.0));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_parts_those_with_the_theme_from_those_without() {
        let scores = [0.9, 0.8, 0.8, 0.3, 0.0];
        let order = [0, 1, 2, 3, 4];
        let has = [true, true, false, false, true];
        let (f1, threshold) = best_threshold(&order, &has, |puzzle| scores[puzzle]);
        // Of the first three puzzles, two have the theme, and so do three of all puzzles.
        assert_eq!((f1, threshold), (4.0 / 6.0, 0.3));
        let (f1, threshold) = best_threshold(&order, &[false; 5], |puzzle| scores[puzzle]);
        assert_eq!((f1, threshold), (0.0, f32::INFINITY));
    }
}
