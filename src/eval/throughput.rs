//! A backend's speed, in evaluations per second by batch size.

use crate::backend::{Backend, BackendError, Batch, Evaluations};
use crate::chess::Game;
use crate::encode::Encoder;
use crate::scoped_threads::join;
use crossbeam::channel::{Receiver, Sender, bounded};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;
use shakmaty::Position;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Seed of the playouts from which [`positions`] are taken.
const SEED: u64 = 64;
/// Playouts end after at most this many plies, about the length of human games.
const LONGEST_PLAYOUT: usize = 120;
/// Number of evaluations per thread before the clock starts; the first calls specialise the network
/// and warm it up.
const WARM_UP: usize = 3;

/// Returns positions from random playouts, with all legal moves; the positions are the same at
/// every call. `encoder` has the same meaning as in [`Batch::push`].
///
/// # Errors
/// [`BackendError::Unencodable`] if the network can only read shorter games.
pub fn positions(count: usize, encoder: &Encoder) -> Result<Batch, BackendError> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut batch = Batch::default();
    let mut game = Game::default();
    while batch.len() < count {
        let moves = game.position().legal_moves();
        match moves.choose(&mut random) {
            Some(&mv) if game.plies().len() <= LONGEST_PLAYOUT && game.ending().is_none() => {
                // Neighbouring positions are similar, so only one in four is taken.
                if random.random_ratio(1, 4) {
                    batch.push(&game, &moves, encoder)?;
                }
                game.play(mv);
            }
            _ => game = Game::default(),
        }
    }
    Ok(batch)
}

/// The speed at one batch size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Throughput {
    /// Positions evaluated together.
    pub batch: usize,
    /// Number of positions that all threads together evaluate per second.
    pub evaluations_per_second: f64,
    /// The mean duration of one call, in milliseconds.
    pub milliseconds: f64,
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// An evaluation failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The system cannot start that many threads.
    #[error("the system cannot start {threads} threads: {source}")]
    Threads {
        /// The number of threads required.
        threads: usize,
        /// The system's error.
        source: io::Error,
    },
}

