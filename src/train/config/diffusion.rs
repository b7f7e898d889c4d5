//! Configuration for training a future denoiser.

use serde::{Deserialize, Serialize};

/// Settings for training a future denoiser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiffusionTraining {
    /// Share of the samples whose future is fully masked, as in the first step of decoding, in 0…1.
    /// These are in addition to the samples that the schedule masks fully.
    pub unknown: f64,
    /// Share of the samples whose input contains the network's own predicted future instead of the
    /// true one, in 0…1. They teach the network to play despite errors in its predictions. The
    /// predicted future is not a target.
    pub own: f64,
    /// Number of evaluations per sample with a predicted future, at least 2. The last evaluation
    /// reads the future that the others have predicted.
    pub own_steps: usize,
    /// Share of the other samples in which the first move is given, in 0…1. The given move is the
    /// policy target or, equally often, the move that was played instead of the target. These
    /// samples teach the consequences and the value of a given move, which candidate search needs
    /// ([`crate::backend::Decoding`]), but not the policy.
    pub told: f64,
    /// Weight of the squares' cross-entropy in the total loss.
    pub board: f64,
    /// Weight of the cross-entropy of the moves after the first in the total loss.
    pub future_move: f64,
    /// Weight in the total loss of the squared error of the future boards' values, which are
    /// predicted in the same way as the present value.
    pub future_q: f64,
}

impl Default for DiffusionTraining {
    fn default() -> DiffusionTraining {
        DiffusionTraining {
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
