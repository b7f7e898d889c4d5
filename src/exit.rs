//! The end of the programs' processes.
//!
//! Both programs end through this module instead of returning from `main`, which would run exit
//! handlers. Those of libtorch tear down its operator tables, which takes a third of the time of a
//! command that does nothing else, and destroy objects that other threads may still be using: half
//! of the processes that returned from `main` in the middle of an evaluation crashed with a
//! segmentation fault.

use std::ffi::c_int;
use std::io::{self, Write};

/// Exit status of a command that has done what it was told.
pub const SUCCESS: i32 = 0;
/// Exit status of a command that has failed.
pub const FAILURE: i32 = 1;
/// Exit status after an interrupt, by the convention of shells.
pub const INTERRUPTED: i32 = 130;

/// Ends the process after writing the rest of standard output. Waits for any thread that is writing
/// to it.
pub fn exit(status: i32) -> ! {
    // Commands flush what matters and report failures themselves.
    let _ = io::stdout().flush();
    exit_at_once(status)
}

/// Ends the process without waiting for any thread. A line of standard output that has not ended may
/// be lost.
pub fn exit_at_once(status: i32) -> ! {
    unsafe extern "C" {
        fn _exit(status: c_int) -> !;
    }
    // SAFETY: `_exit` belongs to the C library, on Unix and Windows alike, and may be called at any
    // time.
    unsafe { _exit(status) }
}
