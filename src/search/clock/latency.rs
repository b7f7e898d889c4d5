//! The duration of a batch, estimated from earlier batches.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Predictions are multiplied by this factor.
const CAUTION: f32 = 1.25;
/// The share by which old observations decay per batch.
const FADING: f32 = 0.2;

/// The duration of a batch, modelled as a constant plus a slope per position, both estimated on the
/// high side. All threads update the estimates; losing an update does no harm.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    /// Duration of the smallest batch in seconds, as the bits of an f32.
    least: AtomicU32,
    /// Additional seconds per further position, as the bits of an f32.
    slope: AtomicU32,
}

impl Latency {
    /// Records the duration of a batch.
    pub(crate) fn record(&self, positions: usize, taken: Duration) {
        let taken = taken.as_secs_f32();
        let before = load(&self.least);
        let least = if before == 0.0 || taken < before {
            taken
        } else if positions == 1 {
            before + FADING * (taken - before)
        } else {
            before
        };
        store(&self.least, least);
        if positions > 1 {
            let slope = (taken - least).max(0.0) / (positions - 1) as f32;
            store(&self.slope, slope.max(load(&self.slope) * (1.0 - FADING)));
        } else if load(&self.slope) == 0.0 {
            // Until a larger batch has been seen, assume that batching gains nothing.
            store(&self.slope, least);
        }
    }

    /// Returns how long a batch may take, or `None` before any has been recorded.
    pub(crate) fn expected(&self, positions: usize) -> Option<Duration> {
        let least = load(&self.least);
        let further = positions.saturating_sub(1) as f32;
        (least > 0.0).then(|| Duration::from_secs_f32(least + further * load(&self.slope)))
    }

    /// Returns the size of the largest batch, up to `wanted`, that is expected to finish within
    /// `left`.
    pub(crate) fn affordable(&self, left: Duration, wanted: usize) -> usize {
        let left = left.as_secs_f32() / CAUTION - load(&self.least);
        let slope = load(&self.slope);
        if left < 0.0 {
            0
        } else if slope <= 0.0 {
            wanted
        } else {
            // The cast saturates.
            ((left / slope) as usize).saturating_add(1).min(wanted)
        }
    }
}

fn load(cell: &AtomicU32) -> f32 {
    f32::from_bits(cell.load(Relaxed))
}

fn store(cell: &AtomicU32, seconds: f32) {
    cell.store(seconds.to_bits(), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn batches_shrink_as_the_time_runs_out() {
        let latency = Latency::default();
        assert_eq!(latency.affordable(MS(0), 64), 64, "nothing is known yet");
        latency.record(1, MS(4));
        assert_eq!(latency.affordable(MS(1), 64), 0);
        assert!((2..=10).contains(&latency.affordable(MS(50), 64)));
        latency.record(64, MS(36));
        for _ in 0..100 {
            latency.record(64, MS(36));
        }
        let (less, more) = (
            latency.affordable(MS(20), 64),
            latency.affordable(MS(200), 64),
        );
        assert!(less > 8 && less < 32, "{less}");
        assert_eq!(more, 64);
    }

    #[test]
    fn a_batch_is_expected_to_take_as_long_as_earlier_ones() {
        let latency = Latency::default();
        assert_eq!(latency.expected(5), None);
        latency.record(1, MS(2));
        (0..9).for_each(|_| latency.record(11, MS(12)));
        assert_eq!(latency.expected(0), latency.expected(1));
        let expected = latency.expected(6).unwrap().as_secs_f32();
        assert!((expected - 0.007).abs() < 1e-4, "{expected}");
    }

    #[test]
    fn a_slow_first_batch_is_forgotten() {
        let latency = Latency::default();
        latency.record(1, MS(900));
        for _ in 0..100 {
            latency.record(32, MS(5));
        }
        assert!(latency.affordable(MS(30), 32) > 16);
    }
}
