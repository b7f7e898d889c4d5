//! Configuration of the guard against unstable training.

use serde::{Deserialize, Serialize};

/// When, and how often, a run rolls back to its last checkpoint.
///
/// A NaN or infinite loss or gradient always causes a rollback. So does a spike, which these
/// settings define. Training resumes from the last checkpoint with the batches that follow the bad
/// ones, as in PaLM (Chowdhery et al. 2022, 5.1), because a spike only occurs if certain batches
/// meet certain weights. The loss is checked once per metrics line, so that steps need not wait for
/// the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardConfig {
    /// The mean loss of a line is high if it exceeds the running average by this many standard
    /// deviations; 0 accepts every finite loss.
    pub deviations: f64,
    /// Number of consecutive high lines that form a spike. No checkpoint is written while the last
    /// line is high.
    pub lines: u32,
    /// Number of lines covered by the running average and deviation. Spikes are detected only after
    /// this many lines.
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
