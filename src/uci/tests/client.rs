//! A client of a session in this process, and a scripted player.

use super::super::output::Output;
use super::super::session::{Grace, Rest, Session};
use super::super::settings::Settings;
use crate::agent::{self, AgentKind, ConfigurableAgent};
use crate::backend::{
    Backend, BackendError, BackendKind, BackendOptions, Batch, Evaluations, Properties,
};
use crate::chess::Game;
use crate::encode::Encoder;
use crate::inference::LoadError;
use crate::play::{
    Agent, AgentError, Choice, Control, Limits, Line, MoveStatistics, Report, Score,
};
use crate::player::Factory;
use crate::waiting::PATIENCE;
use crossbeam::channel::{Receiver, Sender, never, unbounded};
use parking_lot::Mutex;
use shakmaty::Position;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// `go nodes` with this number makes the scripted player fail.
pub(super) const BACKEND_FAILS: u64 = 666;
pub(super) const PANICS: u64 = 667;
pub(super) const FAILS_AT_ONCE: u64 = 668;
/// `go nodes` with this number makes the scripted player answer when the test releases it.
pub(super) const WAITS: u64 = 669_669_669;

/// Waits at the end for as long as a busy machine needs.
pub(super) const PATIENT: Grace = Grace {
    search: PATIENCE,
    perft: PATIENCE,
    loading: PATIENCE,
};

/// The calls of the scripted factory and player, in order.
#[derive(Clone, Default)]
pub(super) struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    fn note(&self, entry: impl Into<String>) {
        self.0.lock().push(entry.into());
    }

    /// Returns the calls made since this was last called.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// Creates scripted players. A network named `missing` cannot be loaded, one named `cpu-only` loads
/// only on the CPU, one whose extension is `slow` takes its name in milliseconds to load, and the
/// backend `check` has no built-in network.
#[derive(Clone)]
pub(super) struct Script {
    journal: Journal,
    /// Releases the player that `go nodes` with [`WAITS`] holds back.
    released: Receiver<()>,
}

impl Default for Script {
    fn default() -> Script {
        Script {
            journal: Journal::default(),
            released: never(),
        }
    }
}

struct Nothing(Properties, Journal);

impl Backend for Nothing {
    fn properties(&self) -> &Properties {
        &self.0
    }

    fn evaluate(&self, _: &Batch, _: &mut Evaluations) -> Result<(), BackendError> {
        Err(BackendError::Stopped)
    }

    fn forget(&self) {
        self.1.note("forget");
    }
}

impl Factory for Script {
    fn load(&mut self, options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
        let on_the_cpu = options.network.devices.to_string() == "cpu";
        self.journal.note(if on_the_cpu {
            "load on the CPU"
        } else {
            "load"
        });
        let net = &options.network.net;
        if let Some(net) = net
            .as_ref()
            .filter(|net| net.extension() == Some("slow".as_ref()))
        {
            let name = net.file_stem().and_then(|name| name.to_str());
            sleep(Duration::from_millis(name.unwrap().parse().unwrap()));
        }
        let is = |name: &str| net.as_ref().is_some_and(|path| path.ends_with(name));
        match net {
            Some(path) if is("missing") && !path.exists() => Err(LoadError::Read {
                path: path.clone(),
                source: io::ErrorKind::NotFound.into(),
            }),
            Some(_) if is("cpu-only") && !on_the_cpu => Err(LoadError::NoneBuiltIn),
            None if options.kind == BackendKind::Check => Err(LoadError::NoneBuiltIn),
            _ => Ok(Arc::new(Nothing(
                Properties {
                    name: "nothing".to_owned(),
                    encoder: Encoder::Nothing,
                    has_value: !is("policy-only"),
                    has_moves_left: false,
                    has_error: false,
                    reads_ratings: false,
                    correction: None,
                    recommended_batch: 1,
                    recommended_threads: 1,
                    format: None,
                },
                self.journal.clone(),
            ))),
        }
    }

    fn build(
        &self,
        kind: AgentKind,
        _: Arc<dyn Backend>,
        _: &agent::Options,
    ) -> Box<dyn ConfigurableAgent> {
        self.journal.note(format!("build {kind:?}"));
        Box::new(Player(self.clone()))
    }
}

/// Plays the first allowed move after exactly the time that it is given.
struct Player(Script);

impl ConfigurableAgent for Player {
    fn adjust(&mut self, _: &agent::Options) {
        self.0.journal.note("adjust");
    }

    fn set_backend(&mut self, _: Arc<dyn Backend>) {
        self.0.journal.note("set backend");
    }
}

impl Agent for Player {
    fn new_game(&mut self) {
        self.0.journal.note("new game");
    }

