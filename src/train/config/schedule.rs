//! Configuration of the learning-rate schedule.

use serde::{Deserialize, Serialize};

/// The learning rate after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ScheduleShape {
    /// Constant, then linear to zero over the last part of the run (warm-up, stable, decay).
    Stable {
        /// The share of steps in the last part, in 0…1.
        decay: f64,
    },
    /// Half a cosine.
    Cosine {
        /// The final rate as a share of the peak.
        last: f64,
    },
    /// Piecewise constant, as in the paper.
    Stepped {
        /// Pairs of a step and the share of the peak from that step on.
        drops: Vec<(u64, f64)>,
    },
}

/// The learning-rate schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleConfig {
    /// The highest learning rate.
    pub peak: f64,
    /// Steps of the linear warm-up from zero.
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
