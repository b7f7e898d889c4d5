//! Creates training data with external engines. A UCI engine either plays games against itself, or
//! evaluates existing positions and games, including games sampled from networks' policies.
//!
//! Games are written to a [`Journal`] as PGN, with `[%eval]` comments that refer to the preceding
//! moves, as `tessera-train pack --evals chooser` expects. If the engine reports several moves (option
//! MultiPV), all but the best are written as variations of one move.
//! [`TargetRules::alternatives`](crate::data::label::TargetRules) combines the moves into a
//! distribution.
//!
//! Several engine processes run in parallel, each on its own game. The random choices in a game
//! depend only on the seed and the game's number. A deterministic engine, which has one thread and
//! is limited by nodes or depth, therefore produces the same games in every run, however often the
//! run is interrupted. Games sampled from networks are not exactly reproducible, because the last
//! bits of a network's outputs for a position depend on the other positions in the batch.
//!
//! The workers that run the engines also sample the games. A worker without a finished sampled game
//! plays many games concurrently until some of them end, and then labels these games. This keeps
//! all CPUs busy, whether sampling or labelling takes longer, and memory contains only the games in
//! progress.

mod analyst;
mod game;
mod sampler;
mod source;
mod teaching;

pub use sampler::{PolicyPlayer, SampledGames};
pub use source::{GameSource, Play, SourceError};
pub use teaching::{Teaching, TeachingError};

use crate::backend::BackendError;
use crate::data::pgn::{AnnotatedGame, IDENTITY, Journal, JournalError, LABELLED};
use crate::engine::{Engine, EngineCommand, EngineError, Limit};
use crate::scoped_threads::side_by_side;
use analyst::Analyst;
use parking_lot::Mutex;
use sampler::Sampler;
use serde::Serialize;
use source::Job;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Settings for labelling games and positions with an engine.
#[derive(Clone, Debug)]
pub struct Labelling {
    /// The engine.
    pub engine: EngineCommand,
    /// Search limit for each position.
    pub limit: Limit,
    /// Number of moves to score in each position, set by the engine's option MultiPV.
    pub multipv: u32,
    /// Time after which an engine that does not respond is restarted.
    pub patience: Duration,
    /// Number of engine processes.
    pub processes: usize,
    /// Number of plies of the best line to write if a different move was played.
    pub line: usize,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Counts of labelled games and positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LabelSummary {
    /// Number of games labelled; a single position counts as a game.
    pub games: u64,
    /// Number of positions evaluated.
    pub positions: u64,
    /// Number of positions left without scores because the engine failed twice on them.
    pub given_up: u64,
    /// Number of games and positions that could not be read.
    pub unreadable: u64,
    /// Number of games that were finished in earlier sessions.
    pub found: u64,
}

/// An event to report while labelling.
#[derive(Clone, Debug)]
pub enum Event {
    /// A position was evaluated.
    Judged,
    /// A game was finished, either in this session or in an earlier one.
    Finished,
    /// A one-line warning; labelling continues.
    Warning(String),
}

/// Why labelling stopped.
#[derive(Debug, thiserror::Error)]
pub enum LabelError {
    /// The engine cannot be started.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine starts, but fails on every position.
    #[error("the engine failed on {failures} positions in a row, most recently: {last}")]
    Useless {
        /// The number of failures.
        failures: u32,
        /// The last failure.
        last: EngineError,
    },
    /// A network that plays the games failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The games cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The games cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Labelling {
    /// Returns a line for the Event tag that names all settings on which the moves and scores
    /// depend. If anything is to be evaluated, starts the engine to get its name.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be used.
    pub fn event(&self, source: &GameSource) -> Result<String, EngineError> {
        let seed = self.seed;
        if matches!(source, GameSource::Sample(games) if !games.judged) {
            return Ok(format!("{source}; seed {seed}"));
        }
        let mut event = Engine::start(&self.command())?.name().to_owned();
        match self.limit {
            Limit::Nodes(nodes) => event.push_str(&format!(", nodes {nodes}")),
            Limit::Depth(depth) => event.push_str(&format!(", depth {depth}")),
            Limit::Time(time) => event.push_str(&format!(", {} ms", time.as_millis())),
        }
        for (name, value) in &self.command().options {
            event.push_str(&format!(", {name} {value}"));
        }
        let line = self.line;
        Ok(format!("{event}; lines of {line}; {source}; seed {seed}"))
    }

    fn command(&self) -> EngineCommand {
        let mut command = self.engine.clone();
        if self.multipv > 1 {
            let option = ("MultiPV".to_owned(), self.multipv.to_string());
            command.options.push(option);
        }
        command
    }

