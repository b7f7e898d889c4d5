//! Configuration of checkpoint retention.

use serde::{Deserialize, Serialize};

/// Which checkpoints a run keeps; others are removed after a newer one has been written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeepConfig {
    /// Number of newest checkpoints to keep, at least 1.
    pub newest: usize,
    /// Checkpoints are also written at steps divisible by this number, and kept permanently; 0
    /// keeps none.
    pub every: u64,
    /// Number of consecutive checkpoints that may fail to be written, for example on a full disk,
    /// before the run stops.
    pub failures: u32,
}

impl Default for KeepConfig {
    fn default() -> KeepConfig {
        // Keep one checkpoint to resume from, and another in case the first is damaged.
        KeepConfig {
            newest: 2,
            every: 0,
            failures: 2,
        }
    }
}
