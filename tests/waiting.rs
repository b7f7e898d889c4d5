//! Waiting for conditions in tests.

use std::time::Duration;

/// How long a test waits for anything before it gives up. No test passes or fails by how long it
/// waited, so this is far more than the busiest machine needs.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// Checks something that has to be in time, although the machine may be busy: calls `attempt` with
/// growing factors, by which it multiplies its times, until it returns true.
///
/// # Panics
/// If `attempt` returns false even for the largest factor; the message contains `what` was to hold.
#[track_caller]
pub fn at_some_pace(what: &str, mut attempt: impl FnMut(u32) -> bool) {
    assert!(
        [1, 4, 16, 64].into_iter().any(&mut attempt),
        "at no pace was it true that {what}"
    );
}
