//! The process of one worker.

use super::BLINK;
use anyhow::{Context, bail};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tessera::cycle::{FINAL, was_ended_by_others};

/// Pause before the first restart of a failed worker; the pause doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Number of consecutive failures soon after a start at which the loop ends.
const FAILURES: u32 = 5;
/// Time after a start within which a failure counts as soon.
const SOON: Duration = Duration::from_secs(20);

/// A worker's task.
pub(super) struct Work {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) config: PathBuf,
    pub(super) log: PathBuf,
    pub(super) threads: usize,
    /// Whether the loop ends when this worker has finished.
    pub(super) is_needed: bool,
}

/// A worker's process, which is restarted after failures that a restart may fix.
pub(super) struct Process {
    work: Work,
    state: State,
    /// Number of consecutive failures so far.
    failures: u32,
}

enum State {
    /// Waiting to be started at this time.
    Waits(Instant),
    Runs {
        child: Child,
        since: Instant,
    },
    Done,
}

impl Process {
    pub(super) fn new(work: Work) -> Process {
        Process {
            work,
            state: State::Waits(Instant::now()),
            failures: 0,
        }
    }

    /// Returns whether the loop ends when this worker has finished.
    pub(super) fn is_needed(&self) -> bool {
        self.work.is_needed
    }

    /// Starts the worker if a start is due, and handles the exit of its process.
    pub(super) fn keep(&mut self) -> anyhow::Result<()> {
        match &mut self.state {
            State::Waits(until) if Instant::now() >= *until => {
                self.state = State::Runs {
                    child: self.start()?,
                    since: Instant::now(),
                };
            }
            State::Runs { child, since } => {
                let since = *since;
                let ended = child.try_wait().context("cannot wait for a worker")?;
                if let Some(status) = ended {
                    self.ended(status, since)?;
                }
            }
            State::Waits(_) | State::Done => {}
        }
        Ok(())
    }

    fn start(&self) -> anyhow::Result<Child> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let log = File::options()
            .create(true)
            .append(true)
            .open(&self.work.log);
        let log = log.with_context(|| format!("cannot open {}", self.work.log.display()))?;
        let errors = log.try_clone().context("cannot use a log twice")?;
        Command::new(program)
            .arg(self.work.kind)
            .arg(&self.work.config)
            .args(["--threads", &self.work.threads.to_string()])
            .args(["--name", &self.work.name, "--with-parent"])
            // The worker exits when this pipe closes, which happens no matter how this process
            // ends.
            .stdin(Stdio::piped())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {}", self.work.name))
    }

    fn ended(&mut self, status: ExitStatus, since: Instant) -> anyhow::Result<()> {
        if status.success() {
            self.state = State::Done;
            return Ok(());
        }
        let last = self.last_words();
        if since.elapsed() > SOON {
            self.failures = 0;
        }
        self.failures += u32::from(!was_ended_by_others(status));
        let (name, log) = (&self.work.name, self.work.log.display());
        if status.code() == Some(FINAL) {
            let reason = last.strip_prefix("error: ").unwrap_or(&last);
            bail!("{name}: {reason} ({log})");
        }
        if self.failures >= FAILURES {
            bail!("{name} failed {FAILURES} times in a row, most recently: {last} ({log})");
        }
        tracing::warn!("{name} ended early ({status}) and is restarted: {last}");
        let pause = FIRST_PAUSE * 2u32.pow(self.failures);
        self.state = State::Waits(Instant::now() + pause.min(LONGEST_PAUSE));
        Ok(())
    }

    /// Returns the last line of the worker's log.
    fn last_words(&self) -> String {
        let text = std::fs::read(&self.work.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[text.len().saturating_sub(4096)..]);
        text.lines().next_back().unwrap_or("no output").to_owned()
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Asks the worker to exit, by closing its standard input.
    pub(super) fn let_go(&mut self) {
        if let State::Runs { child, .. } = &mut self.state {
            drop(child.stdin.take());
        }
    }

    /// Waits for the worker to exit, and kills it at time `end`.
    pub(super) fn bury(&mut self, end: Instant) {
        let State::Runs { child, .. } = &mut self.state else {
            return;
        };
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() >= end {
                tracing::warn!("{} does not exit and is killed", self.work.name);
                // The worker may already have exited.
                let _ = child.kill();
                let _ = child.wait();
                break;
            }
            std::thread::sleep(BLINK);
        }
        self.state = State::Done;
    }
}
