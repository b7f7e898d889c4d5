//! Surveys training data.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io::BufRead;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use crate::chess::Ratings;
use crate::data::label::TargetRules;
use crate::data::pgn::{GameError, GamePlace, Games, TokenPlace, read_game};
use crate::data::record::Record;
use crate::data::replay::{ReplayError, VariationWeight, replay};
use crate::data::sample::Sample;
use crate::data::shard::{Shard, ShardError};
use crate::data::v6::{Chunk, Chunks, V6Error};
use crate::encode::{BOARDS, InputFormat, PLANES_PER_BOARD};

use super::Statistics;

/// Number of games or chunks surveyed in parallel.
const TOGETHER: usize = 1024;
/// Gives samples of variations a weight of zero, which distinguishes them from the main line.
const WEIGHTLESS: VariationWeight = VariationWeight {
    first: 0.0,
    decay: 1.0,
};

/// An unusable item and its location.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// All or part of a shard is unusable.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A chunk or a record in it is unusable.
    #[error(transparent)]
    Chunk(#[from] V6Error),
    /// A game in a PGN file cannot be read.
    #[error("{}, {game}: {source}", path.display())]
    Game {
        /// The file.
        path: PathBuf,
        /// The game.
        game: GamePlace,
        /// The game's problem.
        source: GameError,
    },
    /// A variation of a game in a PGN file cannot be read.
    #[error("a variation of {}, {game}: {source}", path.display())]
    Variation {
        /// The file.
        path: PathBuf,
        /// The game.
        game: GamePlace,
        /// The variation's problem.
        source: GameError,
    },
    /// A null move ends a game in a PGN file.
    #[error("the rest of {}, {game}, from the null move {null}", path.display())]
    NullMove {
        /// The file.
        path: PathBuf,
        /// The game.
        game: GamePlace,
        /// The null move.
        null: TokenPlace,
    },
    /// A game in a PGN file cannot be replayed.
    #[error("{}, {game}: {source}", path.display())]
    Replay {
        /// The file.
        path: PathBuf,
        /// The game.
        game: GamePlace,
        /// The game's problem.
        source: ReplayError,
    },
    /// A PGN file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system or the decompressor.
        source: std::io::Error,
    },
}

/// Collects [`Statistics`] over any number of files, and counts duplicates.
#[derive(Default)]
pub struct Survey {
    sources: BTreeSet<String>,
    total: Part,
    games: HashSet<u64>,
    hasher: RandomState,
}

/// The result of a survey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// The counts.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// Names of the files from which the shards were packed.
    pub sources: Vec<String>,
    /// Number of games with the same first position and moves as an earlier game.
    pub duplicate_games: u64,
    /// Number of samples with the same position, ignoring history, as an earlier sample.
    pub duplicate_positions: u64,
}

impl Survey {
    /// Adds a shard, decoding its blocks in parallel. `progress` is called with the numbers of
    /// samples added, and `bad` with faults.
    ///
    /// # Errors
    /// The error that `bad` returns.
    pub fn add_shard(
        &mut self,
        shard: &Shard,
        progress: impl Fn(u64) + Sync,
        bad: impl Fn(Fault) -> Result<(), Fault> + Sync,
    ) -> Result<(), Fault> {
        self.sources.extend(shard.header.sources.iter().cloned());
        self.add_all(shard.blocks().len(), progress, |block, part, hasher| {
            let records = match shard.read(block) {
                Ok(records) => records,
                Err(error) => return part.skip(error.into(), &bad),
            };
            for (game, record) in records.iter().enumerate() {
                if let Err(source) = part.add_game(record, &shard.header.rules, hasher) {
                    let error = ShardError::Replay {
                        path: shard.path.clone(),
                        block,
                        game,
                        source,
                    };
                    part.skip(error.into(), &bad)?;
                }
            }
            Ok(())
        })
    }

    /// Adds Lc0 chunks of one game each, in parallel; see [`Survey::add_shard`].
    ///
    /// # Errors
    /// The error that `bad` returns.
    pub fn add_chunks(
        &mut self,
        chunks: &Chunks,
        progress: impl Fn(u64) + Sync,
        bad: impl Fn(Fault) -> Result<(), Fault> + Sync,
    ) -> Result<(), Fault> {
        self.add_all(chunks.len(), progress, |chunk, part, hasher| {
            match chunks.read(chunk) {
                Ok(chunk) => part.add_chunk(&chunk, hasher, &bad),
                Err(error) => part.skip(error.into(), &bad),
            }
        })
    }

