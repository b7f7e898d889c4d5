//! Interruptions by a busy machine, measured while the engine searches, and the time that they are
//! worth reserving.

use super::time::TimeBudget;
use crate::play::Limits;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// The factor by which an interruption counts. After the search has ended, the thread that answers
/// may be interrupted as well, and so may the client. The table in bench/play.md compares factors.
const CAUTION: u32 = 3;
/// The most that is reserved on account of interruptions.
const MOST: Duration = Duration::from_millis(50);
/// The percentage of the longest interruption that is still expected one search later.
const LASTING: u32 = 97;
/// The interruption, in microseconds, that is expected of a machine that has not been measured.
const UNKNOWN: u32 = 7_000;

/// The longest interruption of recent searches.
#[derive(Debug)]
pub(crate) struct Lag {
    /// In microseconds, at most [`MOST`].
    longest: AtomicU32,
}

impl Default for Lag {
    fn default() -> Lag {
        Lag {
            longest: AtomicU32::new(UNKNOWN),
        }
    }
}

impl Lag {
    /// Returns the budget that `limits` allow, less the time to reserve for delays.
    pub(crate) fn budget(&self, limits: &Limits, overhead: Duration) -> Option<TimeBudget> {
        TimeBudget::new(limits, self.reserve(overhead))
    }

    /// Returns the time to reserve for delays: at least `overhead`, and more on a machine that has
    /// interrupted recent searches for longer.
    fn reserve(&self, overhead: Duration) -> Duration {
        let expected = CAUTION * self.longest.load(Relaxed);
        overhead.max(Duration::from_micros(expected.into()).min(MOST))
    }

    /// Forgets a part of earlier interruptions. Called once a search.
    pub(crate) fn fade(&self) {
        let longest = self.longest.load(Relaxed);
        self.longest.store(longest * LASTING / 100, Relaxed);
    }

    /// Records the time that a batch took, or that a search took until its end.
    pub(crate) fn record(&self, taken: Duration, expected: Duration) {
        let interruption = taken.saturating_sub(expected).min(MOST);
        self.longest
            .fetch_max(interruption.as_micros() as u32, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const OVERHEAD: Duration = Duration::from_millis(10);

    /// Records batches that take these times, in milliseconds, instead of two each.
    fn search(lag: &Lag, batches: impl IntoIterator<Item = u64>) {
        lag.fade();
        for taken in batches {
            lag.record(MS(taken), MS(2));
        }
    }

    /// Returns the lag of a machine that has run many searches without an interruption.
    fn quiet() -> Lag {
        let lag = Lag::default();
        (0..60).for_each(|_| search(&lag, [2; 100]));
        lag
    }

    #[test]
    fn the_first_searches_reserve_more_and_quiet_ones_no_more_than_the_overhead() {
        let lag = Lag::default();
        assert_eq!(lag.reserve(OVERHEAD), MS(21));
        (0..30).for_each(|_| search(&lag, [2; 100]));
        assert_eq!(lag.reserve(OVERHEAD), OVERHEAD);
    }

    #[test]
    fn steady_batches_reserve_no_more_than_the_overhead() {
        let lag = quiet();
        search(&lag, [0, 1, 2, 4, 5]);
        assert_eq!(lag.reserve(OVERHEAD), OVERHEAD);
    }

    #[test]
    fn interruptions_are_reserved_for_and_forgotten() {
        let lag = quiet();
        search(&lag, (0..100).map(|n| if n % 10 == 9 { 14 } else { 2 }));
        assert_eq!(lag.reserve(OVERHEAD), MS(36));
        assert_eq!(lag.reserve(MS(100)), MS(100), "the overhead is the least");
        (0..50).for_each(|_| search(&lag, [2; 100]));
        assert_eq!(lag.reserve(OVERHEAD), OVERHEAD);
    }

    #[test]
    fn a_long_interruption_does_not_take_the_time_of_later_moves() {
        let lag = Lag::default();
        search(&lag, [2, 60_000, 2]);
        assert_eq!(lag.reserve(OVERHEAD), MOST);
    }
}
