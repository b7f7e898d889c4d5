//! Stop and ponder-hit signals.

use super::{Clock, Limits};
use parking_lot::{Condvar, Mutex};
use std::time::Instant;

/// Controls a thinking [`Agent`](super::Agent) from another thread.
#[derive(Debug, Default)]
pub struct Control {
    state: Mutex<ControlState>,
    changed: Condvar,
    clock: Clock,
}

#[derive(Debug, Default)]
struct ControlState {
    stop: bool,
    ponder_hit: Option<Instant>,
}

impl Control {
    /// Returns a control whose agent measures time by `clock`.
    pub fn with_clock(clock: Clock) -> Control {
        Control {
            clock,
            ..Control::default()
        }
    }

    /// Returns the current time on the agent's clock.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Tells the agent to answer now.
    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// Signals that the opponent played the expected move, so our clock is now running.
    pub fn ponder_hit(&self) {
        let now = self.now();
        self.state.lock().ponder_hit.get_or_insert(now);
        self.changed.notify_all();
    }

    /// Returns whether the agent has been told to answer.
    pub fn stopped(&self) -> bool {
        self.state.lock().stop
    }

    /// Returns the time of the ponder hit, if there was one.
    pub fn ponder_hit_at(&self) -> Option<Instant> {
        self.state.lock().ponder_hit
    }

    /// Sleeps until stopped or, if `or_ponder_hit`, until the ponder hit. Agents call this if they
    /// have an answer but may not give it yet.
    pub fn wait(&self, or_ponder_hit: bool) {
        let mut state = self.state.lock();
        while !(state.stop || or_ponder_hit && state.ponder_hit.is_some()) {
            self.changed.wait(&mut state);
        }
    }

    /// Sleeps until stopped, but no longer than until `deadline`. Agents that take their time call
    /// this. On a manual clock, the time passes immediately.
    pub fn wait_until(&self, deadline: Instant) {
        let mut state = self.state.lock();
        if self.clock.is_manual() {
            if !state.stop {
                let left = deadline.saturating_duration_since(self.now());
                self.clock.sleep(left);
            }
            return;
        }
        while !state.stop && !self.changed.wait_until(&mut state, deadline).timed_out() {}
    }

    /// Withholds an answer for as long as [`Limits::infinite`] or
    /// [`Limits::ponder`] requires.
    pub fn hold_back(&self, limits: &Limits) {
        if limits.infinite || limits.ponder {
            self.wait(!limits.infinite);
        }
    }
}
