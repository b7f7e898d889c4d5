//! A worker's context, and the handling of a temporarily unreachable store.

use super::ending::is_lasting_store;
use super::error::CycleError;
use crate::store::{Store, WorkerName};
use rand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Interval between checks for a stop.
const BLINK: Duration = Duration::from_millis(50);
/// Longest pause in seconds while the store is unreachable, unless it is always polled more rarely.
const LONGEST_PAUSE: f64 = 60.0;

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
    /// Number of requests to the store that have failed since the last one that succeeded.
    pub failures: AtomicU32,
}

impl WorkerContext<'_> {
    /// Returns whether the worker should stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Sleeps for this time, or longer while the store is unreachable, or until the worker should
    /// stop. Returns false if it should stop.
    pub(super) fn wait(&self, seconds: f64) -> bool {
        let pause = pause(seconds, self.failures.load(Relaxed));
        let end = Instant::now() + Duration::from_secs_f64(pause);
        while !self.is_stopped() && Instant::now() < end {
            std::thread::sleep(BLINK.min(end.saturating_duration_since(Instant::now())));
        }
        !self.is_stopped()
    }

    /// Returns the name of this run of the worker, which is unique among all runs.
    pub(super) fn run_name(&self) -> WorkerName {
        self.name.marked(rand::rng().random())
    }

    /// Tolerates a temporarily unreachable store: logs the error and returns the default value, as
    /// if the store had nothing new. Until a request succeeds, [`wait`](Self::wait) takes twice as
    /// long after each further failure.
    pub(super) fn tolerate<T, E>(&self, result: Result<T, E>) -> Result<T, CycleError>
    where
        T: Default,
        E: Into<CycleError>,
    {
        match result.map_err(Into::into) {
            Err(CycleError::Store(error)) if !is_lasting_store(&error) => {
                self.failures.fetch_add(1, Relaxed);
                tracing::warn!("{error}; trying again");
                Ok(T::default())
            }
            result => {
                self.failures.store(0, Relaxed);
                result
            }
        }
    }
}

#[cfg(test)]
impl<'a> WorkerContext<'a> {
    /// Returns a context for tests.
    pub(super) fn of(store: &'a Store) -> WorkerContext<'a> {
        WorkerContext {
            store,
            name: "worker".parse().unwrap(),
            threads: 1,
            stop: Arc::default(),
            tell: &|_| {},
            failures: AtomicU32::new(0),
        }
    }
}

/// Returns the seconds to wait after this many failures, instead of `usual` ones.
fn pause(usual: f64, failures: u32) -> f64 {
    let longer = usual * 2f64.powi(failures.min(16) as i32);
    longer.min(LONGEST_PAUSE).max(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_failures_up_to_a_minute() {
        let pauses: Vec<f64> = (0..8).map(|failures| pause(2.0, failures)).collect();
        assert_eq!(pauses, [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]);
        assert_eq!((pause(600.0, 9), pause(2.0, u32::MAX)), (600.0, 60.0));
    }
}
