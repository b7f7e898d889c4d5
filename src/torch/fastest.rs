//! Measures which format is the fastest for a network on this machine.
//!
//! The fastest format depends on the architecture: int8 speeds up the dense layers of a
//! Chessformer, but the convolutions of a tower are fastest in f32. Every candidate format is
//! therefore measured once, and the [result](super::answers) is stored.

use super::answers::Answers;
use super::{ComputeType, NetworkError, TorchBackend, process};
use crate::backend::{Backend, Format, Precision, Speed};
use crate::chess::Game;
use crate::encode::Input;
use std::time::Duration;

// Measure the thread's CPU time, which excludes other load on the machine. On Windows, the
// resolution of the CPU time is coarser than a call takes, so wall-clock time is used there.
#[cfg(not(windows))]
use cpu_time::ThreadTime as Clock;
#[cfg(windows)]
use std::time::Instant as Clock;

/// Maximum time per batch. Batches with a single position may take longer.
const BATCH: Duration = Duration::from_millis(50);
/// Measuring time after which no format gets more than [`LEAST`] calls.
const ENOUGH: Duration = Duration::from_millis(400);
/// Minimum number of calls for timing a competitive format.
const LEAST: usize = 3;
/// Maximum number of calls per format, which is enough for an accurate time.
const MOST: usize = 10;
/// A format is dropped as soon as it takes this many times as long as the best format.
const HOPELESS: f64 = 1.5;
/// The fraction of its time by which a format must be faster to replace a preferred format. It
/// exceeds the noise in timings.
const MARGIN: f64 = 0.05;

/// Returns the network in the first of these formats that no other format clearly beats. Formats in
/// which the network cannot run are skipped. `network` identifies the network's file, and `freeze`
/// prepares the network in a format.
///
/// # Errors
/// Returns the error for the first format if the network cannot run in any format.
pub(super) fn choose(
    network: &str,
    formats: &[ComputeType],
    freeze: impl Fn(ComputeType) -> Result<TorchBackend, NetworkError>,
) -> Result<TorchBackend, NetworkError> {
    let processor = process::processor();
    // Holding the lock serialises measurements, and all threads of the process get the same answer.
    let mut answers = Answers::of_user();
    if let Some(format) = answers.find(network, &processor) {
        let is_it = |dtype: &&ComputeType| Precision::from(**dtype) == format.precision;
        if let Some(&dtype) = formats.iter().find(is_it) {
            return Ok(freeze(dtype)?.with_format(format));
        }
    }
    let mut backends = Vec::new();
    for &dtype in formats {
        // If a network has no layers that can use int8, its dtype is another one.
        let backend = freeze(dtype).ok();
        backends.extend(backend.filter(|backend| backend.dtype() == dtype));
    }
    let (best, speeds) = match backends.len() {
        // The error for the first format states the reason.
        0 => return freeze(formats[0]),
        1 => (0, Vec::new()),
        _ => compare(&backends),
    };
    let backend = backends.swap_remove(best);
    let format = Format {
        precision: backend.dtype().into(),
        speeds,
    };
    answers.keep(network, &processor, &format);
    Ok(backend.with_format(format))
}

/// Returns the index of the first format that no other format clearly beats, and the speeds of the
/// formats that did not fail.
fn compare(backends: &[TorchBackend]) -> (usize, Vec<Speed>) {
    let batches @ [largest, _] = batches_for(&backends[0]);
    // The time covers the same number of positions for each batch size.
    let call = |backend: &TorchBackend| {
        let times =
            batches.map(|batch| Some(time(backend, batch)?.mul_f64(largest as f64 / batch as f64)));
        times.into_iter().sum()
    };
    let times = race(backends, call);
    let positions = (batches.len() * largest) as f64;
    let speed = |(backend, time): (&TorchBackend, &Option<Duration>)| {
        Some(Speed {
            precision: backend.dtype().into(),
            evaluations_per_second: positions / time.as_ref()?.as_secs_f64(),
        })
    };
    let speeds = backends.iter().zip(&times).filter_map(speed).collect();
    (first_of_the_fastest(&times).unwrap_or_default(), speeds)
}

/// Returns the two batch sizes to measure: the recommended size, which a search reaches once its
/// tree has grown, and a quarter of that size, for the time before. If a batch of the recommended
/// size takes too long, both sizes are smaller.
fn batches_for(backend: &TorchBackend) -> [usize; 2] {
    let recommended = backend.properties().recommended_batch;
    let one = time(backend, 1).unwrap_or_default();
    let affordable = BATCH.as_secs_f64() / one.as_secs_f64().max(1e-9);
    let batch = (affordable as usize).clamp(1, recommended);
    [batch, batch.div_ceil(4)]
}

