//! The shared output, which receives whole lines, one after another, from any thread.
//!
//! A separate thread writes the lines. A searching thread waits for a client that does not read, to
//! bound memory. The listening thread does not wait, so that it still receives `quit`.

use crate::bounded;
use crossbeam::channel::{self, Receiver, Sender};
use parking_lot::{Condvar, Mutex};
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use vampirc_uci::{Serializable, UciInfoAttribute, UciMessage};

/// Number of characters in an `info string` that clients can be expected to handle.
const LONGEST_INFO: usize = 500;
/// Number of unread bytes at which a patient [`Output`] waits, …
const MOST_UNREAD: usize = 1 << 20;
/// … and at which all other outputs wait too, to bound memory.
const MOST_UNREAD_ANSWERS: usize = 64 << 20;

/// Writes lines and, if enabled, the log.
pub(crate) struct Output {
    queue: Arc<Queue>,
    /// Never receives anything; disconnects when writing has failed.
    pub(crate) broken: Receiver<Infallible>,
    /// Number of unread bytes at which this output waits.
    most_unread: usize,
}

struct Queue {
    lines: Mutex<Lines>,
    changed: Condvar,
}

struct Lines {
    /// Whole lines that are still to be written.
    waiting: Vec<u8>,
    /// Number of bytes in the lines that are being written.
    in_hand: usize,
    /// Why writing has failed.
    failure: Option<io::Error>,
    /// `None` after a failure.
    holds: Option<Sender<Infallible>>,
    /// The number of open outputs.
    outputs: usize,
    log: Option<File>,
    start: Instant,
}

impl Output {
    /// # Errors
    /// If the system cannot start a thread.
    pub(crate) fn new(writer: impl Write + Send + 'static) -> io::Result<Output> {
        let (holds, broken) = channel::bounded(0);
        let lines = Lines {
            waiting: Vec::new(),
            in_hand: 0,
            failure: None,
            holds: Some(holds),
            outputs: 1,
            log: None,
            start: Instant::now(),
        };
        let queue = Arc::new(Queue {
            lines: Mutex::new(lines),
            changed: Condvar::new(),
        });
        let shared = queue.clone();
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || shared.write_to(writer))?;
        Ok(Output {
            queue,
            broken,
            most_unread: MOST_UNREAD_ANSWERS,
        })
    }

    /// Returns the same output for a thread that may block: writing waits while the client does not
    /// read.
    pub(crate) fn patient(&self) -> Output {
        self.queue.lines.lock().outputs += 1;
        Output {
            queue: self.queue.clone(),
            broken: self.broken.clone(),
            most_unread: MOST_UNREAD,
        }
    }

    /// Writes one line.
    pub(crate) fn line(&self, line: &str) {
        self.last_line(line, || {});
    }

    /// Writes the line that ends a task. `finish` is called just before the line can be read, so
    /// that a client that has read it finds the task finished.
    pub(crate) fn last_line(&self, line: &str, finish: impl FnOnce()) {
        let mut lines = self.queue.lines.lock();
        while lines.unread() >= self.most_unread {
            self.queue.changed.wait(&mut lines);
        }
        finish();
        lines.add(line);
        self.queue.changed.notify_all();
    }

    /// Waits until everything has been written, but not forever, because a client that no longer
    /// reads must not keep the engine alive. Returns whether everything has been written.
    ///
    /// # Errors
    /// If something could not be written.
    pub(crate) fn settle(&self, deadline: Instant) -> io::Result<bool> {
        let mut lines = self.queue.lines.lock();
        while lines.unread() > 0 {
            if self
                .queue
                .changed
                .wait_until(&mut lines, deadline)
                .timed_out()
            {
                break;
            }
        }
        let is_written = lines.unread() == 0;
        lines.failure.take().map_or(Ok(is_written), Err)
    }

    /// Writes a message.
    pub(crate) fn message(&self, message: &UciMessage) {
        self.line(&message.serialize());
    }

    /// Writes a text for people, with each line as an `info string`.
    pub(crate) fn info_string(&self, text: &str) {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let line = excerpt(line, LONGEST_INFO).replace(char::is_control, " ");
            self.message(&UciMessage::Info(vec![UciInfoAttribute::String(line)]));
        }
    }

    /// Writes a reason why the engine does not do what it was told, and what it does instead. Programs
    /// look for this prefix, which is Stockfish's; Lc0 writes `error`.
    pub(crate) fn problem(&self, text: &str) {
        self.info_string(&format!("ERROR: {text}"));
    }

    /// Logs a line of input.
    pub(crate) fn received(&self, line: &str) {
        self.queue.lines.lock().note('>', line);
    }

    /// Appends everything from now on to the log at `path`, or closes the log if `path` is `None`.
    pub(crate) fn set_log(&self, path: Option<&Path>) -> io::Result<()> {
        let log = path.map(bounded::append_to).transpose()?;
        self.queue.lines.lock().log = log;
        Ok(())
    }

    /// Returns whether writing has failed.
    pub(crate) fn is_broken(&self) -> bool {
        self.queue.lines.lock().holds.is_none()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.queue.lines.lock().outputs -= 1;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    /// Writes queued lines until all outputs are closed.
    fn write_to(&self, mut writer: impl Write) {
        let mut lines = self.lines.lock();
        loop {
            while lines.waiting.is_empty() {
                if lines.outputs == 0 {
                    return;
                }
                self.changed.wait(&mut lines);
            }
            let text = std::mem::take(&mut lines.waiting);
            lines.in_hand = text.len();
            drop(lines);
            let written = writer.write_all(&text).and_then(|()| writer.flush());
            lines = self.lines.lock();
            lines.in_hand = 0;
            if let Err(error) = written {
                lines.waiting.clear();
                lines.failure.get_or_insert(error);
                lines.holds = None;
            }
            self.changed.notify_all();
        }
    }
}

impl Lines {
    /// Returns the number of bytes that the client has not read.
    fn unread(&self) -> usize {
        self.waiting.len() + self.in_hand
    }

    fn add(&mut self, line: &str) {
        self.note('<', line);
        // Nothing is queued after a failure.
        if self.holds.is_some() {
            self.waiting.extend_from_slice(line.as_bytes());
            self.waiting.push(b'\n');
        }
    }

    fn note(&mut self, direction: char, line: &str) {
        let seconds = self.start.elapsed().as_secs_f64();
        if let Some(log) = &mut self.log
            && writeln!(log, "{seconds:10.3} {direction} {line}").is_err()
        {
            // A log that cannot be written must not disturb the game.
            self.log = None;
        }
    }
}

/// Returns the first `longest` characters of a text, with an ellipsis if it is truncated.
pub(crate) fn excerpt(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
