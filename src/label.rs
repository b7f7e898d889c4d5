//! Training data from other engines: games that a UCI engine plays against
//! itself, and games and positions that it annotates, among them games sampled
//! from the policies of networks.
//!
//! Everything goes to a [`Journal`] as PGN with `[%eval]` comments that belong
//! to the moves they follow, as `train pack --evals chooser` reads them. Where
//! the engine reports several moves (option MultiPV), they are variations of
//! one move beside the best, of which a reading with
//! [`Reading::alternatives`](crate::data::label::Reading) makes a distribution.
//!
//! Several processes of the engine work side by side, each on a game of its
//! own, of which the engine is told that it is new. What is drawn in a game
//! depends on the seed and the game's number alone, so that an engine that
//! repeats itself (one thread, limited by nodes or depth) makes the same games
//! whatever else runs and however often work was broken off. Sampled games
//! repeat as far as the networks' values do, which depend in their last bits on
//! the batch that a position happens to be in.
//!
//! Games are sampled by the workers themselves: one that has no sampled game
//! left to judge samples on, many games at once, until some have ended. All
//! processors are busy so, whichever of the two takes longer, and no more games
//! are held than each worker has in flight.

mod adjudication;
mod analyst;
mod game;
mod sampler;
mod source;

pub use adjudication::{Adjudication, DrawRule, ResignRule};
pub(crate) use adjudication::{known, result};
pub use sampler::{PolicyPlayer, SampledGames};
pub use source::{Play, Source, SourceError};

use crate::data::pgn::{AnnotatedGame, Journal, JournalError};
use crate::engine::{Engine, EngineCommand, EngineError, Limit};
use crate::nn::BackendError;
use crate::scoped_threads::side_by_side;
use analyst::Analyst;
use parking_lot::Mutex;
use sampler::Sampler;
use serde::Serialize;
use source::Task;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// How an engine is put to work.
#[derive(Clone, Debug)]
pub struct Labelling {
    /// The engine.
    pub engine: EngineCommand,
    /// How long it thinks about each position.
    pub limit: Limit,
    /// Moves that it judges in each position.
    pub multipv: u32,
    /// Time after which a silent engine is given up.
    pub patience: Duration,
    /// Processes of the engine.
    pub processes: usize,
    /// Plies written of the best line where another move was played.
    pub line: usize,
    /// Seed of all that is drawn.
    pub seed: u64,
}

/// What came of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Games finished, or positions that are games of their own.
    pub games: u64,
    /// Positions judged.
    pub positions: u64,
    /// Positions given up because the engine failed on them twice.
    pub given_up: u64,
    /// Games and positions that could not be read.
    pub unreadable: u64,
    /// Games found finished when the work began.
    pub found: u64,
}

/// What happens in the course of the work.
#[derive(Clone, Debug)]
pub enum Event {
    /// A position was judged.
    Judged,
    /// A game was finished, or was found so.
    Finished,
    /// Something went wrong without stopping the work, in a line of words.
    Trouble(String),
}

