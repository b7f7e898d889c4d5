//! The protocol between the engine and chess programs: parsing, the option
//! table, the session, info lines.
//!
//! One thread reads the input and another obeys; a third, the worker, loads networks
//! and thinks; a fourth writes what there is to say, so that a client that does
//! not read is still heard. A command never waits for the worker, and the worker's job holds
//! copies of all that it depends on. Hence what happens during a search:
//!
//! - `isready` and `uci` are answered at once.
//! - `position`, `ucinewgame` and `setoption` count from the next `go` on. The
//!   search that runs does not notice.
//! - A second `go` begins when the first search has ended and given its
//!   `bestmove`. Where the first would not end by itself (`infinite`, or
//!   pondering) it is stopped. `stop` stops both. (Stockfish does not read on
//!   in this case, and Lc0 leaves out the first `bestmove`.)
//! - `quit`, the end of the input and an output that is closed stop it. Its `bestmove` is
//!   waited for, for a second at most, the count of `go perft` for two, a network that
//!   loads for ten.
//! - Behind 256 searches that wait, input is read on when one has ended.
//!
//! Every `go` is answered by one `bestmove`. It is `(none)` only where there is no
//! legal move: no answer would lose a game. Where a network cannot be loaded, or cannot
//! serve the agent, another one plays, and where there is none any legal move is played;
//! an `info string` that begins with `WARNING` says so before every move.
//! `go perft` ends in `Nodes searched` alone, as in Stockfish.
//!
//! Errors in a command are reported in an `info string`, and earlier settings stay: the position,
//! each option. An unreadable limit of `go` is ignored; if no other remains, the engine answers
//! immediately.

mod display;
mod info;
pub mod options;
mod output;
mod parse;
mod session;
mod settings;
mod task;
mod worker;

pub(crate) use info::info_lines;
pub use info::{WrittenScore, centipawns};
pub use settings::Settings;

use crate::player::{EngineFactory, Factory};
use crossbeam::channel::{Sender, bounded, select_biased};
use output::Output;
use session::{Rest, Session};
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::thread;

/// Longer lines are passed over, so that no input fills the memory. The longest
/// game of chess takes a twentieth.
const LONGEST_LINE: u64 = 1 << 20;

/// Speaks UCI until `quit`, the end of `input` or the first line that `output` does not
/// take. `settings` hold until the client sets others.
///
/// Made to be the last thing that a process does: where a search does not heed
/// its stop within a second (one evaluation may take longer on a slow device), or a network is still
/// loading after ten, this function ends the process, successfully, instead of
/// returning. Where `input` has not ended, a thread of its own still waits for it.
///
/// # Errors
/// If input or output break, or no thread can be had.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    settings: Settings,
) -> io::Result<()> {
    match serve_with(EngineFactory::default(), input, output, settings)? {
        Rest::Reached => Ok(()),
        Rest::Missed => leave(),
    }
}

fn serve_with(
    factory: impl Factory,
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    settings: Settings,
) -> io::Result<Rest> {
    let output = Arc::new(Output::new(output)?);
    let mut session = Session::start(output.clone(), factory, settings)?;
    // Nothing is read ahead of what waits to be obeyed but one line.
    let (sender, lines) = bounded(0);
    thread::Builder::new()
        .name("input".to_owned())
        .spawn(move || read_lines(input, &sender))?;
    let mut read = Ok(());
    loop {
        let next = select_biased! {
            recv(output.broken()) -> _ => break,
            recv(lines) -> next => next,
        };
        match next {
            Ok(Ok(line)) if line.len() as u64 > LONGEST_LINE => {
                output.info_string("a line of more than a megabyte is ignored");
            }
            Ok(Ok(line)) => {
                let line = String::from_utf8_lossy(&line);
                if session.handle(line.trim_end()).is_break() {
                    break;
                }
            }
            Ok(Err(error)) => {
                read = Err(error);
                break;
            }
            // The input has ended.
            Err(_) => break,
        }
    }
    match session.end()? {
        Rest::Reached => read.map(|()| Rest::Reached),
        Rest::Missed => Ok(Rest::Missed),
    }
}

/// Hands on lines until the input ends, fails or is no longer wanted.
fn read_lines(mut input: impl BufRead, lines: &Sender<io::Result<Vec<u8>>>) {
    loop {
        let mut line = Vec::new();
        let read = match read_line(&mut input, &mut line) {
            Ok(true) => Ok(line),
            Ok(false) => return,
            Err(error) => Err(error),
        };
        let failed = read.is_err();
        if lines.send(read).is_err() || failed {
            return;
        }
    }
}

/// Ends the process without its exit handlers. Those of libtorch destroy what
/// the worker is still computing with: half of the processes that returned from
/// `main` in the middle of an evaluation ended in a segmentation fault.
fn leave() -> ! {
    if cfg!(fuzzing) {
        // libFuzzer keeps the input of what panics.
        panic!("a search does not heed its stop");
    }
    unsafe extern "C" {
        fn _exit(status: std::ffi::c_int) -> !;
    }
    // SAFETY: `_exit` is the C library's, on Unix and Windows alike, and may be
    // called at any time. What it leaves out is nothing we need: every line of
    // output has been flushed.
    unsafe { _exit(0) }
}

/// Reads a line into `line`, of an overlong one just enough to see that;
/// whether there was one.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    input
        .by_ref()
        .take(LONGEST_LINE + 1)
        .read_until(b'\n', line)?;
    if line.len() as u64 > LONGEST_LINE && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    Ok(!line.is_empty())
}

#[cfg(test)]
mod tests;
