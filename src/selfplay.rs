//! Creates training data by self-play, with many concurrent games on one backend.
//!
//! Every game has its own thread and search. The [`Service`](crate::backend::Service) built by
//! [`load_for_many`](crate::inference::load_for_many) merges the requests of the searches
//! into full batches. Each move is searched in a new tree, so that all visits are affected by this
//! move's noise. An evaluation cache keeps the evaluations of the previous tree.
//!
//! Each game is written as a chunk in Lc0's format (`game_000017.gz`) and added to `games.pgn`, in
//! which the tags state how the game ended; `tessera-train pack` can read this file. A game is finished
//! once its chunk exists, so interrupted work resumes with the missing games.
//!
//! The random choices in a game depend only on the seed and the game's number. On the uniform and
//! the random backend, games are exactly reproducible. With a network, games are exactly
//! reproducible only if they are played one at a time and without a cache, because the last bits of
//! the network's values depend on the batch, and the cache ignores a position's history.

mod choose;
mod counter;
mod futures;
mod game;
mod options;
mod position;
mod summary;

pub(crate) use counter::EvaluationCounter;
pub use futures::Foresight;
pub use game::{GamePlayer, Played};
pub use options::{HASH, NOISE, SearchOptionError, set_search_options};
pub use position::search_position;
pub use summary::SelfPlaySummary;

use crate::backend::{Backend, BackendError, Cache};
use crate::chess::Ratings;
use crate::data::pgn::{Journal, JournalError};
use crate::data::v6::{ChunkWriteError, game_records, write_chunk};
use crate::openings::{Openings, OpeningsError};
use crate::scoped_threads::join;
use crate::search::{Parameters, Search, WorldOptions};
use crate::tablebase::Tablebase;
use parking_lot::Mutex;
use serde::Deserialize;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Name of the PGN file in the folder.
pub const GAMES: &str = "games.pgn";

/// Short searches that choose a move but are not recorded. They allow more games in the same time,
/// and therefore more results from which to learn values (playout cap randomization as in KataGo,
/// Wu 2019).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheapSearches {
    /// Share of the moves that are chosen in this way, in 0…1.
    pub share: f64,
    /// Number of root visits.
    pub visits: u64,
}

/// Settings for self-play.
#[derive(Debug)]
pub struct SelfPlay {
    /// Number of concurrent games.
    pub concurrency: usize,
    /// Search parameters, such as noise and Gumbel selection. The threads, the seed and the
    /// temperature are set for each game.
    pub parameters: Parameters,
    /// Options for searching in the network's imagination; `None` searches with the rules of chess.
    pub imagination: Option<WorldOptions>,
    /// Number of root visits per move.
    pub visits: u64,
    /// Settings for choosing some moves by unrecorded searches with fewer visits and without noise.
    pub cheap: Option<CheapSearches>,
    /// Temperature at which the first moves are sampled by their visits; 0 always plays the best
    /// move. Proven wins are always played, and proven losses never. Unused with Gumbel selection,
    /// which samples moves itself.
    pub temperature: f32,
    /// Number of plies after the opening in which moves are sampled.
    pub temperature_plies: usize,
    /// A side resigns if the value of its best move is at most this, in −1…0; `None` plays all
    /// games to their end.
    pub resign: Option<f32>,
    /// Share of the games played without resignation, to measure how many resignations would have
    /// been wrong.
    pub played_on: f64,
    /// The players' ratings, for networks that read ratings.
    pub ratings: Ratings,
    /// The openings of the games.
    pub openings: Openings,
    /// Number of plies, including the opening, after which a game counts as drawn.
    pub max_plies: usize,
    /// Tablebases; a game ends when they cover its position.
    pub tablebase: Tablebase,
    /// Memory of the evaluation cache, in MiB.
    pub cache: usize,
    /// Seed of all random choices.
    pub seed: u64,
}

/// An event to report during self-play.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A move was played.
    Move,
    /// A game was finished, either in this session or in an earlier one.
    Finished,
}

