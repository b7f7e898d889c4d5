//! How the learning rate moves.

use serde::{Deserialize, Serialize};

/// How the learning rate moves after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ScheduleShape {
    /// Stays, then falls to zero in a straight line over the last part of the
    /// run (warm-up, stable, decay).
    Stable {
        /// The last part's share of all steps, in 0…1.
        decay: f64,
    },
    /// Falls along half a cosine.
    Cosine {
        /// Share of the peak that is left at the end.
        last: f64,
    },
    /// Falls in steps, as in the paper.
    Stepped {
        /// Each step and the share of the peak that holds from there on.
        drops: Vec<(u64, f64)>,
    },
}

/// How the learning rate moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleConfig {
    /// The highest learning rate.
    pub peak: f64,
    /// Steps in which the rate climbs to it from zero.
    pub warmup: u64,
    /// What follows.
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
