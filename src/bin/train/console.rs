//! Progress bars and messages on the same terminal.

use indicatif::{MultiProgress, ProgressBar};
use std::io::{self, Write};
use std::sync::LazyLock;
use tessera::error_report::{has_colours, log_filter};
use tessera::progress;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// All of the program's progress bars; messages appear above them.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Returns a progress bar over `length` units; messages appear above it.
pub fn bar(length: Option<u64>, unit: &str) -> ProgressBar {
    BARS.add(progress::bar(length, unit))
}

/// Prints warnings to standard error, above the bars; RUST_LOG selects which.
pub fn show_warnings() {
    let layer = fmt::layer()
        .with_writer(|| AboveBars)
        .with_ansi(has_colours())
        .without_time()
        .with_target(false)
        // Internal errors would be printed to standard error, which panics if it is closed.
        .log_internal_errors(false);
    tracing_subscriber::registry()
        .with(layer)
        .with(log_filter())
        .init();
}

/// Standard error; the bars are hidden while it is written to.
struct AboveBars;

impl Write for AboveBars {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // If the terminal is gone, `suspend` would panic.
        BARS.clear()?;
        BARS.suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
