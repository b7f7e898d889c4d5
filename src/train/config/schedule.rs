//! Configuration of the learning-rate schedule.

use serde::{Deserialize, Serialize};

/// The shape of the learning rate after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ScheduleShape {
    /// The learning rate is constant, and decays linearly to zero over the last part of the run
    /// (the warm-up–stable–decay schedule).
    Stable {
        /// Share of the steps over which the learning rate decays, in 0…1.
        decay: f64,
    },
    /// The learning rate follows half a cosine.
    Cosine {
        /// The final learning rate as a share of the peak.
        last: f64,
    },
    /// The learning rate is piecewise constant, as in the Chessformer paper.
    Stepped {
        /// Pairs of a step and the learning rate from that step on, as a share of the peak.
        drops: Vec<(u64, f64)>,
    },
}

/// The learning-rate schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleConfig {
    /// The highest learning rate.
    pub peak: f64,
    /// Number of steps over which the learning rate rises linearly from zero.
    pub warmup: u64,
    /// The shape after the warm-up.
    pub shape: ScheduleShape,
}

impl Default for ScheduleConfig {
    fn default() -> ScheduleConfig {
        ScheduleConfig {
            peak: 5e-4,
            warmup: 1000,
            shape: ScheduleShape::Stable { decay: 0.2 },
        }
    }
}
