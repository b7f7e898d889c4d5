//! Threads that share the work of a step.
//!
//! On a CPU a step is cut into tasks, each computed by one thread, in place of
//! threads inside every operation: most operations are too small to share. Two
//! replicas of a thread each learnt 1,190 positions a second where one replica
//! with two threads learnt 750 (tessera-xs, bf16).

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// Threads that wait for tasks.
#[derive(Debug)]
pub(super) struct Threads {
    /// `None` where the caller's thread does everything.
    pool: Option<ThreadPool>,
}

impl Threads {
    /// The caller's thread alone. It leaves libtorch's own threads as they are.
    pub fn one() -> Threads {
        Threads { pool: None }
    }

    /// Starts `count` threads, which live as long as this; one is the caller's.
    ///
    /// Where there are several, libtorch computes each operation on its caller's
    /// thread alone from now on, in the whole process.
    ///
    /// # Errors
    /// [`ThreadPoolBuildError`] if the system gives no thread.
    pub fn new(count: usize) -> Result<Threads, ThreadPoolBuildError> {
        if count <= 1 {
            return Ok(Threads::one());
        }
        tch::set_num_threads(1);
        let pool = ThreadPoolBuilder::new()
            .num_threads(count)
            .thread_name(|thread| format!("train-{thread}"))
            // OpenMP and MKL keep their setting by thread.
            .start_handler(|_| tch::set_num_threads(1))
            .build()?;
        Ok(Threads { pool: Some(pool) })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.pool
            .as_ref()
            .map_or(1, ThreadPool::current_num_threads)
    }

    /// Does `work` on each of the items; returns the results in their order.
    /// Which thread takes which item is left to chance.
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
