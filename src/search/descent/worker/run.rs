//! Runs a search thread until the search ends for any reason.

use super::SearchWorker;
use crate::search::environment::Environment;
use crate::search::shared::Shared;
use std::sync::atomic::Ordering::Relaxed;

/// Stops a search when its thread panics. Otherwise the other threads would run forever and the
/// search would wait for them.
struct StopOnPanic<'a>(&'a Shared<'a>);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

impl<E: Environment> SearchWorker<'_, E> {
    /// Searches until `is_over` returns true, until the visits run out, or until too little time is
    /// left for an evaluation.
    pub(crate) fn run(mut self, mut is_over: impl FnMut() -> bool) {
        let shared = self.shared;
        let _guard = StopOnPanic(shared);
        while !is_over() {
            if shared.tree.is_low() {
                let _alone = shared.gate.write();
                if shared.tree.is_low() {
                    shared.tree.evict(|| shared.is_urgent());
                }
            }
            self.look_for_mates();
            let began = shared.control.now();
            let want = shared.affordable_batch();
            if want == 0 {
                shared.stop();
                break;
            }
            let gathered = {
                let _inside = shared.gate.read();
                self.gather(want)
            };
            match self.evaluate() {
                Ok(()) => {
                    let _inside = shared.gate.read();
                    self.finish();
                }
                Err(error) => {
                    let _inside = shared.gate.read();
                    self.abandon();
                    shared.fail(error);
                }
            }
            if gathered.leaves > 0 {
                let taken = shared.control.now().saturating_duration_since(began);
                if let Some(expected) = shared.latency.expected(gathered.leaves) {
                    shared.lag.record(taken, expected);
                }
                shared.latency.record(gathered.leaves, taken);
            } else if shared.remaining.load(Relaxed) == 0 {
                break;
            } else if gathered.visits == 0 {
                shared.rest();
            }
        }
        self.release_memory();
    }
}
