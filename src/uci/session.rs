//! The session, which executes commands.
//!
//! It runs on the thread that executes the input and never waits for the worker, so that every
//! command is answered immediately.

use super::options::{self, Button, OptionError, Set};
use super::output::Output;
use super::parse::go::{Go, ends_by_itself};
use super::parse::{Command, parse};
use super::settings::Settings;
use super::task::{Job, Kind, SearchJob, Task, Work};
use super::worker::{READY, Worker};
use super::{display, info};
use crate::chess::Game;
use crate::error_report::one_line;
use crate::player::{Factory, Setup};
use crossbeam::channel::{Sender, unbounded};
use shakmaty::{CastlingMode, EnPassantMode, Position};
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use vampirc_uci::UciMessage;

/// Maximum waits at the end for what is still running.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grace {
    /// For a stopped search.
    pub search: Duration,
    /// For a `perft`: scripts that pipe `go perft 4` and `quit` expect the count.
    pub perft: Duration,
    /// For a network to load. Nothing can make loading faster, and scripts that pipe `isready` or
    /// `go nodes 10` followed by `quit` expect the result.
    pub loading: Duration,
}

impl Default for Grace {
    fn default() -> Grace {
        Grace {
            // Fuzzing should report a hang, not a slow machine.
            search: Duration::from_secs(if cfg!(fuzzing) { 15 } else { 5 }),
            perft: Duration::from_secs(10),
            loading: Duration::from_secs(60),
        }
    }
}

/// Minimum wait at the end for the last lines to be written.
const WRITING_GRACE: Duration = Duration::from_millis(200);
/// Number of searches and counts that may wait. No client sends this many; a script that does is
/// blocked until one of them ends.
const MOST_WAITING: usize = 256;
/// Maximum number of moves in a `position`. The longest game that the 75-move rule allows has
/// 17,697 plies.
const LONGEST_GAME: usize = 20_000;

const HELP: &str = "Tessera speaks UCI, the protocol between chess programs, and is meant to be \
run by one: plug it into a chess client.\n\
By hand: `position startpos moves e2e4`, `go nodes 100`, `go movetime 1000`, `stop`, `quit`.\n\
Further: `d` shows the position, `go perft 4` counts moves, `uci` lists the options, and \
`setoption name VerboseMoveStats value true` shows every move in numbers.";

/// Whether the worker is idle, and every line written, when a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    Reached,
    Missed,
}

pub(crate) struct Session {
    output: Arc<Output>,
    jobs: Sender<Job>,
    /// The worker's pending tasks, oldest first.
    tasks: Vec<Arc<Task>>,
    settings: Settings,
    /// Why the latest values of options were refused, by option.
    refused: BTreeMap<&'static str, String>,
    /// Number of games begun.
    games: u64,
    /// Number of requests to clear all memory.
    clearings: u64,
    /// The game, which is shared with the search jobs.
    game: Arc<Game>,
    debug: bool,
}

impl Session {
    /// Starts a session with its own worker.
    ///
    /// # Errors
    /// If the system cannot start a thread for the worker.
    pub(crate) fn start(
        output: Arc<Output>,
        factory: impl Factory,
        settings: Settings,
    ) -> io::Result<Session> {
        let (jobs, queue) = unbounded();
        let worker = Worker::new(Arc::new(output.patient()), factory);
        thread::Builder::new()
            .name("worker".to_owned())
            .spawn(move || worker.run(queue))?;
        let mut session = Session {
            output,
            jobs,
            tasks: Vec::new(),
            settings,
            refused: BTreeMap::new(),
            games: 0,
            clearings: 0,
            game: Arc::default(),
            debug: false,
        };
        session.write_castling();
        session.open_log(None);
        Ok(session)
    }

