//! Progress bars and messages on one terminal.

use indicatif::{MultiProgress, ProgressBar};
use std::io::{self, Write};
use std::sync::LazyLock;
use tessera::error_report::{has_colours, log_filter};
use tessera::progress;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// All bars of the program, so that messages know what to write above.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// A bar over `length` of something that messages are shown above.
pub fn bar(length: Option<u64>, unit: &str) -> ProgressBar {
    BARS.add(progress::bar(length, unit))
}

/// Shows warnings on standard error, above the bars; RUST_LOG chooses which.
pub fn show_warnings() {
    let layer = fmt::layer()
        .with_writer(|| AboveBars)
        .with_ansi(has_colours())
        .without_time()
        .with_target(false)
        // They would be told on standard error, which panics where it is closed.
        .log_internal_errors(false);
    tracing_subscriber::registry()
        .with(layer)
        .with(log_filter())
        .init();
}

/// Standard error, with the bars out of the way.
struct AboveBars;

impl Write for AboveBars {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A terminal that is gone would make `suspend` panic.
        BARS.clear()?;
        BARS.suspend(|| io::stderr().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
