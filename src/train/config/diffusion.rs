//! Configuration of a future denoiser's training.

use crate::network::only_left;
use serde::{Deserialize, Deserializer, Serialize};

/// Training settings of a future denoiser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(
    clippy::manual_non_exhaustive,
    reason = "`schedule` is read, and means nothing"
)]
pub struct DiffusionTraining {
    /// `cosine`: earlier versions also had `linear`.
    #[serde(skip_serializing, deserialize_with = "schedule")]
    schedule: (),
    /// The share of samples with a fully masked future, as at the first step of decoding, in
    /// addition to those that the schedule masks fully. In 0…1.
    pub unknown: f64,
    /// The share of samples that see the future that the network itself predicts for them, in
    /// 0…1. They learn to play despite its errors, as in play; the predicted future is not a
    /// target.
    pub own: f64,
    /// Evaluations to predict that future, including the one that sees it, at least 2.
    pub own_steps: usize,
    /// The share of the others that know their first move, in 0…1: the target, or equally often
    /// the move played instead. They learn the consequences and the result, not the policy; this
    /// trains candidate search ([`crate::backend::Decoding`]).
    pub told: f64,
    /// Weight of the cross-entropy of squares in the total loss.
    pub board: f64,
    /// Weight of the cross-entropy of moves after the first in the total loss.
    pub future_move: f64,
    /// Weight of the squared error of the future boards' values, predicted like the present's, in
    /// the total loss.
    pub future_q: f64,
}

fn schedule<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    only_left(deserializer, "schedule", "cosine".to_owned())
}

impl Default for DiffusionTraining {
    fn default() -> DiffusionTraining {
        DiffusionTraining {
            schedule: (),
            unknown: 0.2,
            own: 0.0,
            own_steps: 3,
            told: 0.0,
            board: 1.0,
            future_move: 0.5,
            future_q: 0.0,
        }
    }
}
