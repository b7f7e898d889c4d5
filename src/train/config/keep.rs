//! Configuration of checkpoint retention.

use serde::{Deserialize, Serialize};

/// The checkpoints that a run keeps; others are removed after a newer one is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeepConfig {
    /// Number of newest checkpoints to keep, at least 1.
    pub newest: usize,
    /// Checkpoints at steps divisible by this are kept permanently; 0 for none.
    pub every: u64,
    /// Number of consecutive checkpoints that may fail to be written, for example on a full disk,
    /// before the run stops.
    pub failures: u32,
}

impl Default for KeepConfig {
    fn default() -> KeepConfig {
        // One to resume from, and one in case it is damaged.
        KeepConfig {
            newest: 2,
            every: 0,
            failures: 2,
        }
    }
}
