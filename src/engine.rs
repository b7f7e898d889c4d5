//! External UCI engines, run as child processes.
//!
//! An engine is not trusted: it may stop responding, exit, or play illegal moves. Each of these
//! failures is an [`EngineError`]. After an error, drop the engine, which ends its process, and
//! start another one.

mod analysis;
mod info;

pub use info::{EngineScore, Info};

use crate::chess::{Game, fen};
use analysis::LatestInfo;
use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, bounded};
use shakmaty::{CastlingMode, Move};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for an engine to start and to process its options, which may include loading a
/// network.
const START: Duration = Duration::from_secs(60);
/// Debian's folder for games, which is not always on the PATH.
const GAMES: &str = "/usr/games";
/// Longest line read in one piece, in bytes.
const LONGEST_LINE: u64 = 1 << 16;
/// Maximum number of unread lines before the engine is blocked.
const WAITING_LINES: usize = 1024;

/// Settings for starting an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineCommand {
    /// The program: a path, or a name that is looked up on PATH.
    pub program: PathBuf,
    /// UCI options to set, name and value.
    pub options: Vec<(String, String)>,
}

/// An engine's limit for a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Until the engine has visited this many nodes.
    Nodes(u64),
    /// To this depth in plies.
    Depth(u32),
    /// For this much time.
    Time(Duration),
}

/// A move that an engine evaluated, and the expected continuation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The move's value for the side to move.
    pub score: EngineScore,
    /// The depth of the evaluation in plies.
    pub depth: u32,
    /// The move followed by the expected continuation; never empty, and every move is legal.
    pub moves: Vec<Move>,
}

/// Why an engine cannot be used, or can no longer be used.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The program does not exist, or the system refuses to run it.
    #[error("cannot start the engine {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The engine does not have this option.
    #[error("the engine {engine} has no option `{option}`; `uci` in its console lists them")]
    Option {
        /// The engine.
        engine: String,
        /// The option.
        option: String,
    },
    /// The game is a Chess960 game, which the engine does not support.
    #[error("the engine {0} does not play Chess960: it has no option UCI_Chess960")]
    Chess960(String),
    /// The process has exited.
    #[error("the engine {0} has exited unexpectedly")]
    Ended(String),
    /// The engine did not answer in time.
    #[error("the engine {engine} gave no answer within {} s", patience.as_secs_f32())]
    Silent {
        /// The engine.
        engine: String,
        /// The time waited.
        patience: Duration,
    },
    /// The engine reports that it does not do what it was told.
    #[error("the engine {engine} reports an error: {problem}")]
    Problem {
        /// The engine.
        engine: String,
        /// Its message.
        problem: String,
    },
    /// The answer is not a playable move.
    #[error("the engine {engine} answered `{answer}`, which is not a legal move in {fen}")]
    Illegal {
        /// The engine.
        engine: String,
        /// The engine's message.
        answer: String,
        /// The position.
        fen: String,
    },
    /// The engine answered without a score.
    #[error("the engine {engine} gave no score in {fen}")]
    Unscored {
        /// The engine.
        engine: String,
        /// The position.
        fen: String,
    },
}

/// A running engine. Dropping it ends the process.
#[derive(Debug)]
pub struct Engine {
    name: String,
    process: Child,
    input: ChildStdin,
    output: Receiver<String>,
    /// The names of the engine's options, in lower case.
    options: HashSet<String>,
    mode: CastlingMode,
}

impl Engine {
    /// Starts an engine and sets its options.
    ///
    /// # Errors
    /// [`EngineError`] if the engine does not start, does not speak UCI, lacks an option, or reports
    /// an error.
    pub fn start(command: &EngineCommand) -> Result<Engine, EngineError> {
        let program = &command.program;
        let refused = |source| EngineError::Start {
            program: program.clone(),
            source,
        };
        let mut process = spawn(program).map_err(refused)?;
        let piped = (process.stdin.take(), process.stdout.take());
        let (Some(input), Some(output)) = piped else {
            return Err(refused(ErrorKind::BrokenPipe.into()));
        };
        let (sender, receiver) = bounded(WAITING_LINES);
        let mut engine = Engine {
            name: program.display().to_string(),
            process,
            input,
            output: receiver,
            options: HashSet::new(),
            mode: CastlingMode::Standard,
        };
        std::thread::Builder::new()
            .name("engine output".to_owned())
            .spawn(move || read_lines(output, &sender))
            .map_err(refused)?;
        engine.shake_hands(&command.options)?;
        Ok(engine)
    }

