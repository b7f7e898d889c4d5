//! What a run does when its loss is no longer to be trusted.

use serde::{Deserialize, Serialize};

/// When a run goes back to its last checkpoint, and how often.
///
/// A loss or gradient that is not finite always is a reason; a spike is one by
/// the settings below. Training goes on from the last checkpoint with the
/// batches that follow the bad ones, as PaLM did (Chowdhery et al. 2022, 5.1):
/// a spike comes of certain batches meeting certain weights. The loss is judged
/// once a line of the metrics, so that steps do not wait for the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardConfig {
    /// A line's mean loss so many standard deviations above the running average
    /// is high; 0 lets every finite loss pass.
    pub deviations: f64,
    /// So many high lines in a row are a spike; no checkpoint is written before
    /// it is known whether they are.
    pub lines: u32,
    /// Lines that the running average and deviation reach back; so many must
    /// have been seen before any is high.
    pub memory: u32,
    /// Times that a run may go back to one checkpoint before it stops with an
    /// error; 0 stops at once.
    pub rollbacks: u32,
}

impl Default for GuardConfig {
    fn default() -> GuardConfig {
        GuardConfig {
            deviations: 8.0,
            lines: 3,
            memory: 50,
            rollbacks: 3,
        }
    }
}
