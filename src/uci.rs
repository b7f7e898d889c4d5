//! UCI, the protocol between the engine and chess programs: parsing, the option table, the session,
//! and info lines.
//!
//! One thread reads the input and another executes it; a third, the worker, loads networks and
//! searches; a fourth writes the output, so that commands from a client that does not read are
//! still received. Commands never wait for the worker, and the worker's task holds copies of
//! everything that it depends on. Therefore, during a search:
//!
//! - `isready` and `uci` are answered immediately.
//! - `position`, `ucinewgame` and `setoption` apply from the next `go`. The running search is
//!   unaffected.
//! - A second `go` begins when the first search has ended and sent its `bestmove`. If the first
//!   would not end by itself (because it is `infinite` or pondering), it is stopped. `stop` stops
//!   both. (In this situation Stockfish stops reading, and Lc0 omits the first `bestmove`.)
//! - `quit`, the end of the input and a closed output stop the search. The session waits up to five
//!   seconds for its `bestmove`, ten for the count of a `go perft`, and a minute for a network that
//!   is loading, because a script that pipes its commands on a busy machine wants the answers.
//! - When 256 searches are waiting, reading pauses until one has ended.
//!
//! Every `go` is answered with one `bestmove`. It is `(none)` only in positions without legal
//! moves, because an engine that does not answer loses the game. If a network cannot be loaded, or
//! does not support the agent, another network plays, and without any network a legal move is
//! played. `go perft` ends with only `Nodes searched`, as in Stockfish.
//!
//! Whenever the engine does not do what it was told, it sends an `info string` that begins with
//! `ERROR: `: before `readyok` and ahead of every other line of a search, for as long as a
//! substitute plays; when an option's value is refused, and at every search until it has a valid
//! one; and once for an error in another command. The position and the options keep their earlier
//! values. An unreadable limit of `go` is ignored; if no other limit remains, the
//! engine answers immediately.

mod display;
mod info;
pub mod options;
mod output;
mod parse;
mod session;
mod settings;
mod task;
mod worker;

#[cfg(feature = "serve")]
pub(crate) use info::info_lines;
pub use settings::Settings;

use crate::exit::{SUCCESS, exit_at_once};
use crate::player::{EngineFactory, Factory};
use crossbeam::channel::{Sender, bounded, select_biased};
use output::Output;
use session::{Grace, Rest, Session};
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::thread;

/// Longer lines are skipped, to bound memory use. The longest possible game of chess needs a
/// twentieth of this.
const LONGEST_LINE: u64 = 1 << 20;

/// Runs UCI until `quit`, the end of `input` or a failed write to `output`. `settings` apply
/// until the client sets others.
///
/// This should be the last call in a process. If a search does not stop within five seconds (one
/// evaluation may take longer on a slow device), a network is still loading after a minute, or the
/// client does not read, this function ends the process with exit status 0 instead of returning. If
/// it returns before `input` has ended, the thread that reads `input` keeps waiting for the next
/// line.
///
/// # Errors
/// If the input or the output fails, or a thread cannot be started.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    settings: Settings,
) -> io::Result<()> {
    match serve_with(
        EngineFactory::default(),
        Grace::default(),
        input,
        output,
        settings,
    )? {
        Rest::Reached => Ok(()),
        // libFuzzer saves inputs that panic.
        Rest::Missed if cfg!(fuzzing) => panic!("a search does not heed its stop"),
        Rest::Missed => exit_at_once(SUCCESS),
    }
}

fn serve_with(
    factory: impl Factory,
    grace: Grace,
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    settings: Settings,
) -> io::Result<Rest> {
    let output = Arc::new(Output::new(output)?);
    let mut session = Session::start(output.clone(), factory, settings)?;
    // Reads at most one line ahead of the command being executed.
    let (sender, lines) = bounded(0);
    thread::Builder::new()
        .name("input".to_owned())
        .spawn(move || read_lines(input, &sender))?;
    let mut read = Ok(());
    loop {
        let next = select_biased! {
            recv(&output.broken) -> _ => break,
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
    match session.end(grace)? {
        Rest::Reached => read.map(|()| Rest::Reached),
        Rest::Missed => Ok(Rest::Missed),
    }
}

/// Forwards lines until the input ends, fails or is no longer wanted.
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

/// Reads a line into `line`, truncating an overlong one just beyond the limit; returns whether a
/// line was read.
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
