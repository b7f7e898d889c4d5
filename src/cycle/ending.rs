//! Why a worker's process ended.

use std::process::ExitStatus;

/// POSIX's numbers of the signals by which people and systems end a process, whatever it
/// does: SIGINT, SIGKILL and SIGTERM.
#[cfg(unix)]
const ORDERED: [i32; 3] = [2, 9, 15];

/// Whether a process ended because it was told to, and did nothing wrong. Signals such
/// as SIGABRT and SIGSEGV are its own doing.
#[must_use]
pub fn was_ended_by_others(status: ExitStatus) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        let signal = status.signal();
        if signal.is_some_and(|signal| ORDERED.contains(&signal)) {
            return true;
        }
    }
    status.success()
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn crashes_are_failures_and_orders_to_end_are_not() {
        use super::was_ended_by_others;
        use std::os::unix::process::ExitStatusExt;
        use std::process::ExitStatus;
        let is_failure = |status| !was_ended_by_others(ExitStatus::from_raw(status));
        // SIGILL, SIGABRT, SIGBUS and SIGSEGV, and an exit with status 1.
        for status in [4, 6, 7, 11, 1 << 8] {
            assert!(is_failure(status), "{status}");
        }
        for status in [2, 9, 15, 0] {
            assert!(!is_failure(status), "{status}");
        }
    }
}
