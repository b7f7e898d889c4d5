//! Configuration of the training of a denoiser of futures.

use serde::{Deserialize, Serialize};
use std::f64::consts::FRAC_PI_2;

/// How a denoiser of futures is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiffusionTraining {
    /// How much of a future is unknown.
    pub schedule: MaskSchedule,
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
    /// end, not what to play: so candidates are weighed ([`crate::nn::Decoding`]).
    pub told: f64,
    /// Weight of the cross-entropy of squares in the total loss.
    pub board: f64,
    /// Weight of the cross-entropy of moves behind the first in the total loss.
    pub future_move: f64,
    /// Weight of the squared error of the values of future boards, which a grid reads as
    /// that of the present, in the total loss.
    pub future_q: f64,
}

/// The share of a future that is unknown, by a time from 0 to 1 that is drawn evenly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MaskSchedule {
    /// A quarter of a sine, as in MaskGIT (Chang et al. 2022): mostly more than half.
    #[default]
    Cosine,
    /// The time itself.
    Linear,
}

impl MaskSchedule {
    /// The share at a time.
    #[must_use]
    pub fn share(self, time: f64) -> f64 {
        match self {
            MaskSchedule::Cosine => (FRAC_PI_2 * time).sin(),
            MaskSchedule::Linear => time,
        }
    }

    /// The weight of what is unknown at a time: the share's relative growth. So every
    /// variable counts as much as any other, whatever the schedule; the loss is a bound
    /// on the likelihood of futures (Sahoo et al. 2024).
    #[must_use]
    pub fn weight(self, time: f64) -> f64 {
        match self {
            MaskSchedule::Cosine => FRAC_PI_2 / (FRAC_PI_2 * time).tan(),
            MaskSchedule::Linear => 1.0 / time,
        }
    }
}

impl DiffusionTraining {
    /// Every weight by its key in a configuration.
    pub(in crate::train) fn weights(&self) -> [(&'static str, f64); 3] {
        [
            ("diffusion.board", self.board),
            ("diffusion.future_move", self.future_move),
            ("diffusion.future_q", self.future_q),
        ]
    }
}

impl Default for DiffusionTraining {
    fn default() -> DiffusionTraining {
        DiffusionTraining {
            schedule: MaskSchedule::default(),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean over all times of what a variable weighs, masked or not.
    #[test]
    fn every_variable_weighs_one() {
        for schedule in [MaskSchedule::Cosine, MaskSchedule::Linear] {
            let count = 10_000;
            let times = (0..count).map(|it| (f64::from(it) + 0.5) / f64::from(count));
            let weights = times.map(|time| schedule.share(time) * schedule.weight(time));
            let mean = weights.sum::<f64>() / f64::from(count);
            assert!((mean - 1.0).abs() < 1e-6, "{schedule:?}: {mean}");
            assert!((schedule.share(1.0) - 1.0).abs() < 1e-12);
        }
    }
}
