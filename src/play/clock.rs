//! The clock by which players measure time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A clock. The default is the system's monotonic clock. A [manual](Clock::manual) one is for
/// simulations and tests, whose results then do not depend on the speed of the machine.
///
/// ```
/// use std::time::Duration;
/// use tessera::play::Clock;
///
/// let clock = Clock::manual();
/// let began = clock.now();
/// clock.sleep(Duration::from_secs(3600)); // returns immediately
/// assert_eq!(clock.now() - began, Duration::from_secs(3600));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<Manual>>);

#[derive(Debug)]
struct Manual {
    start: Instant,
    /// Nanoseconds since `start`.
    elapsed: AtomicU64,
}

impl Clock {
    /// Returns a clock that stands still except in [`Clock::sleep`]. Its clones show the same time.
    pub fn manual() -> Clock {
        Clock(Some(Arc::new(Manual {
            start: Instant::now(),
            elapsed: AtomicU64::new(0),
        })))
    }

    /// Returns the current time.
    pub fn now(&self) -> Instant {
        match &self.0 {
            Some(manual) => manual.start + Duration::from_nanos(manual.elapsed.load(Relaxed)),
            None => Instant::now(),
        }
    }

    /// Lets time pass: the thread sleeps, or a manual clock advances.
    pub fn sleep(&self, time: Duration) {
        match &self.0 {
            Some(manual) => {
                manual.elapsed.fetch_add(time.as_nanos() as u64, Relaxed);
            }
            None => std::thread::sleep(time),
        }
    }

    /// Returns whether [`Clock::sleep`] returns immediately.
    pub(super) fn is_manual(&self) -> bool {
        self.0.is_some()
    }
}
