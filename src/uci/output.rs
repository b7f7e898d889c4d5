//! The one way out: whole lines, one after another, from whichever thread.

use crate::bounded;
use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;
use vampirc_uci::{Serializable, UciInfoAttribute, UciMessage};

/// Characters of an `info string` that clients can be expected to cope with.
const LONGEST_INFO: usize = 500;

/// Writes lines and, where asked to, the log.
pub(crate) struct Output(Mutex<Channel>);

struct Channel {
    writer: Box<dyn Write + Send>,
    /// Why nothing can be written any more.
    failure: Option<io::Error>,
    log: Option<File>,
    start: Instant,
}

impl Output {
    pub(crate) fn new(writer: impl Write + Send + 'static) -> Output {
        Output(Mutex::new(Channel {
            writer: Box::new(writer),
            failure: None,
            log: None,
            start: Instant::now(),
        }))
    }

    /// Writes one line.
    pub(crate) fn line(&self, line: &str) {
        self.0.lock().write(line);
    }

    /// Writes the line that ends a task; `finish` is called just before anyone
    /// can read it, so that who reads it finds the task finished.
    pub(crate) fn last_line(&self, line: &str, finish: impl FnOnce()) {
        let mut channel = self.0.lock();
        finish();
        channel.write(line);
    }

    /// Waits until the line of a task that has finished is written, but not for
    /// ever: a client that no longer reads must not keep the engine alive.
    ///
    /// # Errors
    /// If something could not be written.
    pub(crate) fn settle(&self, deadline: Instant) -> io::Result<()> {
        let channel = self.0.try_lock_until(deadline);
        let failure = channel.and_then(|mut channel| channel.failure.take());
        failure.map_or(Ok(()), Err)
    }

    /// Writes a message.
    pub(crate) fn message(&self, message: &UciMessage) {
        self.line(&message.serialize());
    }

    /// Writes a text for people, each of its lines an `info string`.
    pub(crate) fn info_string(&self, text: &str) {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let line = excerpt(line, LONGEST_INFO).replace(char::is_control, " ");
            self.message(&UciMessage::Info(vec![UciInfoAttribute::String(line)]));
        }
    }

    /// Notes a line of input in the log.
    pub(crate) fn received(&self, line: &str) {
        self.0.lock().note('>', line);
    }

    /// Appends everything from now on to the file at `path`; `None` ends that.
    pub(crate) fn set_log(&self, path: Option<&Path>) -> io::Result<()> {
        let log = path.map(bounded::append_to).transpose()?;
        self.0.lock().log = log;
        Ok(())
    }

    /// Whether the other side is gone.
    pub(crate) fn is_broken(&self) -> bool {
        self.0.lock().failure.is_some()
    }
}

impl Channel {
    fn write(&mut self, line: &str) {
        self.note('<', line);
        let written = writeln!(self.writer, "{line}").and_then(|()| self.writer.flush());
        if let Err(error) = written {
            self.failure.get_or_insert(error);
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

/// The first `longest` characters of a text, with a mark where more follow.
pub(crate) fn excerpt(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