    fn shake_hands(&mut self, options: &[(String, String)]) -> Result<(), EngineError> {
        let deadline = Instant::now() + START;
        self.send("uci")?;
        let mut name = None;
        loop {
            let line = self.receive(deadline, START)?;
            let mut words = line.split_ascii_whitespace();
            match (words.next(), words.next()) {
                (Some("uciok"), _) => break,
                (Some("id"), Some("name")) => name = Some(join(words)),
                (Some("option"), Some("name")) => {
                    let option = join(words.take_while(|&word| word != "type"));
                    self.options.insert(option.to_lowercase());
                }
                _ => {}
            }
        }
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.name = name;
        }
        for (option, value) in options {
            self.set(option, value)?;
        }
        self.synchronise(START)
    }

    /// Returns the engine's name, or the program's name if the engine states none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the engine has this option.
    pub fn has_option(&self, option: &str) -> bool {
        self.options.contains(&option.to_lowercase())
    }

    /// Tells the engine that the next positions belong to a new game, so that its memory of earlier
    /// games does not affect the evaluation.
    ///
    /// # Errors
    /// [`EngineError`] if the engine has exited or does not become ready again.
    pub fn new_game(&mut self) -> Result<(), EngineError> {
        self.send("ucinewgame")?;
        self.synchronise(START)
    }

    /// Has the engine evaluate the current position of `game`, which must have a legal move.
    /// Returns the chosen move first, followed by the other moves that the engine reports (option
    /// MultiPV), best first. Each move appears only once.
    ///
    /// # Errors
    /// [`EngineError`] if the engine gives no usable answer within `patience`.
    pub fn judge(
        &mut self,
        game: &Game,
        limit: Limit,
        patience: Duration,
    ) -> Result<Vec<Line>, EngineError> {
        if game.mode() != self.mode {
            let is_chess960 = game.mode() == CastlingMode::Chess960;
            self.set("UCI_Chess960", if is_chess960 { "true" } else { "false" })
                .map_err(|error| match error {
                    EngineError::Option { engine, .. } => EngineError::Chess960(engine),
                    error => error,
                })?;
            self.mode = game.mode();
        }
        let position = position_command(game);
        let limit = match limit {
            Limit::Nodes(nodes) => format!("nodes {nodes}"),
            Limit::Depth(depth) => format!("depth {depth}"),
            Limit::Time(time) => format!("movetime {}", time.as_millis()),
        };
        self.send(&format!("{position}\ngo {limit}"))?;
        let deadline = Instant::now() + patience;
        let mut latest = LatestInfo::default();
        loop {
            let line = self.receive(deadline, patience)?;
            let mut words = line.split_ascii_whitespace();
            if words.next() == Some("bestmove") {
                let answer = words.next().unwrap_or_default();
                return self.conclude(game, &latest, answer);
            }
            if let Some(info) = Info::parse(&line) {
                latest.update(info);
            }
        }
    }

    fn conclude(
        &self,
        game: &Game,
        latest: &LatestInfo,
        answer: &str,
    ) -> Result<Vec<Line>, EngineError> {
        let fen = || fen(game.position());
        let Ok(best) = game.parse_move(answer) else {
            return Err(EngineError::Illegal {
                engine: self.name.clone(),
                answer: answer.to_owned(),
                fen: fen(),
            });
        };
        latest
            .lines(game, best)
            .ok_or_else(|| EngineError::Unscored {
                engine: self.name.clone(),
                fen: fen(),
            })
    }

    /// Sets an option for the next positions.
    ///
    /// # Errors
    /// [`EngineError`] if the engine lacks the option or has exited.
    pub fn set(&mut self, option: &str, value: &str) -> Result<(), EngineError> {
        if !self.has_option(option) {
            return Err(EngineError::Option {
                engine: self.name.clone(),
                option: option.to_owned(),
            });
        }
        self.send(&format!("setoption name {option} value {value}"))
    }

    fn synchronise(&mut self, patience: Duration) -> Result<(), EngineError> {
        self.send("isready")?;
        let deadline = Instant::now() + patience;
        while self.receive(deadline, patience)?.trim_end() != "readyok" {}
        Ok(())
    }

    fn send(&mut self, text: &str) -> Result<(), EngineError> {
        let sent = writeln!(self.input, "{text}").and_then(|()| self.input.flush());
        sent.map_err(|_| EngineError::Ended(self.name.clone()))
    }

    fn receive(&self, deadline: Instant, patience: Duration) -> Result<String, EngineError> {
        let line = self
            .output
            .recv_deadline(deadline)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => EngineError::Silent {
                    engine: self.name.clone(),
                    patience,
                },
                RecvTimeoutError::Disconnected => EngineError::Ended(self.name.clone()),
            })?;
        match problem(&line) {
            Some(problem) => Err(EngineError::Problem {
                engine: self.name.clone(),
                problem: problem.to_owned(),
            }),
            None => Ok(line),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(program: &Path) -> std::io::Result<Child> {
    let spawn = |program: &Path| {
        let mut command = Command::new(program);
        // Ctrl-C is for this program alone, which then still needs the engine's answer.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    };
    spawn(program).or_else(|error| {
        let is_bare_name = program.components().count() == 1;
        if error.kind() == ErrorKind::NotFound && is_bare_name {
            spawn(&Path::new(GAMES).join(program)).map_err(|_| error)
        } else {
            Err(error)
        }
    })
}

/// Forwards the engine's output line by line until the engine exits or the receiver is dropped.
fn read_lines(output: ChildStdout, sender: &Sender<String>) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut rest = (&mut output).take(LONGEST_LINE);
        match rest.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if sender
            .send(String::from_utf8_lossy(&line).into_owned())
            .is_err()
        {
            return;
        }
    }
}