    /// Adds games, with the samples that `rules` define; see [`Survey::add_shard`]. `path` is only
    /// used in messages.
    ///
    /// # Errors
    /// The error that `bad` returns.
    pub fn add_games(
        &mut self,
        mut games: Games<impl BufRead>,
        path: &Path,
        rules: &TargetRules,
        progress: impl Fn(u64) + Sync,
        bad: impl Fn(Fault) -> Result<(), Fault> + Sync,
    ) -> Result<(), Fault> {
        loop {
            let texts: Vec<_> = games.by_ref().take(TOGETHER).collect();
            if texts.is_empty() {
                return Ok(());
            }
            self.add_all(texts.len(), &progress, |index, part, hasher| {
                let path = path.to_owned();
                let text = match &texts[index] {
                    Ok(text) => text,
                    Err(error) => {
                        let source = std::io::Error::new(error.kind(), error.to_string());
                        return part.skip(Fault::Io { path, source }, &bad);
                    }
                };
                let game = text.place;
                let read = match read_game(text) {
                    Ok(read) => read,
                    Err(source) => return part.skip(Fault::Game { path, game, source }, &bad),
                };
                if let Some(null) = read.null_move {
                    let path = path.clone();
                    part.skip(Fault::NullMove { path, game, null }, &bad)?;
                }
                for source in read.bad_variations {
                    let path = path.clone();
                    part.skip(Fault::Variation { path, game, source }, &bad)?;
                }
                match part.add_game(&read.record, rules, hasher) {
                    Ok(()) => Ok(()),
                    Err(source) => part.skip(Fault::Replay { path, game, source }, &bad),
                }
            })?;
            if texts.iter().any(Result::is_err) {
                return Ok(());
            }
        }
    }

    /// Returns the totals.
    #[must_use]
    pub fn finish(mut self) -> Findings {
        self.total.positions.par_sort_unstable();
        self.total.positions.dedup();
        let statistics = self.total.statistics;
        Findings {
            sources: self.sources.into_iter().collect(),
            duplicate_games: statistics.games - self.games.len() as u64,
            duplicate_positions: statistics.samples - self.total.positions.len() as u64,
            statistics,
        }
    }

    /// Surveys `count` items in parallel, a bounded number at a time.
    fn add_all(
        &mut self,
        count: usize,
        progress: impl Fn(u64) + Sync,
        survey: impl Fn(usize, &mut Part, &RandomState) -> Result<(), Fault> + Sync,
    ) -> Result<(), Fault> {
        for first in (0..count).step_by(TOGETHER) {
            let hasher = &self.hasher;
            let parts = (first..count.min(first + TOGETHER))
                .into_par_iter()
                .map(|number| {
                    let mut part = Part::default();
                    survey(number, &mut part, hasher)?;
                    progress(part.statistics.samples);
                    Ok(part)
                })
                .collect::<Result<Vec<_>, Fault>>()?;
            for part in parts {
                self.total.statistics.merge(&part.statistics);
                self.total.positions.extend(part.positions);
                self.games.extend(part.games);
            }
        }
        Ok(())
    }
}

/// Counts of one block, chunk or game.
#[derive(Default)]
struct Part {
    statistics: Statistics,
    games: Vec<u64>,
    positions: Vec<u64>,
}

impl Part {
    fn add(&mut self, sample: &Sample, hasher: &RandomState) {
        self.statistics.add(sample);
        self.statistics.variation_samples += u64::from(sample.weight == 0.0);
        self.positions.push(position_hash(sample, hasher));
    }

    fn add_game(
        &mut self,
        record: &Record,
        rules: &TargetRules,
        hasher: &RandomState,
    ) -> Result<(), ReplayError> {
        self.statistics.add_game(record.result, record.ratings);
        self.games.push(record.hash());
        let add = |sample: Sample| self.add(&sample, hasher);
        replay(
            InputFormat::Classical,
            record,
            rules,
            WEIGHTLESS,
            || true,
            add,
        )
    }

    fn add_chunk(
        &mut self,
        chunk: &Chunk,
        hasher: &RandomState,
        bad: &impl Fn(Fault) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let records = chunk.records().flatten();
        let moves: Vec<u16> = records.map(|record| record.played_idx).collect();
        let mut result = None;
        let mut bad_records = 0;
        let add = |sample: Sample| {
            let turn = sample.input.turn();
            result = sample.result.map(|result| result.seen_by(turn));
            self.add(&sample, hasher);
        };
        chunk.samples(
            || true,
            add,
            |error| {
                bad_records += 1;
                bad(error.into())
            },
        )?;
        self.statistics.bad_records += bad_records;
        if !moves.is_empty() {
            self.statistics.add_game(result, Ratings::default());
            self.games.push(hasher.hash_one(moves));
        }
        Ok(())
    }

    fn skip(
        &mut self,
        fault: Fault,
        bad: &impl Fn(Fault) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.statistics.bad_records += 1;
        bad(fault)
    }
}

/// Returns a hash of the pieces, the side to move and the castling and en-passant rights, ignoring
/// the history and the rule-50 count.
fn position_hash(sample: &Sample, hasher: &RandomState) -> u64 {
    let words = sample.input.words();
    let (rights_and_turn, en_passant) = (&words[BOARDS..BOARDS + 5], words[BOARDS + 6]);
    hasher.hash_one((&words[..PLANES_PER_BOARD - 1], rights_and_turn, en_passant))
}
