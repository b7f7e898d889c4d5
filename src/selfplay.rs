//! Training data from our own engine: it plays against itself, many games at
//! once on one backend.
//!
//! Every game has a thread and a search of its own; what the searches ask for
//! meets in the [`Service`](crate::nn::Service) that
//! [`load_for_many`](crate::nn::load_for_many) builds, which makes full batches
//! of it. Each move begins a new tree, so that its visits are those of its own
//! noise; a cache saves what the tree before has evaluated.
//!
//! A game becomes a chunk as Lc0 writes them (`game_000017.gz`), and a game in
//! `games.pgn`, which says how it ended and which `train pack` reads. A game is
//! finished when it stands there: work that was broken off goes on after it.
//!
//! What is drawn in a game depends on the seed and the game's number alone. On
//! the uniform and the random backend games repeat exactly. A network's values
//! depend in their last bits on the batch that a position happens to be in, and
//! the cache knows no history: games repeat exactly only one at a time and
//! without a cache.

mod counted;
mod game;
mod position;
mod tally;

pub use tally::Tally;

use crate::chess::Ratings;
use crate::data::pgn::{Journal, JournalError};
use crate::data::v6::{ChunkWriteError, game_records, write_chunk};
use crate::nn::{Backend, BackendError, Cache};
use crate::openings::{Openings, OpeningsError};
use crate::scoped_threads::join;
use crate::search::Parameters;
use crate::tablebase::Tablebase;
use counted::Counted;
use game::Player;
use parking_lot::Mutex;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The games in PGN, in the folder of a run.
const GAMES: &str = "games.pgn";

/// How the engine plays itself.
#[derive(Debug)]
pub struct SelfPlay {
    /// Where chunks and games go.
    pub folder: PathBuf,
    /// How many games.
    pub games: u64,
    /// Games at once.
    pub concurrency: usize,
    /// What steers the searches: noise and Gumbel's selection among it. Threads,
    /// seed and temperature are set for each game.
    pub parameters: Parameters,
    /// Visits of the root for each move.
    pub visits: u64,
    /// Temperature at which moves are drawn by their visits, in the beginning;
    /// 0 never draws. Where Gumbel's selection is on, it draws.
    pub temperature: f32,
    /// Plies after the opening in which moves are drawn.
    pub temperature_plies: usize,
    /// A side resigns whose best move is worth this or less, in −1…0; `None`
    /// plays all games to their end.
    pub resign: Option<f32>,
    /// Share of the games in which nobody resigns, so that it is seen how many
    /// would have been given up wrongly.
    pub played_on: f64,
    /// The players' ratings, for networks that ask for them.
    pub ratings: Ratings,
    /// Where games begin.
    pub openings: Openings,
    /// Plies, the opening's included, after which a game counts as drawn.
    pub max_plies: usize,
    /// Tables whose word ends games.
    pub tablebase: Tablebase,
    /// Memory for remembered evaluations, in MiB.
    pub cache: usize,
    /// Seed of all that is drawn.
    pub seed: u64,
}

/// What happens in the course of the games.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A move was played.
    Move,
    /// A game was finished, or was found so.
    Finished,
}

/// Why the games cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SelfPlayError {
    /// The network failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// There is no opening.
    #[error(transparent)]
    Openings(#[from] OpeningsError),
    /// The games cannot be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A chunk cannot be written.
    #[error(transparent)]
    Chunk(#[from] ChunkWriteError),
    /// The system gave no thread.
    #[error("cannot start {concurrency} games at once: {source}")]
    Threads {
        /// How many were to be played.
        concurrency: usize,
        /// What the system said.
        source: std::io::Error,
    },
}

impl fmt::Display for SelfPlay {
    /// What the games depend on beside the network and the search's options.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "visits {}; {}", self.visits, self.openings)?;
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
    /// Plays the games that the folder does not hold yet. `description` should
    /// say all that they depend on, for the tag Event of `games.pgn`.
    ///
    /// # Errors
    /// [`SelfPlayError`]; the games finished by then are kept, and the same call
    /// goes on from there.
    pub fn run(
        &self,
        backend: Arc<dyn Backend>,
        description: &str,
        observe: &(dyn Fn(Event) + Sync),
    ) -> Result<Tally, SelfPlayError> {
        let counted = Arc::new(Counted::new(backend));
        let backend: Arc<dyn Backend> = match self.cache {
            0 => counted.clone(),
            mebibytes => Arc::new(Cache::new(counted.clone(), mebibytes)),
        };
        let mut tally = Tally::default();
        let games = self.folder.join(GAMES);
        let journal = Journal::open(&games, description, |game| tally.find(game))?;
        (0..tally.found).for_each(|_| observe(Event::Finished));
        let desk = Mutex::new(Desk {
            next: 0,
            journal,
            tally,
        });
        let work = || -> Result<(), SelfPlayError> {
            let mut player = Player::new(self, backend.clone());
            loop {
                let number = desk.lock().next(self.games);
                let Some(number) = number else {
                    return Ok(());
                };
                let played = player.play(number, observe)?;
                let records = game_records(&played.searched, &played.ending);
                let chunk = self.folder.join(format!("game_{number:06}.gz"));
                write_chunk(&chunk, &records)?;
                let text = played.to_pgn(number, description);
                let desk = &mut *desk.lock();
                desk.journal.append(number, &text)?;
                desk.tally.add(&text);
                observe(Event::Finished);
            }
        };
        let work = || work().inspect_err(|_| desk.lock().next = u64::MAX);
        let concurrency = self.concurrency.max(1);
        std::thread::scope(|scope| {
            let mut players = Vec::new();
            for number in 0..concurrency {
                let thread = std::thread::Builder::new()
                    .name(format!("game {number}"))
                    .spawn_scoped(scope, work);
                players.push(thread.map_err(|source| {
                    desk.lock().next = u64::MAX;
                    SelfPlayError::Threads {
                        concurrency,
                        source,
                    }
                })?);
            }
            join(players)
        })?;
        let Desk {
            mut journal,
            mut tally,
            ..
        } = desk.into_inner();
        journal.finish()?;
        tally.evaluations = counted.evaluations();
        Ok(tally)
    }
}

/// Where players fetch numbers and hand in games.
struct Desk {
    next: u64,
    journal: Journal,
    tally: Tally,
}

impl Desk {
    /// The number of the next game to be played.
    fn next(&mut self, games: u64) -> Option<u64> {
        while self.next < games && self.journal.contains(self.next) {
            self.next += 1;
        }
        let number = (self.next < games).then_some(self.next)?;
        self.next += 1;
        Some(number)
    }
}
