//! Which checkpoints stay on the disk.

use serde::{Deserialize, Serialize};

/// Which checkpoints a run keeps; others are removed when a newer one is
/// whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeepConfig {
    /// The newest so many, at least 1.
    pub newest: usize,
    /// Those of steps divisible by this, for good; 0 for none.
    pub every: u64,
    /// So many in a row may fail to be written, because the disk is full or the
    /// like, before the run stops.
    pub failures: u32,
}

impl Default for KeepConfig {
    fn default() -> KeepConfig {
        // One to go on from, and one in case that is damaged.
        KeepConfig {
            newest: 2,
            every: 0,
            failures: 2,
        }
    }
}
