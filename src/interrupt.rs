//! Ctrl-C, SIGTERM and SIGHUP: the first one stops a program's work, and the second one ends the
//! program.

use crate::exit::{INTERRUPTED, exit_at_once};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Calls `stop` at the first Ctrl-C, SIGTERM or SIGHUP, so that the program can finish its work. The
/// second one ends the program at once, with the status that shells give to programs that the signal
/// has ended: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
///
/// # Errors
/// The system's error, or an error if the function was called before.
pub fn stop_at_first(stop: impl Fn() + Send + 'static) -> io::Result<()> {
    let is_stopping = AtomicBool::new(false);
    ctrlc::set_handler(move || {
        if !is_stopping.swap(true, Relaxed) {
            stop();
        } else if cfg!(not(unix)) {
            exit_at_once(INTERRUPTED);
        }
    })
    .map_err(io::Error::other)?;
    #[cfg(unix)]
    end_at_second()?;
    Ok(())
}

/// Ends the program at the second signal. ctrlc's handler could not, because it does not know which
/// signal was sent.
#[cfg(unix)]
fn end_at_second() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::flag;
    use std::sync::Arc;
    let was_sent = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The actions run in this order, so that the first signal only sets the flag.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&was_sent))?;
        flag::register(signal, Arc::clone(&was_sent))?;
    }
    Ok(())
}