/// Returns the time that a batch takes, or `None` if its evaluation fails.
fn time(backend: &TorchBackend, batch: usize) -> Option<Duration> {
    let inputs = vec![Input::encode(&Game::default()); batch];
    let clock = Clock::now();
    backend.forward(&inputs).ok()?;
    Some(clock.elapsed())
}

/// Returns the shortest time of each contestant over several calls, or `None` for contestants that
/// failed. The contestants take turns, so that other load affects all of them equally.
fn race<T>(
    contestants: &[T],
    mut call: impl FnMut(&T) -> Option<Duration>,
) -> Vec<Option<Duration>> {
    let mut times: Vec<Option<Duration>> = vec![Some(Duration::MAX); contestants.len()];
    let mut spent = Duration::ZERO;
    for round in 0..MOST {
        let best = times.iter().flatten().min().copied().unwrap_or_default();
        let is_in = |time: &Option<Duration>| {
            time.is_some_and(|time| round == 0 || time < best.mul_f64(HOPELESS))
        };
        let is_decided = times.iter().filter(|time| is_in(time)).count() < 2;
        if is_decided || round >= LEAST && spent > ENOUGH {
            break;
        }
        for (contestant, time) in contestants.iter().zip(&mut times) {
            if is_in(time) {
                let latest = call(contestant);
                spent += latest.unwrap_or_default();
                *time = latest.and_then(|latest| Some(latest.min((*time)?)));
            }
        }
    }
    times
}

/// Returns the first contestant whose time is within the margin of the shortest, or `None` if all
/// failed.
fn first_of_the_fastest(times: &[Option<Duration>]) -> Option<usize> {
    let best = times.iter().flatten().min()?.as_secs_f64();
    let is_fast = |time: &Option<Duration>| {
        time.is_some_and(|time| time.as_secs_f64() * (1.0 - MARGIN) <= best)
    };
    times.iter().position(is_fast)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(times: &[u64]) -> Vec<Option<Duration>> {
        let time = |&time: &u64| (time > 0).then(|| Duration::from_millis(time));
        times.iter().map(time).collect()
    }

    /// Races contestants whose calls take these times in milliseconds, where 0 means failure.
    /// Returns each contestant's shortest time and number of calls.
    fn raced(calls: &[&[u64]]) -> (Vec<Option<Duration>>, Vec<usize>) {
        let counts: Vec<_> = calls.iter().map(|_| std::cell::Cell::new(0)).collect();
        let contestants: Vec<_> = calls.iter().zip(&counts).collect();
        let times = race(&contestants, |(calls, count)| {
            let time = calls[count.get() % calls.len()];
            count.set(count.get() + 1);
            (time > 0).then(|| Duration::from_millis(time))
        });
        (times, counts.iter().map(|count| count.get()).collect())
    }

    #[test]
    fn the_slow_leave_the_race() {
        let (times, calls) = raced(&[&[7], &[14], &[33]]);
        assert_eq!((times, calls), (milliseconds(&[7, 14, 33]), vec![1, 1, 1]));
        let (times, calls) = raced(&[&[8], &[7], &[33]]);
        assert_eq!(times, milliseconds(&[8, 7, 33]));
        assert_eq!(calls, [MOST, MOST, 1]);
        // Long calls are repeated only a few times.
        let (_, calls) = raced(&[&[800], &[700]]);
        assert_eq!(calls, [LEAST, LEAST]);
    }

    #[test]
    fn the_shortest_time_counts_and_failures_do_not() {
        let (times, _) = raced(&[&[12, 9, 10], &[11, 11, 11, 8]]);
        assert_eq!(times, milliseconds(&[9, 8]));
        let (times, calls) = raced(&[&[0], &[5], &[6, 0]]);
        assert_eq!(times, milliseconds(&[0, 5, 0]));
        assert_eq!(calls, [1, 2, 2]);
        assert_eq!(raced(&[&[0], &[0]]).0, [None, None]);
    }

    #[test]
    fn the_preferred_wins_a_tie() {
        let winner = |times: &[u64]| first_of_the_fastest(&milliseconds(times));
        assert_eq!(winner(&[100, 100]), Some(0));
        assert_eq!(winner(&[104, 100]), Some(0));
        assert_eq!(winner(&[100, 104]), Some(0));
        assert_eq!(winner(&[107, 100]), Some(1));
        assert_eq!(winner(&[150, 104, 100]), Some(1));
        assert_eq!(winner(&[0, 300]), Some(1));
        assert_eq!(winner(&[0, 0]), None);
    }
}
