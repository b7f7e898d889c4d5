//! Configuration of which checkpoints are kept.

use serde::{Deserialize, Serialize};

/// The checkpoints that a run keeps; others are removed once a newer one is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeepConfig {
    /// Number of newest checkpoints to keep, at least 1.
    pub newest: usize,
    /// Checkpoints of steps divisible by this are kept for ever; 0 for none.
    pub every: u64,
    /// Number of checkpoints in a row that may fail to be written, for example on a
    /// full disk, before the run stops.
    pub failures: u32,
}

impl Default for KeepConfig {
    fn default() -> KeepConfig {
        // One to resume from, and one in case that is damaged.
        KeepConfig {
            newest: 2,
            every: 0,
            failures: 2,
        }
    }
}
