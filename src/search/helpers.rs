//! Helper threads that run alongside the calling thread. They are kept between searches, because
//! libtorch has a high setup cost per thread.
//!
//! Unlike threads in a pool, they do not steal work: with a thousand threads on two cores, the
//! stealing threads would starve the working ones.

use crossbeam::channel::{Receiver, Sender, unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread::{self, JoinHandle};

/// Work for a thread, and a sender that signals its completion.
struct Job {
    work: &'static (dyn Fn() + Sync),
    done: Sender<thread::Result<()>>,
}

/// Threads waiting for work.
pub(super) struct Helpers(Vec<Helper>);

struct Helper {
    /// `None` only during drop.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Helpers {
    /// Starts `count` threads, or as many as the system allows.
    pub(super) fn new(count: usize) -> Helpers {
        let mut helpers = Vec::with_capacity(count);
        for number in 0..count {
            let (jobs, inbox) = unbounded();
            // The calling thread is number 1.
            let name = format!("search {}", number + 2);
            match thread::Builder::new().name(name).spawn(|| obey(inbox)) {
                Ok(thread) => helpers.push(Helper {
                    jobs: Some(jobs),
                    thread: Some(thread),
                }),
                Err(error) => {
                    tracing::warn!("searching with {} threads: {error}", number + 1);
                    break;
                }
            }
        }
        Helpers(helpers)
    }

    /// Runs `work` on every helper thread and `own` on the calling thread; returns when all threads
    /// have finished.
    ///
    /// # Panics
    /// If `work` or `own` panics on any thread; the panic is propagated once all threads have
    /// finished.
    pub(super) fn beside<R>(&self, work: &(dyn Fn() + Sync), own: impl FnOnce() -> R) -> R {
        // SAFETY: only jobs hold this reference, and `Pending` waits until the last job has been
        // dropped, whether `own` returns or panics.
        let work: &'static (dyn Fn() + Sync) = unsafe { std::mem::transmute(work) };
        let (done, outcomes) = unbounded();
        let mut pending = Pending {
            done: Some(done),
            outcomes,
        };
        for helper in &self.0 {
            if let (Some(jobs), Some(done)) = (&helper.jobs, &pending.done) {
                let done = done.clone();
                // If the thread has ended, `send` returns the job, which is then dropped.
                let _ = jobs.send(Job { work, done });
            }
        }
        let result = own();
        pending.wait().map_or(result, |panic| resume_unwind(panic))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // The thread catches its own panics.
            let _ = thread.join();
        }
    }
}

fn obey(inbox: Receiver<Job>) {
    for Job { work, done } in inbox {
        let outcome = catch_unwind(AssertUnwindSafe(work));
        let _ = done.send(outcome);
    }
}

/// Unfinished jobs. Each holds a sender that signals its completion.
struct Pending {
    done: Option<Sender<thread::Result<()>>>,
    outcomes: Receiver<thread::Result<()>>,
}

impl Pending {
    /// Waits until all jobs have been dropped; returns the first panic.
    fn wait(&mut self) -> Option<Box<dyn std::any::Any + Send>> {
        self.done = None;
        let mut panics = self.outcomes.iter().filter_map(Result::err);
        let first = panics.next();
        panics.for_each(drop);
        first
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panics;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::thread::sleep;
    use std::time::Duration;

    #[test]
    fn all_work_beside_the_caller_again_and_again() {
        let helpers = Helpers::new(5);
        for round in 1..=20 {
            let worked = AtomicUsize::new(0);
            let work = || {
                worked.fetch_add(round, Relaxed);
            };
            let own = helpers.beside(&work, || round);
            assert_eq!((own, worked.into_inner()), (round, 5 * round));
        }
    }

    #[test]
    fn a_panic_waits_for_all_and_leaves_the_threads() {
        let helpers = Helpers::new(3);
        let ended = AtomicUsize::new(0);
        let slow = || {
            // Long enough for the panic to come through too early.
            sleep(Duration::from_millis(50));
            ended.fetch_add(1, Relaxed);
        };
        let failing = || {
            slow();
            panic!("scripted");
        };
        for (work, own) in [
            (&failing as &(dyn Fn() + Sync), &slow as &dyn Fn()),
            (&slow, &failing),
        ] {
            ended.store(0, Relaxed);
            let panic = catch_unwind(AssertUnwindSafe(|| helpers.beside(work, own)));
            assert_eq!(panics::message(panic.unwrap_err().as_ref()), "scripted");
            assert_eq!(ended.load(Relaxed), 4);
        }
        helpers.beside(&slow, || {});
    }
}
