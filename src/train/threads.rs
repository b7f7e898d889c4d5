//! The threads that compute a training step.
//!
//! On a CPU, a step is split into single-threaded tasks. Splitting each operation over several
//! threads instead would be slower, because most operations are too small. For tessera-xs in bf16,
//! two replicas with one thread each trained on 1,190 positions per second, but one replica with
//! two threads on only 750.

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// A pool of threads.
#[derive(Debug)]
pub(super) struct Threads {
    /// `None` if the caller's thread does all the work.
    pool: Option<ThreadPool>,
}

impl Threads {
    /// Uses only the caller's thread, and leaves libtorch's own thread settings unchanged.
    pub fn one() -> Threads {
        Threads { pool: None }
    }

    /// Creates a pool of `count` threads. If `count` is 1, the work runs on the caller's thread.
    ///
    /// If `count` is more than 1, libtorch from then on runs each operation on the thread that
    /// calls it, throughout the process.
    ///
    /// # Errors
    /// [`ThreadPoolBuildError`] if a thread cannot be started.
    pub fn new(count: usize) -> Result<Threads, ThreadPoolBuildError> {
        if count <= 1 {
            return Ok(Threads::one());
        }
        tch::set_num_threads(1);
        let pool = ThreadPoolBuilder::new()
            .num_threads(count)
            .thread_name(|thread| format!("train-{thread}"))
            // OpenMP and MKL store this setting per thread.
            .start_handler(|_| tch::set_num_threads(1))
            .build()?;
        Ok(Threads { pool: Some(pool) })
    }

    /// Returns the number of threads.
    pub fn count(&self) -> usize {
        self.pool
            .as_ref()
            .map_or(1, ThreadPool::current_num_threads)
    }

    /// Runs `work` on each item, each on any of the threads; returns the results in order.
    pub fn map<T: Send, R: Send>(
        &self,
        items: Vec<T>,
        work: impl Fn(T) -> R + Send + Sync,
    ) -> Vec<R> {
        match &self.pool {
            None => items.into_iter().map(work).collect(),
            Some(pool) => pool.install(|| {
                let items = items.into_par_iter().with_max_len(1);
                items.map(work).collect()
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn threads_work_at_once_with_one_of_libtorchs_each() {
        let threads = Threads::new(3).unwrap();
        assert_eq!(threads.count(), 3);
        let all_here = Barrier::new(3);
        let found = threads.map(vec![0, 1, 2], |item| {
            all_here.wait();
            (item, tch::get_num_threads())
        });
        assert_eq!(found, [(0, 1), (1, 1), (2, 1)]);
    }

    #[test]
    fn one_thread_is_the_callers() {
        let here = std::thread::current().id();
        let threads = Threads::new(1).unwrap();
        let found = threads.map(vec![(), ()], |()| std::thread::current().id());
        assert_eq!((threads.count(), found), (1, vec![here; 2]));
    }
}
