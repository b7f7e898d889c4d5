//! Traces some of a run's steps.

use crate::torch::{TorchError, Trace};
use std::path::PathBuf;

/// Number of steps before the trace. The first steps are slower than the others.
const SKIPPED: u32 = 10;
/// Number of steps in the trace.
const TRACED: u32 = 10;

/// A trace of steps 11 to 20.
#[derive(Debug)]
pub(super) struct TracedSteps {
    /// The file, until the trace starts.
    path: Option<PathBuf>,
    trace: Option<Trace>,
    /// Number of steps so far.
    steps: u32,
}

impl TracedSteps {
    pub fn new(path: Option<PathBuf>) -> TracedSteps {
        TracedSteps {
            path,
            trace: None,
            steps: 0,
        }
    }

    /// Starts or ends the trace if it is due. Called before every step.
    pub fn before_step(&mut self) -> Result<(), TorchError> {
        if self.steps == SKIPPED
            && let Some(path) = self.path.take()
        {
            self.trace = Some(Trace::begin(&path)?);
        }
        if self.steps == SKIPPED + TRACED {
            self.end()?;
        }
        self.steps = self.steps.saturating_add(1);
        Ok(())
    }

    /// Writes the trace, if it has started. Called after the last step.
    pub fn finish(&mut self) -> Result<(), TorchError> {
        if let Some(path) = &self.path {
            let path = path.display();
            tracing::warn!("{path} was not written, because a trace starts after {SKIPPED} steps");
        }
        self.end()
    }

    fn end(&mut self) -> Result<(), TorchError> {
        self.trace.take().map_or(Ok(()), Trace::finish)
    }
}