/// Evaluates batches of `size` of the `positions` on `threads` threads for about `time`. Every
/// thread makes at least one call.
///
/// # Errors
/// The first [`BackendError`] of any thread, or [`MeasureError::Threads`].
pub fn measure(
    backend: &dyn Backend,
    positions: &Batch,
    size: usize,
    threads: usize,
    time: Duration,
) -> Result<Throughput, MeasureError> {
    let abandoned = AtomicBool::new(false);
    // Nothing is sent over these channels: `warm` closes when every thread has dropped its copy of
    // the sender, and `start` closes when the measurement begins.
    let work = |thread: usize, is_warm: Sender<()>, start: &Receiver<()>| {
        // Threads begin far apart in the list, so that no two evaluate the same positions.
        let mut next = thread * positions.len() / threads;
        let mut batch = Batch::default();
        let mut evaluations = Evaluations::default();
        let mut call = || {
            batch.clear();
            for _ in 0..size {
                batch.push_from(positions, next % positions.len());
                next += 1;
            }
            backend.evaluate(&batch, &mut evaluations)
        };
        let warmed_up = (0..WARM_UP).try_for_each(|_| call());
        drop(is_warm);
        warmed_up?;
        let _ = start.recv();
        let clock = Instant::now();
        let mut calls = 0;
        while calls == 0 || clock.elapsed() < time && !abandoned.load(Relaxed) {
            call()?;
            calls += 1;
        }
        Ok::<_, BackendError>((calls, clock.elapsed().as_secs_f64()))
    };
    let work = &work;
    let results = thread::scope(|scope| -> Result<Vec<(usize, f64)>, MeasureError> {
        let (is_warm, warm) = bounded(0);
        let (begin, start) = bounded(0);
        let spawn = |thread| {
            let (is_warm, start) = (is_warm.clone(), start.clone());
            let work = move || work(thread, is_warm, &start);
            thread::Builder::new().spawn_scoped(scope, work)
        };
        let workers = (0..threads).map(spawn).collect::<Result<Vec<_>, _>>();
        let workers = workers.map_err(|source| {
            abandoned.store(true, Relaxed);
            MeasureError::Threads { threads, source }
        })?;
        drop(is_warm);
        let _ = warm.recv();
        drop(begin);
        Ok(join(workers)?)
    })?;
    let rates = results
        .iter()
        .map(|&(calls, seconds)| (calls * size) as f64 / seconds);
    let calls: usize = results.iter().map(|&(calls, _)| calls).sum();
    let seconds: f64 = results.iter().map(|&(_, seconds)| seconds).sum();
    Ok(Throughput {
        batch: size,
        evaluations_per_second: rates.sum(),
        milliseconds: 1e3 * seconds / calls as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Properties, Value};
    use crate::encode::InputFormat;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_positions_repeat_and_differ_from_one_another() {
        let first = positions(300, &Encoder::Rows(InputFormat::Classical)).unwrap();
        let again = positions(300, &Encoder::Rows(InputFormat::Classical)).unwrap();
        assert_eq!(first.keys(), again.keys());
        assert_eq!(first.inputs(), again.inputs());
        let distinct: std::collections::HashSet<_> = first.keys().iter().collect();
        assert!(distinct.len() > 280, "{}", distinct.len());
        assert!(
            positions(10, &Encoder::Nothing)
                .unwrap()
                .inputs()
                .is_empty()
        );
    }

    /// Takes a millisecond per call, and fails if requested.
    struct Slow {
        properties: Properties,
        calls: AtomicUsize,
        fails_after: usize,
    }

    impl Slow {
        fn new(fails_after: usize) -> Slow {
            Slow {
                properties: Properties {
                    name: "slow".to_owned(),
                    encoder: Encoder::Nothing,
                    has_value: true,
                    has_moves_left: false,
                    has_error: false,
                    reads_ratings: false,
                    correction: None,
                    recommended_batch: 1,
                    recommended_threads: 1,
                    format: None,
                },
                calls: AtomicUsize::new(0),
                fails_after,
            }
        }
    }

    impl Backend for Slow {
        fn properties(&self) -> &Properties {
            &self.properties
        }

        fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
            if self.calls.fetch_add(1, Ordering::Relaxed) >= self.fails_after {
                return Err(BackendError::Stopped);
            }
            std::thread::sleep(Duration::from_millis(1));
            out.clear();
            for index in 0..batch.len() {
                out.push(Value::default(), batch.moves(index).iter().map(|_| 0.0));
            }
            Ok(())
        }
    }

    #[test]
    fn speed_counts_every_thread_and_every_position() {
        let slow = Slow::new(usize::MAX);
        let positions = positions(16, &Encoder::Nothing).unwrap();
        let time = Duration::from_millis(60);
        let one = measure(&slow, &positions, 1, 1, time).unwrap();
        let many = measure(&slow, &positions, 32, 2, time).unwrap();
        assert!(
            one.milliseconds >= 1.0 && many.milliseconds >= 1.0,
            "{one:?} {many:?}"
        );
        // Positions evaluated during a call: those of each thread.
        let concurrent = |of: Throughput| of.evaluations_per_second * of.milliseconds / 1e3;
        assert!((concurrent(one) - 1.0).abs() < 1e-6, "{one:?}");
        // The threads need not be equally fast.
        assert!(concurrent(many) > 1.5 * 32.0, "{many:?}");
    }

    #[test]
    fn failures_end_the_measurement() {
        let positions = positions(4, &Encoder::Nothing).unwrap();
        for fails_after in [0, 4, 9] {
            let slow = Slow::new(fails_after);
            let time = Duration::from_secs(60);
            assert!(measure(&slow, &positions, 1, 2, time).is_err());
        }
    }
}