    /// Executes a line of input; breaks on `quit`.
    pub(crate) fn handle(&mut self, line: &str) -> ControlFlow<()> {
        self.output.received(line);
        self.tasks.retain(|task| !task.is_finished());
        let parsed = parse(line);
        for warning in &parsed.warnings {
            self.output.problem(warning);
        }
        let unknown = parsed.command.is_none() && parsed.warnings.is_empty();
        if !parsed.skipped.is_empty() && (unknown || self.debug) {
            self.output.info_string(&format!(
                "unknown and ignored: {} (`help` says what is known)",
                parsed.skipped.join(" ")
            ));
        }
        match parsed.command {
            Some(Command::Quit) => return ControlFlow::Break(()),
            Some(command) => self.execute(command),
            None => {}
        }
        ControlFlow::Continue(())
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Uci => self.identify(),
            Command::Debug(on) => self.debug = on,
            Command::IsReady => self.ready(),
            Command::SetOption { name, value } => self.set_option(&name, value.as_deref()),
            Command::NewGame => {
                if !self.settings.player.analyse_mode {
                    self.games += 1;
                }
            }
            Command::Position { fen, moves } => match self.game_from(fen.as_deref(), &moves) {
                Ok(game) => self.game = Arc::new(game),
                Err(reason) => self
                    .output
                    .problem(&format!("the previous position stays: {reason}")),
            },
            Command::Go(go) => self.go(&go),
            Command::Perft(depth) => {
                self.stop_the_endless();
                let game = self.game.clone();
                self.submit(Kind::Perft, Work::Perft { game, depth });
            }
            Command::Stop => {
                for task in &self.tasks {
                    task.control.stop();
                }
            }
            Command::PonderHit => {
                let ponders =
                    |task: &&Arc<Task>| matches!(task.kind, Kind::Search { ponders: true, .. });
                if let Some(task) = self.tasks.iter().rfind(ponders) {
                    task.control.ponder_hit();
                }
            }
            Command::Display => self.output.line(&display::display(&self.game)),
            Command::Help => {
                for line in HELP.lines() {
                    self.output.info_string(line);
                }
            }
            // Registration has no effect, and `quit` has already been handled.
            Command::Register | Command::Quit => {}
        }
    }

    /// Waits until all tasks are done.
    #[cfg(test)]
    pub(crate) fn finish(&mut self) {
        let deadline = Instant::now() + crate::waiting::PATIENCE;
        for task in self.tasks.drain(..) {
            task.wait_until(deadline);
        }
        let is_written = self.output.settle(deadline).expect("the output holds");
        assert!(is_written, "the output is read");
    }

    /// Ends the session on `quit` or at the end of the input, immediately except for brief waits
    /// for pending answers.
    ///
    /// # Errors
    /// The error of the output, if it failed and the worker is idle.
    pub(crate) fn end(self, grace: Grace) -> io::Result<Rest> {
        let now = Instant::now();
        let is_heard = !self.output.is_broken();
        let mut deadline = now + grace.search;
        for task in &self.tasks {
            match task.kind {
                Kind::Search { .. } => task.control.stop(),
                _ if !is_heard => task.control.stop(),
                Kind::Perft => deadline = deadline.max(now + grace.perft),
                Kind::Ready => deadline = deadline.max(now + grace.loading),
            }
        }
        for task in &self.tasks {
            if is_heard
                && matches!(task.kind, Kind::Search { .. })
                && task.wait_for_loading(deadline.max(now + grace.loading))
            {
                deadline = deadline.max(Instant::now() + grace.search);
            }
            // Commands queued behind a search that does not stop would not finish either.
            if !task.wait_until(deadline) {
                break;
            }
        }
        let settled = self
            .output
            .settle(deadline.max(Instant::now() + WRITING_GRACE));
        if !self.tasks.iter().all(|task| task.is_finished()) {
            return Ok(Rest::Missed);
        }
        settled.map(|is_written| match is_written {
            true => Rest::Reached,
            false => Rest::Missed,
        })
    }

    fn identify(&self) {
        self.output.message(&UciMessage::id_name(&self.name()));
        self.output
            .message(&UciMessage::id_author("the Tessera developers"));
        for option in options::list() {
            self.output.message(&UciMessage::Option(option));
        }
        self.output.message(&UciMessage::UciOk);
    }

    /// Returns the engine's name and version, with the network if the client has chosen one by now.
    fn name(&self) -> String {
        let name = format!("Tessera {}", env!("CARGO_PKG_VERSION"));
        let net = self.settings.player.backend.network.net.as_deref();
        match net.and_then(|net| net.file_stem()) {
            Some(net) => format!("{name} ({})", net.display()),
            None => name,
        }
    }

    /// Handles `isready`: answers immediately while a task is running, and otherwise after loading.
    fn ready(&mut self) {
        let busy = |task: &Arc<Task>| !matches!(task.kind, Kind::Ready);
        if self.tasks.iter().any(busy) {
            self.output.line(READY);
        } else {
            let setup = self.setup();
            self.submit(Kind::Ready, Work::Ready(Box::new(setup)));
        }
    }

    fn set_option(&mut self, name: &str, value: Option<&str>) {
        let before = self.settings.clone();
        match options::set(&mut self.settings, name, value) {
            Ok(Set::Pressed(Button::ClearHash)) => self.clearings += 1,
            Ok(Set::Changed(option)) => {
                self.refused.remove(option);
                if self.settings.chess960 != before.chess960 {
                    self.write_castling();
                }
                self.open_log(before.log_file);
            }
            Err(error) => {
                let mut told = error.to_string();
                if let OptionError::Value { name, kept, .. } = error {
                    let kept = if kept.is_empty() { "<empty>" } else { &kept };
                    told += &format!("; the option keeps its value, {kept}");
                    self.refused.insert(name, told.clone());
                }
                self.output.problem(&told);
            }
        }
    }

    /// Opens the log file in the settings; if that fails, keeps the file `before`.
    fn open_log(&mut self, before: Option<PathBuf>) {
        let settings = &mut self.settings;
        if settings.log_file == before {
            return;
        }
        if let Err(error) = self.output.set_log(settings.log_file.as_deref()) {
            settings.log_file = before;
            let told = format!("the log file cannot be opened: {}", one_line(&error));
            self.output.problem(&told);
            self.refused.insert(options::LOG_FILE, told);
        }
    }

    /// Sets the game's castling notation to that of Chess960 if the option is on, and otherwise to
    /// the notation that the game's first position requires.
    fn write_castling(&mut self) {
        let mode = if self.settings.chess960 {
            CastlingMode::Chess960
        } else {
            let first = self.game.plies()[0].position.clone();
            CastlingMode::detect(&first.to_setup(EnPassantMode::Legal))
        };
        Arc::make_mut(&mut self.game).set_mode(mode);
    }

    fn game_from(&self, fen: Option<&str>, moves: &[String]) -> Result<Game, String> {
        let mode = CastlingMode::from_chess960(self.settings.chess960);
        let mut game = match fen {
            Some(fen) => Game::from_fen(fen, mode).map_err(|error| error.to_string())?,
            None => Game::new(shakmaty::Chess::default(), mode),
        };
        if moves.len() > LONGEST_GAME {
            return Err(format!(
                "a list of {} moves is longer than any game of chess",
                moves.len()
            ));
        }
        for (index, text) in moves.iter().enumerate() {
            let mv = game
                .parse_move(&text.to_ascii_lowercase())
                .map_err(|error| format!("{error}; it is move {} of the list", index + 1))?;
            game.play(mv);
        }
        Ok(game)
    }

    fn go(&mut self, go: &Go) {
        let mut search_moves = Vec::new();
        let mut illegal = Vec::new();
        for text in &go.search_moves {
            match self.game.parse_move(&text.to_ascii_lowercase()) {
                Ok(mv) if search_moves.contains(&mv) => {}
                Ok(mv) => search_moves.push(mv),
                Err(_) => illegal.push(text.as_str()),
            }
        }
        if !illegal.is_empty() {
            let consequence = if search_moves.is_empty() {
                "all moves are searched"
            } else {
                "the others are searched"
            };
            self.output.problem(&format!(
                "{consequence}: not legal here, among the searchmoves: {}",
                illegal.join(" ")
            ));
        }
        let turn = self.game.position().turn();
        let limits = go.limits(turn, search_moves);
        self.stop_the_endless();
        let kind = Kind::Search {
            ponders: limits.ponder,
            limited: ends_by_itself(&limits),
        };
        let search = SearchJob {
            setup: self.setup(),
            settings: self.settings.clone(),
            game: self.game.clone(),
            limits,
            refused: self.refused.values().cloned().collect(),
            received: Instant::now(),
        };
        self.submit(kind, Work::Search(Box::new(search)));
    }

    /// Returns the player's current settings.
    fn setup(&self) -> Setup {
        Setup {
            settings: self.settings.player.clone(),
            game: self.games,
            clearing: self.clearings,
        }
    }

    /// Stops tasks that would otherwise block later ones forever.
    fn stop_the_endless(&self) {
        for task in self.tasks.iter().filter(|task| task.is_endless()) {
            task.control.stop();
        }
    }

    fn submit(&mut self, kind: Kind, work: Work) {
        while self.tasks.len() >= MOST_WAITING {
            self.tasks[0].wait();
            self.tasks.retain(|task| !task.is_finished());
        }
        let task = Task::new(kind);
        self.tasks.push(task.clone());
        if self.jobs.send(Job { task, work }).is_ok() {
            return;
        }
        // The worker normally outlives the session. If it is gone nevertheless, the answer has to
        // be sent from here.
        self.output
            .problem("the worker has stopped: start the engine again");
        match self.tasks.pop().as_deref().map(|task| &task.kind) {
            Some(Kind::Search { .. }) => self.output.line(info::NO_MOVE),
            Some(Kind::Ready) => self.output.line(READY),
            Some(Kind::Perft) | None => {}
        }
    }
}
