//! Configuration of the training of a denoiser of futures.

use crate::network::only_left;
use serde::{Deserialize, Deserializer, Serialize};

/// Training settings of a denoiser of futures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(
    clippy::manual_non_exhaustive,
    reason = "`schedule` is read, and means nothing"
)]
pub struct DiffusionTraining {
    /// `cosine`: earlier versions knew `linear` too.
    #[serde(skip_serializing, deserialize_with = "schedule")]
    schedule: (),
    /// The share of samples of whose future nothing is known, as at the first step of
    /// decoding; besides those that the schedule leaves without. In 0…1.
    pub unknown: f64,
    /// The share of samples that know the future that the network itself imagines for
    /// them, in 0…1. They learn what to play in spite of it, as it is played; what is
    /// imagined is not learned from them.
    pub own: f64,
    /// Evaluations in which it imagines that future and sees it, at least 2.
    pub own_steps: usize,
    /// The share of the others that know their first move, in 0…1: the target, or as often
    /// the move that was played in its place. They learn what comes of it and how it will
    /// end, not what to play: so candidates are weighed ([`crate::backend::Decoding`]).
    pub told: f64,
    /// Weight of the cross-entropy of squares in the total loss.
    pub board: f64,
    /// Weight of the cross-entropy of moves behind the first in the total loss.
    pub future_move: f64,
    /// Weight of the squared error of the values of future boards, read as that of
    /// the present, in the total loss.
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
