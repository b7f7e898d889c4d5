//! Keeps progress bars and messages on the same terminal apart.

use indicatif::{MultiProgress, ProgressBar};
use std::io::{self, Write};
use std::sync::LazyLock;
use tessera::error_report::{has_colours, log_filter};
use tessera::progress;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// All progress bars of the program; messages appear above the bars.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Returns a progress bar over `length` units; messages appear above the bar.
pub fn bar(length: Option<u64>, unit: &str) -> ProgressBar {
    BARS.add(progress::bar(length, unit))
}

/// Prints log messages to standard error, above the bars. RUST_LOG selects the messages, by default
/// warnings and errors.
pub fn show_warnings() {
    let layer = fmt::layer()
        .with_writer(|| AboveBars)
        .with_ansi(has_colours())
        .without_time()
        .with_target(false)
        // Internal errors would be printed to standard error, and printing panics if it is closed.
        .log_internal_errors(false);
    tracing_subscriber::registry()
        .with(layer)
        .with(log_filter())
        .init();
}

/// A writer to standard error that hides the bars while it writes.
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
