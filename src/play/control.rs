//! Stopping, and the ponder hit.

use super::Limits;
use parking_lot::{Condvar, Mutex};
use std::time::Instant;

/// Steers a thinking [`Agent`](super::Agent) from another thread.
#[derive(Debug, Default)]
pub struct Control {
    state: Mutex<ControlState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ControlState {
    stop: bool,
    ponder_hit: Option<Instant>,
}

impl Control {
    /// Asks for the move now.
    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// Says that the opponent played the expected move: the clock now runs for us.
    pub fn ponder_hit(&self) {
        self.state
            .lock()
            .ponder_hit
            .get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    /// Returns whether the move has been asked for.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.state.lock().stop
    }

    /// When the expected move was played, if it was.
    #[must_use]
    pub fn ponder_hit_at(&self) -> Option<Instant> {
        self.state.lock().ponder_hit
    }

    /// Sleeps until stopped, or until the ponder hit where `or_ponder_hit`;
    /// for a player that has its answer but may not give it yet.
    pub fn wait(&self, or_ponder_hit: bool) {
        let mut state = self.state.lock();
        while !(state.stop || or_ponder_hit && state.ponder_hit.is_some()) {
            self.changed.wait(&mut state);
        }
    }

    /// Sleeps until stopped, at most until `deadline`; for a player that takes its
    /// time.
    pub fn wait_until(&self, deadline: Instant) {
        let mut state = self.state.lock();
        while !state.stop && !self.changed.wait_until(&mut state, deadline).timed_out() {}
    }

    /// Keeps an answer back for as long as [`Limits::infinite`] or
    /// [`Limits::ponder`] forbid to give it.
    pub fn hold_back(&self, limits: &Limits) {
        if limits.infinite || limits.ponder {
            self.wait(!limits.infinite);
        }
    }
}
