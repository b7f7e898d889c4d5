//! Interruptions by a busy machine, measured while the engine searches, and the time that they are
//! worth reserving.

use super::time::TimeBudget;
use crate::play::Limits;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The answer passes through three programs' queues: the search's, the output's and the client's.
/// An interruption of usual length may hit two of them.
const CAUTION: f32 = 2.0;
/// The most that is reserved on account of interruptions.
const MOST: Duration = Duration::from_millis(50);
/// The share of the longest interruption that is still expected one search later.
const LASTING: f32 = 0.9;
/// The weight of the latest interval in the usual one.
const WEIGHT: f32 = 0.1;
/// An interval counts as at most this many usual ones in their mean.
const OUTLIER: f32 = 3.0;
/// The number of intervals from which the usual one is known.
const KNOWN: u32 = 8;

/// The longest interruption of recent searches.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    /// In seconds, as the bits of an f32.
    longest: AtomicU32,
}

impl Lag {
    /// Returns the budget that `limits` allow, less the time to reserve for delays.
    pub(crate) fn budget(&self, limits: &Limits, overhead: Duration) -> Option<TimeBudget> {
        TimeBudget::new(limits, self.reserve(overhead))
    }

    /// Returns the time to reserve for delays: at least `overhead`, and more on a machine that has
    /// interrupted recent searches for longer.
    fn reserve(&self, overhead: Duration) -> Duration {
        let expected = Duration::from_secs_f32(CAUTION * self.longest());
        overhead.max(expected.min(MOST))
    }

    /// Forgets a part of earlier interruptions. Called once a search.
    pub(crate) fn fade(&self) {
        self.store(LASTING * self.longest());
    }

    /// Records an interruption of this many seconds; returns whether it is the longest.
    fn record(&self, interruption: f32) -> bool {
        let longer = interruption > self.longest();
        if longer {
            self.store(interruption);
        }
        longer
    }

    fn longest(&self) -> f32 {
        f32::from_bits(self.longest.load(Relaxed))
    }

    fn store(&self, seconds: f32) {
        self.longest.store(seconds.to_bits(), Relaxed);
    }
}

/// The intervals between the checks of one search. They are of similar length unless the thread is
/// interrupted.
#[derive(Debug)]
pub(crate) struct Intervals {
    last: Instant,
    usual: f32,
    count: u32,
}

impl Intervals {
    pub(crate) fn since(began: Instant) -> Intervals {
        Intervals {
            last: began,
            usual: 0.0,
            count: 0,
        }
    }

    /// Ends an interval; returns whether it contained the longest interruption that `lag` knows.
    pub(crate) fn end(&mut self, now: Instant, lag: &Lag) -> bool {
        let taken = now.saturating_duration_since(self.last).as_secs_f32();
        self.last = now;
        self.count = self.count.saturating_add(1);
        if self.count <= KNOWN {
            self.usual += (taken - self.usual) / self.count as f32;
            return false;
        }
        let interruption = taken - self.usual;
        self.usual += WEIGHT * (taken.min(OUTLIER * self.usual) - self.usual);
        lag.record(interruption)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const OVERHEAD: Duration = Duration::from_millis(10);

    /// Ends intervals of these lengths in milliseconds.
    fn search(lag: &Lag, intervals: impl IntoIterator<Item = u64>) {
        let mut now = Instant::now();
        let mut measured = Intervals::since(now);
        lag.fade();
        for interval in intervals {
            now += MS(interval);
            measured.end(now, lag);
        }
    }

    #[test]
    fn steady_intervals_reserve_no_more_than_the_overhead() {
        for interval in [0, 1, 30, 400] {
            let lag = Lag::default();
            search(&lag, [interval; 100]);
            assert_eq!(lag.reserve(OVERHEAD), OVERHEAD);
        }
    }

    #[test]
    fn interruptions_are_reserved_for_and_forgotten() {
        let lag = Lag::default();
        search(&lag, (0..100).map(|n| if n % 10 == 9 { 14 } else { 2 }));
        let reserved = lag.reserve(OVERHEAD);
        assert!((MS(15)..=MS(24)).contains(&reserved), "{reserved:?}");
        assert_eq!(lag.reserve(MS(100)), MS(100), "the overhead is the least");
        (0..12).for_each(|_| search(&lag, [2; 100]));
        assert_eq!(lag.reserve(OVERHEAD), OVERHEAD);
    }

    #[test]
    fn a_long_interruption_does_not_take_the_time_of_later_moves() {
        let lag = Lag::default();
        search(&lag, (0..100).map(|n| if n == 50 { 60_000 } else { 2 }));
        assert_eq!(lag.reserve(OVERHEAD), MOST);
    }

    #[test]
    fn a_slow_start_is_no_interruption() {
        let lag = Lag::default();
        search(&lag, [300, 20, 5, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(lag.reserve(OVERHEAD), OVERHEAD);
    }
}