/// Why self-play stopped.
#[derive(Debug, thiserror::Error)]
pub enum SelfPlayError {
    /// The network failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// An opening cannot be read.
    #[error(transparent)]
    Openings(#[from] OpeningsError),
    /// The games cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A chunk cannot be written.
    #[error(transparent)]
    Chunk(#[from] ChunkWriteError),
    /// A thread could not be started.
    #[error("cannot start {concurrency} games at once: {source}")]
    Threads {
        /// The number of games to play.
        concurrency: usize,
        /// The system's error.
        source: std::io::Error,
    },
}

impl fmt::Display for SelfPlay {
    /// Summarises the settings on which the games depend, except for the network and the search
    /// parameters.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "visits {}", self.visits)?;
        if let Some(CheapSearches { share, visits }) = self.cheap {
            write!(formatter, " and {visits} in {share} of the moves")?;
        }
        write!(formatter, "; {}", self.openings)?;
        write!(
            formatter,
            ", temperature {} for {} plies",
            self.temperature, self.temperature_plies
        )?;
        if let Some(resign) = self.resign {
            write!(formatter, ", resign {resign}, played on {}", self.played_on)?;
        }
        write!(formatter, ", at most {} plies", self.max_plies)?;
        if !self.tablebase.path().is_empty() {
            let men = self.tablebase.inventory().pieces;
            write!(formatter, ", {men} men tablebases")?;
        }
        write!(formatter, "; seed {}", self.seed)
    }
}

impl SelfPlay {
    /// Creates a search for self-play.
    fn search(&self, backend: Arc<dyn Backend>, parameters: &Parameters) -> Search {
        match &self.imagination {
            Some(options) => Search::in_imagination(backend, parameters, options),
            None => Search::new(backend, parameters),
        }
    }

    /// Plays those games of the plan that are not yet in the folder. `description` is written to
    /// the Event tags in `games.pgn`, and should name all settings on which the games depend.
    ///
    /// # Errors
    /// [`SelfPlayError`]; games finished before the error are kept, and calling this method again
    /// plays the remaining ones.
    pub fn run(
        &self,
        folder: &Path,
        games: u64,
        backend: Arc<dyn Backend>,
        description: &str,
        observe: &(dyn Fn(Event) + Sync),
    ) -> Result<SelfPlaySummary, SelfPlayError> {
        let evaluations = Arc::<AtomicU64>::default();
        let network = backend.properties().name.clone();
        let counted = EvaluationCounter::new(backend, Arc::clone(&evaluations));
        let backend = Cache::over(Arc::new(counted), self.cache);
        let mut summary = SelfPlaySummary::default();
        let pgn = folder.join(GAMES);
        let journal = Journal::open(&pgn, description, |game| summary.find(game))?;
        (0..summary.found).for_each(|_| observe(Event::Finished));
        let queue = Mutex::new(Queue {
            next: 0,
            journal,
            summary,
        });
        let work = || -> Result<(), SelfPlayError> {
            let mut player = GamePlayer::new(self, || Arc::clone(&backend));
            loop {
                let number = queue.lock().next(games);
                let Some(number) = number else {
                    return Ok(());
                };
                let Some(played) = player.play(number, &|| false, observe)? else {
                    return Ok(());
                };
                let records = game_records(&played.searched, &played.ending);
                let chunk = folder.join(format!("game_{number:06}.gz"));
                write_chunk(&chunk, &records)?;
                let text = played.to_pgn(number, description, &network);
                let queue = &mut *queue.lock();
                queue.journal.append(number, &text)?;
                queue.summary.add(&text);
                observe(Event::Finished);
            }
        };
        let work = || work().inspect_err(|_| queue.lock().next = u64::MAX);
        let concurrency = self.concurrency.max(1);
        std::thread::scope(|scope| {
            let mut players = Vec::new();
            for number in 0..concurrency {
                let thread = std::thread::Builder::new()
                    .name(format!("game {number}"))
                    .spawn_scoped(scope, work);
                players.push(thread.map_err(|source| {
                    queue.lock().next = u64::MAX;
                    SelfPlayError::Threads {
                        concurrency,
                        source,
                    }
                })?);
            }
            join(players)
        })?;
        let Queue {
            mut journal,
            mut summary,
            ..
        } = queue.into_inner();
        journal.finish()?;
        summary.evaluations = evaluations.load(Relaxed);
        Ok(summary)
    }
}

/// The queue from which threads take the numbers of games, and to which they return finished games.
struct Queue {
    next: u64,
    journal: Journal,
    summary: SelfPlaySummary,
}

impl Queue {
    /// Returns the number of the next game to play.
    fn next(&mut self, games: u64) -> Option<u64> {
        while self.next < games && self.journal.contains(self.next) {
            self.next += 1;
        }
        let number = (self.next < games).then_some(self.next)?;
        self.next += 1;
        Some(number)
    }
}
