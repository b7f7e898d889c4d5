//! A small network that corrects a policy of human play by the features of each move.
//!
//! A policy network that cannot tell a mate from a check gives mates the same probability at every
//! rating. The correction reads each move's [`Features`], its probability, and the player's rating,
//! and adds a number to the move's logit. `bench/fit-correction` fits it while the policy network
//! stays unchanged.

use super::Features;
use serde::{Deserialize, Serialize};

/// The ratings between which shifts are interpolated.
pub const KNOTS: [u16; 11] = [
    600, 800, 1000, 1200, 1400, 1600, 1800, 2000, 2200, 2400, 2600,
];
/// The rating that is assumed if it is unknown.
const USUAL: u16 = 1600;
/// The unit of the rating as an input.
const RATING_UNIT: f32 = 400.0;
/// Probabilities below this one are inputs as this one.
const LEAST: f32 = 1e-4;

/// Number of inputs of the network, per move: the features and their products with the rating, the
/// logarithm of the probability and its difference from the likeliest move's, the products of these
/// with the rating, and the rating.
pub const INPUTS: usize = 2 * Features::COUNT + 5;

/// Number of kinds of moves with a shift of their own: moves that give mate, moves that allow it,
/// and moves that leave a piece.
pub const KINDS: usize = 3;

/// The correction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correction {
    /// The weights of the hidden units, [units, [`INPUTS`]].
    pub hidden: Vec<Vec<f32>>,
    /// The biases of the hidden units, which are rectified.
    pub biases: Vec<f32>,
    /// The weight of each hidden unit in the output.
    pub output: Vec<f32>,
    /// Addends to the logits of moves of each kind, at the ratings [`KNOTS`]. It never falls
    /// with the rating for mates, and never rises for the others.
    pub shifts: [[f32; KNOTS.len()]; KINDS],
}

/// Why a correction cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorrectionError {
    /// The sizes of the layers do not fit together, or the program has other features.
    #[error("its layers do not have {INPUTS} inputs and one bias and output weight per unit")]
    Shape,
    /// A weight is NaN or infinite.
    #[error("a weight is NaN or infinite")]
    NotFinite,
}

impl Correction {
    /// Checks the sizes and the weights.
    ///
    /// # Errors
    /// [`CorrectionError`], if the correction cannot be used.
    pub fn check(&self) -> Result<(), CorrectionError> {
        let units = self.hidden.len();
        let fits = self.hidden.iter().all(|weights| weights.len() == INPUTS);
        if !fits || self.biases.len() != units || self.output.len() != units {
            return Err(CorrectionError::Shape);
        }
        let weights = self
            .hidden
            .iter()
            .flatten()
            .chain(self.shifts.iter().flatten());
        let mut weights = weights.chain(&self.biases).chain(&self.output);
        match weights.all(|weight| weight.is_finite()) {
            true => Ok(()),
            false => Err(CorrectionError::NotFinite),
        }
    }

    /// Corrects the logits of a position's legal moves, given their features and the rating of the
    /// player to move.
    pub fn correct(&self, features: &[Features], rating: Option<u16>, logits: &mut [f32]) {
        let rating = rating.unwrap_or(USUAL);
        let weights = knot_weights(rating);
        let rows = inputs(features, rating, logits);
        for ((logit, features), row) in logits.iter_mut().zip(features).zip(rows) {
            let units = self.hidden.iter().zip(&self.biases).zip(&self.output);
            let network: f32 = units
                .map(|((weights, bias), output)| {
                    let sum: f32 = weights.iter().zip(&row).map(|(a, b)| a * b).sum();
                    output * (sum + bias).max(0.0)
                })
                .sum();
            let kinds = kinds(features).into_iter().zip(&self.shifts);
            let shifts = kinds.filter(|(is_kind, _)| *is_kind);
            let shift: f32 = shifts
                .map(|(_, shifts)| shifts.iter().zip(&weights).map(|(a, b)| a * b).sum::<f32>())
                .sum();
            *logit += network + shift;
        }
    }
}

/// Returns whether a move is of each kind.
pub fn kinds(features: &Features) -> [bool; KINDS] {
    [
        features.mates,
        features.allows_mate,
        features.leaves_piece(),
    ]
}

