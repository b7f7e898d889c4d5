//! `tessera`: the engine's command line.

// These macros panic if their output is closed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod cli;

use mimalloc::MiMalloc;
use std::io;
use tessera::command_line::parse;
use tessera::error_report::{has_colours, log_filter, report};
use tessera::exit::{SUCCESS, exit};
#[cfg(feature = "torch")]
use tessera::inference;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Keeps the program's small, long-lived allocations out of glibc's heap, where libtorch allocates
/// activations of tens of megabytes. Mixing these fragments the heap: the memory of a search with a
/// network grew by hundreds of megabytes.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ! {
    // Standard output is reserved for UCI and results; RUST_LOG selects the log messages.
    let layer = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(has_colours())
        // Internal errors would be printed to standard error, and printing panics if it is closed.
        .log_internal_errors(false);
    tracing_subscriber::registry()
        .with(layer)
        .with(log_filter())
        .init();
    // `tools/release --wheel` sets the variable: the wheel has these networks in `nets`.
    #[cfg(feature = "torch")]
    if option_env!("TESSERA_BUILT_IN") != Some("none") {
        inference::carry(inference::NETWORKS);
    }
    exit(match parse::<cli::Cli>(&cli::GROUPS).run() {
        Ok(()) => SUCCESS,
        Err(error) => report(error.as_ref()),
    })
}