/// Why the work cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// The engine does not start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine starts and is of no use.
    #[error("the engine failed on {failures} positions in a row, last so: {last}")]
    Useless {
        /// How many.
        failures: u32,
        /// The last failure.
        last: EngineError,
    },
    /// A network that plays failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The games cannot be had.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The games cannot be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Labelling {
    /// Starts the engine once, to see that it does and to learn what it calls
    /// itself.
    ///
    /// # Errors
    /// [`EngineError`] if it cannot be used.
    pub fn engine_name(&self) -> Result<String, EngineError> {
        Ok(Engine::start(&self.command())?.name().to_owned())
    }

    /// In a line all that moves and scores depend on, for the games' tag Event.
    #[must_use]
    pub fn event(&self, engine: &str, source: &Source) -> String {
        let mut event = engine.to_owned();
        match self.limit {
            Limit::Nodes(nodes) => event.push_str(&format!(", nodes {nodes}")),
            Limit::Depth(depth) => event.push_str(&format!(", depth {depth}")),
            Limit::Time(time) => event.push_str(&format!(", {} ms", time.as_millis())),
        }
        for (name, value) in &self.command().options {
            event.push_str(&format!(", {name} {value}"));
        }
        let (line, seed) = (self.line, self.seed);
        format!("{event}; lines of {line}; {source}; seed {seed}")
    }

    fn command(&self) -> EngineCommand {
        let mut command = self.engine.clone();
        if self.multipv > 1 {
            let option = ("MultiPV".to_owned(), self.multipv.to_string());
            command.options.push(option);
        }
        command
    }

    /// Works through what `source` holds and the journal does not, and
    /// completes the journal.
    ///
    /// # Errors
    /// [`LabelError`]; the games finished by then are kept, and the same call
    /// goes on from there.
    pub fn run(
        &self,
        source: &Source,
        event: &str,
        journal: &mut Journal,
        observe: &(dyn Fn(Event) + Sync),
    ) -> Result<Tally, LabelError> {
        let counts = Counts::default();
        let desk = Mutex::new(Desk {
            tasks: source.tasks()?,
            journal: &mut *journal,
            tally: Tally::default(),
            failed: false,
        });
        let work = || {
            let mut analyst = Analyst::new(self, &counts, observe);
            let worked = self.work(event, &desk, &mut analyst, observe);
            worked.inspect_err(|_| desk.lock().failed = true)
        };
        side_by_side(vec![work; self.processes.max(1)])?;
        let mut tally = desk.into_inner().tally;
        journal.finish()?;
        tally.positions = counts.positions.into_inner();
        tally.given_up = counts.given_up.into_inner();
        Ok(tally)
    }

    /// What each worker does: games, one after the other.
    fn work(
        &self,
        event: &str,
        desk: &Mutex<Desk<'_>>,
        analyst: &mut Analyst<'_>,
        observe: &(dyn Fn(Event) + Sync),
    ) -> Result<(), LabelError> {
        let hand_in = |number, labelled| {
            let handed_in = desk
                .lock()
                .hand_in(number, labelled, event, self.line, observe);
            handed_in.inspect(|()| observe(Event::Finished))
        };
        let judge = |sampler: &mut Sampler<'_>, analyst: &mut Analyst<'_>| {
            for sampled in sampler.play()? {
                let number = sampled.number;
                let judged = game::judge(sampled, sampler.adjudication(), analyst)?;
                hand_in(number, Ok(judged))?;
            }
            Ok::<_, LabelError>(())
        };
        let mut sampler: Option<Sampler<'_>> = None;
        loop {
            // The desk is free again before the work begins.
            let task = desk.lock().next(observe)?;
            match task {
                Some((number, Task::Label(subject))) => {
                    hand_in(number, game::label(&subject, number, self.seed, analyst)?)?;
                }
                Some((number, Task::Sample(games))) => {
                    let sampler = sampler
                        .get_or_insert_with(|| Sampler::new(games, self.seed, self.processes));
                    if let Err(error) = sampler.begin(number) {
                        hand_in(number, Err(error.to_string()))?;
                    }
                    if sampler.is_full() {
                        judge(sampler, analyst)?;
                    }
                }
                None => break,
            }
        }
        if let Some(sampler) = &mut sampler {
            while !sampler.is_empty() && !desk.lock().failed {
                judge(sampler, analyst)?;
            }
        }
        Ok(())
    }
}

/// Where workers fetch tasks and hand in games.
struct Desk<'a> {
    tasks: source::Tasks<'a>,
    journal: &'a mut Journal,
    tally: Tally,
    /// Whether a worker has failed, and the others are to stop.
    failed: bool,
}

impl<'a> Desk<'a> {
    /// The next task that is not done yet.
    fn next(
        &mut self,
        observe: &(dyn Fn(Event) + Sync),
    ) -> Result<Option<(u64, source::Task<'a>)>, SourceError> {
        while !self.failed {
            match self.tasks.next().transpose()? {
                Some((number, _)) if self.journal.contains(number) => {
                    self.tally.found += 1;
                    observe(Event::Finished);
                }
                task => return Ok(task),
            }
        }
        Ok(None)
    }

    /// Keeps a game that was labelled, or says why it was not.
    fn hand_in(
        &mut self,
        number: u64,
        labelled: Result<AnnotatedGame, String>,
        event: &str,
        line: usize,
        observe: &(dyn Fn(Event) + Sync),
    ) -> Result<(), JournalError> {
        match labelled {
            Ok(mut game) => {
                let tags = [("Event", event.to_owned()), ("Round", number.to_string())];
                game.tags.splice(0..0, tags);
                self.journal.append(number, &game.to_pgn(line))?;
                self.tally.games += 1;
            }
            Err(reason) => {
                self.tally.unreadable += 1;
                observe(Event::Trouble(format!("skipped {reason}")));
            }
        }
        Ok(())
    }
}

/// What all workers count.
#[derive(Debug, Default)]
struct Counts {
    positions: AtomicU64,
    given_up: AtomicU64,
}