/// Returns the weight of each of [`KNOTS`] in the interpolation at a rating. Ratings outside their
/// range count as the nearest of them.
pub fn knot_weights(rating: u16) -> [f32; KNOTS.len()] {
    let mut weights = [0.0; KNOTS.len()];
    let last = KNOTS.len() - 1;
    let rating = rating.clamp(KNOTS[0], KNOTS[last]);
    let place = f32::from(rating - KNOTS[0]) / f32::from(KNOTS[1] - KNOTS[0]);
    let low = (place as usize).min(last - 1);
    let part = place - low as f32;
    (weights[low], weights[low + 1]) = (1.0 - part, part);
    weights
}

/// Returns the network's inputs for each move, given the policy's logits.
pub fn inputs(features: &[Features], rating: u16, logits: &[f32]) -> Vec<[f32; INPUTS]> {
    let rating = f32::from(rating.clamp(KNOTS[0], KNOTS[KNOTS.len() - 1]));
    let rating = (rating - f32::from(USUAL)) / RATING_UNIT;
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = logits.iter().map(|logit| (logit - top).exp()).sum();
    let moves = features.iter().zip(logits);
    moves
        .map(|(features, logit)| {
            let behind = (logit - top).max(LEAST.ln());
            let log = (logit - top - sum.ln()).max(LEAST.ln());
            let mut row = [0.0; INPUTS];
            let known = features.inputs();
            for (place, feature) in known.into_iter().enumerate() {
                row[place] = feature;
                row[Features::COUNT + place] = feature * rating;
            }
            row[2 * Features::COUNT..].copy_from_slice(&[
                log,
                behind,
                log * rating,
                behind * rating,
                rating,
            ]);
            row
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a correction without a network, which shifts only mates, by `shift` from 600 to
    /// 2600.
    pub(crate) fn of_mates(shift: f32) -> Correction {
        Correction {
            hidden: Vec::new(),
            biases: Vec::new(),
            output: Vec::new(),
            shifts: [[shift; KNOTS.len()], [0.0; KNOTS.len()], [0.0; KNOTS.len()]],
        }
    }

    fn mating() -> Features {
        Features {
            mates: true,
            checks: true,
            ..Features::default()
        }
    }

    #[test]
    fn shifts_apply_to_their_kind_and_are_interpolated() {
        let mut correction = of_mates(0.0);
        correction.shifts[0] = std::array::from_fn(|knot| knot as f32);
        let features = [mating(), Features::default()];
        for (rating, expected) in [
            (Some(600), 0.0),
            (Some(700), 0.5),
            (Some(2600), 10.0),
            (Some(3400), 10.0),
            (Some(100), 0.0),
            (None, 5.0),
        ] {
            let mut logits = [1.0, 2.0];
            correction.correct(&features, rating, &mut logits);
            assert!((logits[0] - 1.0 - expected).abs() < 1e-5, "{rating:?}");
            assert_eq!(logits[1], 2.0);
        }
    }

    #[test]
    fn units_are_rectified_sums_of_the_inputs() {
        let mut row = vec![0.0; INPUTS];
        // Reads the mate and the product of the mate and the rating.
        (row[0], row[Features::COUNT]) = (1.0, 2.0);
        let correction = Correction {
            hidden: vec![row.clone(), row],
            biases: vec![0.5, -100.0],
            output: vec![3.0, 7.0],
            ..of_mates(0.0)
        };
        let mut logits = [0.0, 0.0];
        correction.correct(&[mating(), Features::default()], Some(2000), &mut logits);
        assert!((logits[0] - 3.0 * 3.5).abs() < 1e-5);
        assert!((logits[1] - 3.0 * 0.5).abs() < 1e-5);
    }

    #[test]
    fn a_shift_of_all_logits_changes_no_input() {
        let features = [mating(), Features::default()];
        let [one, other] = [[0.0, 1.0], [5.0, 6.0]].map(|logits| inputs(&features, 1500, &logits));
        for (one, other) in one.iter().flatten().zip(other.iter().flatten()) {
            assert!((one - other).abs() < 1e-5);
        }
    }

    #[test]
    fn rejects_corrections_of_wrong_size() {
        let good = of_mates(1.0);
        assert_eq!(good.check(), Ok(()));
        let mut short = good.clone();
        short.biases.push(0.0);
        assert_eq!(short.check(), Err(CorrectionError::Shape));
        let narrow = Correction {
            hidden: vec![vec![0.0; INPUTS - 1]],
            biases: vec![0.0],
            output: vec![0.0],
            ..good.clone()
        };
        assert_eq!(narrow.check(), Err(CorrectionError::Shape));
        let mut odd = good;
        odd.shifts[2][3] = f32::NAN;
        assert_eq!(odd.check(), Err(CorrectionError::NotFinite));
    }
}
