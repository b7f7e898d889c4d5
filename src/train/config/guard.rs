//! Configuration of the guard against unstable training.

use serde::{Deserialize, Serialize};

/// When a run rolls back to its last checkpoint, and how often.
///
/// A NaN or infinite loss or gradient always causes a rollback; these settings define a spike,
/// which also does. Training resumes from the last checkpoint with the batches after the bad
/// ones, as in PaLM (Chowdhery et al. 2022, 5.1), because a spike needs certain batches together
/// with certain weights. The loss is checked once per metrics line, so that steps do not wait for
/// the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardConfig {
    /// A line's mean loss is high if it exceeds the running average by this many
    /// standard deviations; 0 accepts every finite loss.
    pub deviations: f64,
    /// Number of high lines in a row that make a spike. No checkpoint is written
    /// while the last line is high.
    pub lines: u32,
    /// Number of lines that the running average and deviation cover. Spikes are
    /// detected only after this many lines.
    pub memory: u32,
    /// Number of rollbacks to one checkpoint before the run stops with an error; 0
    /// stops at the first spike.
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