    /// Labels the games of `source` that are not yet in the journal, and completes the journal.
    ///
    /// # Errors
    /// [`LabelError`]; games finished before the error are kept, and calling this method again
    /// labels the remaining ones.
    pub fn run(
        &self,
        source: &GameSource,
        event: &str,
        journal: &mut Journal,
        observe: &(dyn Fn(Event) + Sync),
    ) -> Result<LabelSummary, LabelError> {
        let counts = Counts::default();
        let queue = Mutex::new(Queue {
            jobs: source.jobs()?,
            journal: &mut *journal,
            summary: LabelSummary::default(),
            counts: &counts,
        });
        let work = || {
            let mut analyst = Analyst::new(self, &counts, observe);
            let worked = self.work(event, &queue, &mut analyst, observe);
            worked.inspect_err(|_| counts.failed.store(true, Relaxed))
        };
        side_by_side(vec![work; self.processes.max(1)])?;
        let mut summary = queue.into_inner().summary;
        journal.finish()?;
        summary.positions = counts.positions.into_inner();
        summary.given_up = counts.given_up.into_inner();
        Ok(summary)
    }

    /// Runs a worker, which labels one game after another.
    fn work(
        &self,
        event: &str,
        queue: &Mutex<Queue<'_>>,
        analyst: &mut Analyst<'_>,
        observe: &(dyn Fn(Event) + Sync),
    ) -> Result<(), LabelError> {
        let submit = |number, labelled| {
            let submitted = queue
                .lock()
                .submit(number, labelled, event, self.line, observe);
            submitted.inspect(|()| observe(Event::Finished))
        };
        let judge = |sampler: &mut Sampler<'_>, analyst: &mut Analyst<'_>| {
            for sampled in sampler.play()? {
                let number = sampled.number;
                let judged = game::judge(sampled, sampler.plan, analyst)?;
                submit(number, Ok(judged))?;
            }
            Ok::<_, LabelError>(())
        };
        let mut sampler: Option<Sampler<'_>> = None;
        loop {
            // The lock is released before the work begins.
            let job = queue.lock().next(observe)?;
            match job {
                Some((number, Job::Label(subject))) => {
                    submit(number, game::label(&subject, number, self.seed, analyst)?)?;
                }
                Some((number, Job::Sample(games))) => {
                    let sampler = sampler
                        .get_or_insert_with(|| Sampler::new(games, self.seed, self.processes));
                    if let Err(error) = sampler.begin(number) {
                        submit(number, Err(error.to_string()))?;
                    }
                    if sampler.is_full() {
                        judge(sampler, analyst)?;
                    }
                }
                None => break,
            }
        }
        if let Some(sampler) = &mut sampler {
            while !sampler.is_empty() && !queue.lock().counts.failed.load(Relaxed) {
                judge(sampler, analyst)?;
            }
        }
        Ok(())
    }
}

/// The queue from which workers take jobs, and to which they return games.
struct Queue<'a> {
    jobs: source::Jobs<'a>,
    journal: &'a mut Journal,
    summary: LabelSummary,
    counts: &'a Counts,
}

impl<'a> Queue<'a> {
    /// Returns the next job that has not been done.
    fn next(
        &mut self,
        observe: &(dyn Fn(Event) + Sync),
    ) -> Result<Option<(u64, Job<'a>)>, SourceError> {
        while !self.counts.failed.load(Relaxed) {
            match self.jobs.next().transpose()? {
                Some((number, _)) if self.journal.contains(number) => {
                    self.summary.found += 1;
                    observe(Event::Finished);
                }
                job => return Ok(job),
            }
        }
        Ok(None)
    }

    /// Stores a labelled game, or reports why it could not be labelled.
    fn submit(
        &mut self,
        number: u64,
        labelled: Result<AnnotatedGame, String>,
        event: &str,
        line: usize,
        observe: &(dyn Fn(Event) + Sync),
    ) -> Result<(), JournalError> {
        // An interrupted game is discarded.
        if self.counts.failed.load(Relaxed) {
            return Ok(());
        }
        match labelled {
            Ok(mut game) => {
                let is_named = |(name, _): &(String, String)| IDENTITY.contains(&name.as_str());
                let [event_tag, number_tag] = match game.tags.iter().any(is_named) {
                    true => LABELLED,
                    false => IDENTITY,
                };
                game.tags.push((event_tag.to_owned(), event.to_owned()));
                game.tags.push((number_tag.to_owned(), number.to_string()));
                self.journal.append(number, &game.to_pgn(line))?;
                self.summary.games += 1;
            }
            Err(reason) => {
                self.journal.leave_out(number)?;
                self.summary.unreadable += 1;
                observe(Event::Warning(format!("skipped {reason}")));
            }
        }
        Ok(())
    }
}

/// Counters shared by all workers.
#[derive(Debug, Default)]
struct Counts {
    positions: AtomicU64,
    given_up: AtomicU64,
    /// Set when a worker has failed, so that the others stop.
    failed: AtomicBool,
}
