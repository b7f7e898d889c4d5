//! What a body of training data consists of.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use rayon::prelude::*;
use serde::Serialize;

use crate::encode::{BOARDS, PLANES_PER_BOARD};

use super::record::Record;
use super::replay::{VariationWeight, replay};
use super::sample::{Policy, Sample, Wdl};
use super::shard::{Shard, ShardError};
use super::v6::{Chunk, V6Error};

/// Bars of the histogram of values.
pub const BARS: usize = 20;

/// Games by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Results {
    /// Won by White.
    pub white: u64,
    /// Drawn.
    pub draw: u64,
    /// Won by Black.
    pub black: u64,
    /// Without a result.
    pub unknown: u64,
}

/// Samples by what they teach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Targets {
    /// One move as policy.
    pub policy_move: u64,
    /// A distribution over moves as policy.
    pub policy_distribution: u64,
    /// No policy.
    pub policy_unknown: u64,
    /// The game's result.
    pub result: u64,
    /// An engine's value.
    pub q: u64,
    /// The short-term value.
    pub short_term: u64,
    /// Plies to the end of the game.
    pub moves_left: u64,
}

/// Counts over games and samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Games.
    pub games: u64,
    /// Samples of all kinds.
    pub samples: u64,
    /// Of these, samples of variations.
    pub variation_samples: u64,
    /// Games by result.
    pub results: Results,
    /// Samples by what they teach; a sample counts for each of its targets.
    pub targets: Targets,
    /// Values q of the mover in equal bars from −1 to 1.
    pub q_histogram: [u64; BARS],
    /// Legal moves summed over samples.
    pub legal_moves: u64,
}

impl Statistics {
    fn add(&mut self, sample: &Sample) {
        self.samples += 1;
        self.legal_moves += sample.legal.count() as u64;
        let targets = &mut self.targets;
        match sample.policy {
            Policy::Move(_) => targets.policy_move += 1,
            Policy::Distribution(_) => targets.policy_distribution += 1,
            Policy::Unknown => targets.policy_unknown += 1,
        }
        targets.result += u64::from(sample.result.is_some());
        targets.q += u64::from(sample.q.is_some());
        targets.short_term += u64::from(sample.short_term.is_some());
        targets.moves_left += u64::from(sample.moves_left.is_some());
        if let Some(q) = sample.q {
            let bar = ((q + 1.0) / 2.0 * BARS as f32) as usize;
            self.q_histogram[bar.min(BARS - 1)] += 1;
        }
    }

    fn add_game(&mut self, result: Option<Wdl>) {
        self.games += 1;
        match result {
            Some(Wdl::Win) => self.results.white += 1,
            Some(Wdl::Draw) => self.results.draw += 1,
            Some(Wdl::Loss) => self.results.black += 1,
            None => self.results.unknown += 1,
        }
    }

    fn merge(&mut self, other: &Statistics) {
        self.games += other.games;
        self.samples += other.samples;
        self.variation_samples += other.variation_samples;
        self.results.white += other.results.white;
        self.results.draw += other.results.draw;
        self.results.black += other.results.black;
        self.results.unknown += other.results.unknown;
        self.targets.policy_move += other.targets.policy_move;
        self.targets.policy_distribution += other.targets.policy_distribution;
        self.targets.policy_unknown += other.targets.policy_unknown;
        self.targets.result += other.targets.result;
        self.targets.q += other.targets.q;
        self.targets.short_term += other.targets.short_term;
        self.targets.moves_left += other.targets.moves_left;
        for (bar, more) in self.q_histogram.iter_mut().zip(other.q_histogram) {
            *bar += more;
        }
        self.legal_moves += other.legal_moves;
    }
}

/// Collects [`Statistics`] over any number of files, and what repeats in them.
#[derive(Default)]
pub struct Survey {
    statistics: Statistics,
    games: HashSet<u64>,
    positions: Vec<u64>,
    hasher: RandomState,
}

