//! A worker's context, and the handling of a temporarily unreachable store.

use super::ending::is_lasting_store;
use super::error::CycleError;
use crate::store::{Store, WorkerName};
use rand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Interval between checks for a stop.
const BLINK: Duration = Duration::from_millis(50);

/// A worker's context: its store, name, threads and signals.
pub struct WorkerContext<'a> {
    /// The store.
    pub store: &'a Store,
    /// The worker's name.
    pub name: WorkerName,
    /// Number of compute threads.
    pub threads: usize,
    /// Set to true to make the worker finish quickly and return.
    pub stop: Arc<AtomicBool>,
    /// Called with messages for the log.
    pub tell: &'a (dyn Fn(&str) + Sync),
}

impl WorkerContext<'_> {
    /// Returns whether the worker should stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Sleeps for this time, or until the worker should stop. Returns false if it should stop.
    pub(super) fn wait(&self, seconds: f64) -> bool {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while !self.is_stopped() && Instant::now() < end {
            std::thread::sleep(BLINK.min(end.saturating_duration_since(Instant::now())));
        }
        !self.is_stopped()
    }

    /// Returns the name of this run of the worker, which is unique among all runs.
    pub(super) fn run_name(&self) -> WorkerName {
        self.name.marked(rand::rng().random())
    }
}

/// Tolerates a temporarily unreachable store: logs the error and returns the default value, as if
/// the store had nothing new.
pub(super) fn tolerate<T, E>(result: Result<T, E>) -> Result<T, CycleError>
where
    T: Default,
    E: Into<CycleError>,
{
    match result.map_err(Into::into) {
        Err(CycleError::Store(error)) if !is_lasting_store(&error) => {
            tracing::warn!("{error}");
            Ok(T::default())
        }
        result => result,
    }
}
