//! Configuration of the guard against unstable training.

use serde::{Deserialize, Serialize};

/// When, and how often, a run rolls back to its last checkpoint.
///
/// A NaN or infinite loss or gradient always causes a rollback, and so does a spike of the loss as
/// defined by these settings. Training resumes from the last checkpoint with the batches that
/// follow the bad ones, as in PaLM (Chowdhery et al. 2022, section 5.1), because a spike only
/// occurs when particular batches meet particular weights. The loss is checked once per metrics
/// line, so that steps need not wait for the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardConfig {
    /// The mean loss of a metrics line is high if it exceeds the running average by more than this
    /// number of standard deviations; 0 accepts every finite loss.
    pub deviations: f64,
    /// Number of consecutive lines with a high loss that count as a spike. No checkpoint is written
    /// while the loss of the last line is high.
    pub lines: u32,
    /// Number of lines over which the average and the deviation are taken. Spikes are detected only
    /// after this many lines.
    pub memory: u32,
    /// Number of rollbacks to the same checkpoint before the run stops with an error; 0 stops at
    /// the first spike.
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