/// What a survey found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// The counts.
    #[serde(flatten)]
    pub statistics: Statistics,
    /// Games whose start and moves occurred before.
    pub duplicate_games: u64,
    /// Samples whose position, history apart, occurred before.
    pub duplicate_positions: u64,
}

impl Survey {
    /// Adds a shard, decoding its blocks in parallel; `progress` hears of
    /// every block's samples.
    ///
    /// # Errors
    /// [`ShardError`] if the shard is damaged.
    pub fn add_shard(
        &mut self,
        shard: &Shard,
        progress: impl Fn(u64) + Sync,
    ) -> Result<(), ShardError> {
        let hasher = &self.hasher;
        let blocks: Vec<_> = (0..shard.blocks().len())
            .into_par_iter()
            .map(|block| {
                let found = survey_block(shard, block, hasher);
                progress(shard.blocks()[block].samples);
                found
            })
            .collect::<Result<_, _>>()?;
        for (statistics, games, positions) in blocks {
            self.statistics.merge(&statistics);
            self.games.extend(games);
            self.positions.extend(positions);
        }
        Ok(())
    }

    /// Adds a chunk of Lc0's, which is one game.
    ///
    /// # Errors
    /// [`V6Error`] if the chunk is damaged.
    pub fn add_chunk(&mut self, path: &Path) -> Result<(), V6Error> {
        let mut statistics = Statistics::default();
        let mut moves = Vec::new();
        let mut result = None;
        for (number, record) in Chunk::open(path)?.enumerate() {
            let record = record?;
            let sample = record.sample().map_err(|fault| V6Error {
                path: path.to_owned(),
                offset: (number * super::v6::RECORD_SIZE) as u64,
                fault,
            })?;
            statistics.add(&sample);
            let turn = sample.input.turn();
            result = sample
                .result
                .map(|result| turn.fold_wb(result, result.reversed()));
            moves.push(record.played_idx);
            self.positions.push(position_hash(&sample, &self.hasher));
        }
        statistics.add_game(result);
        self.games.insert(self.hasher.hash_one(moves));
        self.statistics.merge(&statistics);
        Ok(())
    }

    /// The sums.
    #[must_use]
    pub fn finish(mut self) -> Findings {
        self.positions.par_sort_unstable();
        self.positions.dedup();
        Findings {
            duplicate_games: self.statistics.games - self.games.len() as u64,
            duplicate_positions: self.statistics.samples - self.positions.len() as u64,
            statistics: self.statistics,
        }
    }
}

fn survey_block(
    shard: &Shard,
    block: usize,
    hasher: &RandomState,
) -> Result<(Statistics, Vec<u64>, Vec<u64>), ShardError> {
    // Without weight, variations can be told apart.
    let weightless = VariationWeight {
        first: 0.0,
        decay: 1.0,
    };
    let mut statistics = Statistics::default();
    let records = shard.read(block)?;
    let mut positions = Vec::new();
    for (game, record) in records.iter().enumerate() {
        statistics.add_game(record.result);
        let count = |sample: Sample| {
            statistics.add(&sample);
            statistics.variation_samples += u64::from(sample.weight == 0.0);
            positions.push(position_hash(&sample, hasher));
        };
        replay(record, &shard.header().reading, weightless, || true, count).map_err(|source| {
            ShardError::Replay {
                path: shard.path().to_owned(),
                block,
                game,
                source,
            }
        })?;
    }
    let games = records.iter().map(Record::hash).collect();
    Ok((statistics, games, positions))
}

/// A hash of the pieces, the side to move and the rights; neither the history
/// nor the rule-50 count is part of it.
fn position_hash(sample: &Sample, hasher: &RandomState) -> u64 {
    let words = sample.input.words();
    let (rights_and_turn, en_passant) = (&words[BOARDS..BOARDS + 5], words[BOARDS + 6]);
    hasher.hash_one((&words[..PLANES_PER_BOARD - 1], rights_and_turn, en_passant))
}