/// Returns the problem that a line reports in the form of Stockfish and Tessera, or of Lc0.
fn problem(line: &str) -> Option<&str> {
    let prefixed = ["info string ERROR:", "error "];
    let found = prefixed
        .iter()
        .find_map(|prefix| line.strip_prefix(prefix))?;
    Some(found.trim())
}

fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

fn position_command(game: &Game) -> String {
    let mut command = match game.from_initial_position() {
        true => "position startpos".to_owned(),
        false => format!("position fen {}", fen(&game.plies()[0].position)),
    };
    let mut played = game.plies().iter().filter_map(|ply| ply.played).peekable();
    if played.peek().is_some() {
        command.push_str(" moves");
    }
    for mv in played {
        command.push(' ');
        command.push_str(&game.format_move(mv));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_told_with_their_past() {
        let mut game = Game::default();
        assert_eq!(position_command(&game), "position startpos");
        game.play(game.parse_move("e2e4").unwrap());
        assert_eq!(position_command(&game), "position startpos moves e2e4");
        let fen = "1rk3r1/pppppppp/8/8/8/8/PPPPPPPP/1RK3R1 w KQkq - 0 1";
        let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        game.play(game.parse_move("c1g1").unwrap());
        assert_eq!(
            position_command(&game),
            format!("position fen {fen} moves c1g1")
        );
    }

    #[test]
    fn names_engines_that_do_not_start() {
        let command = EngineCommand {
            program: PathBuf::from("no-such-engine"),
            options: Vec::new(),
        };
        let error = Engine::start(&command).unwrap_err().to_string();
        assert!(error.starts_with("cannot start the engine no-such-engine"));
    }
}