    fn choose(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        report: &mut dyn FnMut(&Report),
    ) -> Result<Choice, AgentError> {
        let begun = Instant::now();
        let legal = game.position().legal_moves();
        let best = *limits.search_moves.first().unwrap_or(&legal[0]);
        if limits.nodes == Some(FAILS_AT_ONCE) {
            return Err(BackendError::Stopped.into());
        }
        let thought = Report {
            depth: 1,
            selective_depth: 1,
            nodes: limits.nodes.unwrap_or(1),
            lines: vec![Line {
                score: Score::Expected(0.1),
                wdl: [0.4, 0.3, 0.3],
                moves_left: None,
                moves: vec![best],
            }],
            ..Report::default()
        };
        report(&thought);
        match limits.nodes {
            Some(BACKEND_FAILS) => return Err(BackendError::Stopped.into()),
            Some(PANICS) => panic!("scripted"),
            Some(WAITS) => self.0.released.recv_timeout(PATIENCE).expect("a release"),
            _ => {}
        }
        if let Some(time) = limits.move_time {
            self.0.journal.note(format!("{} ms", time.as_millis()));
            control.wait_until(begun + time);
        }
        if limits.infinite {
            control.wait(false);
        } else if limits.ponder {
            control.wait(true);
        }
        Ok(Choice {
            best: Some(best),
            ponder: None,
            statistics: vec![MoveStatistics {
                mv: best,
                visits: 1,
                prior: 1.0,
                q: 0.1,
                wdl: thought.lines[0].wdl,
                moves_left: None,
                score: Score::Expected(0.1),
            }],
            report: thought,
            note: None,
        })
    }
}

/// Forwards whole lines.
struct Lines {
    partial: Vec<u8>,
    lines: Sender<String>,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.partial.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = String::from_utf8(std::mem::take(&mut self.partial)).expect("UTF-8");
        assert!(text.ends_with('\n'), "an incomplete line was flushed");
        for line in text.lines() {
            // The client may have left.
            let _ = self.lines.send(line.to_owned());
        }
        Ok(())
    }
}

/// A client that writes to a session and reads its output.
pub(super) struct Client {
    session: Session,
    output: Arc<Output>,
    lines: Receiver<String>,
    pub(super) journal: Journal,
    release: Sender<()>,
}

impl Client {
    pub(super) fn new() -> Client {
        let (sender, lines) = unbounded();
        let output = Output::new(Lines {
            partial: Vec::new(),
            lines: sender,
        });
        let output = Arc::new(output.expect("a thread can be started"));
        let (release, released) = unbounded();
        let script = Script {
            released,
            ..Script::default()
        };
        let journal = script.journal.clone();
        let session = Session::start(output.clone(), script, Settings::default())
            .expect("a thread can be started");
        Client {
            session,
            output,
            lines,
            journal,
            release,
        }
    }

    /// Releases the player that a `go nodes` with [`WAITS`] holds back.
    pub(super) fn release(&self) {
        self.release.send(()).unwrap();
    }

    pub(super) fn send(&mut self, line: &str) -> ControlFlow<()> {
        self.session.handle(line)
    }

    /// Sends lines, none of which may be `quit`.
    pub(super) fn say(&mut self, lines: &[&str]) {
        for line in lines {
            assert!(self.send(line).is_continue(), "{line}");
        }
    }

    /// Waits for a line with this beginning; returns it and the lines before it.
    pub(super) fn wait_for(&self, beginning: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    let found = line.starts_with(beginning);
                    seen.push(line);
                    if found {
                        return seen;
                    }
                }
                Err(_) => panic!("no `{beginning}` after {seen:?}"),
            }
        }
    }

    /// Stops all tasks and waits until they are done; returns all output.
    pub(super) fn settle(&mut self) -> Vec<String> {
        self.say(&["stop", "isready"]);
        let mut seen = self.wait_for("readyok");
        // If a task was running, `readyok` may have come before the end of that task.
        self.session.finish();
        seen.extend(self.lines.try_iter());
        seen
    }

    /// Returns the output so far.
    pub(super) fn said(&self) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let is_written = self.output.settle(deadline).expect("the output holds");
        assert!(is_written, "the output is read");
        self.lines.try_iter().collect()
    }

    pub(super) fn end(self) -> Vec<String> {
        let (rest, said) = self.end_within(PATIENT);
        assert_eq!(rest, Rest::Reached, "{said:?}");
        said
    }

    pub(super) fn end_within(self, grace: Grace) -> (Rest, Vec<String>) {
        let rest = self.session.end(grace).expect("the output holds");
        (rest, self.lines.try_iter().collect())
    }
}
