//! Statistics of training data.

mod survey;

use std::collections::BTreeMap;

use serde::Serialize;

use super::sample::{Policy, Sample, Wdl};
use crate::chess::Ratings;

pub use survey::{Fault, Findings, Survey};

/// Number of bars in the histogram of values.
pub const BARS: usize = 20;
/// Width of a bar in the histogram of ratings.
pub const RATING_BAR: u16 = 100;
/// Width of a bar in the histogram of pieces.
pub const PIECE_BAR: u32 = 4;

/// Numbers of games by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Results {
    /// Games won by White.
    pub white: u64,
    /// Drawn games.
    pub draw: u64,
    /// Games won by Black.
    pub black: u64,
    /// Games without a result.
    pub unknown: u64,
}

/// Numbers of samples by target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Targets {
    /// Samples whose policy target is a single move.
    pub policy_move: u64,
    /// Samples whose policy target is a distribution over moves.
    pub policy_distribution: u64,
    /// Samples without a policy target.
    pub policy_unknown: u64,
    /// Samples whose target includes the game's result.
    pub result: u64,
    /// Samples with an engine's value.
    pub q: u64,
    /// Samples with a short-term value.
    pub short_term: u64,
    /// Samples with the number of plies to the end of the game.
    pub moves_left: u64,
}

/// Counts over games and samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Number of games.
    pub games: u64,
    /// Number of samples of all kinds.
    pub samples: u64,
    /// Number of samples from variations, included in `samples`.
    pub variation_samples: u64,
    /// Number of unusable records.
    pub bad_records: u64,
    /// Games by result.
    pub results: Results,
    /// Numbers of samples by kind of target; a sample counts for each of its targets.
    pub targets: Targets,
    /// Histogram of q from the perspective of the side to move, in bars of equal width from −1 to
    /// 1.
    pub q_histogram: [u64; BARS],
    /// Histogram of the players' ratings, in bars of width [`RATING_BAR`], keyed by the lowest
    /// rating of the bar. A player counts once per game.
    pub rating_histogram: BTreeMap<u16, u64>,
    /// Histogram of the number of pieces on the board, including kings and pawns, in bars of width
    /// [`PIECE_BAR`], keyed by the lowest number of the bar: 1, 5, …, 29.
    pub piece_histogram: BTreeMap<u32, u64>,
    /// Number of legal moves, summed over all samples.
    pub legal_moves: u64,
}

impl Statistics {
    fn add(&mut self, sample: &Sample) {
        self.samples += 1;
        self.legal_moves += sample.legal.count() as u64;
        let bar = sample.input.pieces().saturating_sub(1) / PIECE_BAR * PIECE_BAR + 1;
        *self.piece_histogram.entry(bar).or_default() += 1;
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

    fn add_game(&mut self, result: Option<Wdl>, ratings: Ratings) {
        self.games += 1;
        match result {
            Some(Wdl::Win) => self.results.white += 1,
            Some(Wdl::Draw) => self.results.draw += 1,
            Some(Wdl::Loss) => self.results.black += 1,
            None => self.results.unknown += 1,
        }
        for rating in [ratings.white, ratings.black].into_iter().flatten() {
            let bar = rating / RATING_BAR * RATING_BAR;
            *self.rating_histogram.entry(bar).or_default() += 1;
        }
    }

    fn merge(&mut self, other: &Statistics) {
        self.games += other.games;
        self.samples += other.samples;
        self.variation_samples += other.variation_samples;
        self.bad_records += other.bad_records;
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
        for (&bar, more) in &other.rating_histogram {
            *self.rating_histogram.entry(bar).or_default() += more;
        }
        for (&bar, more) in &other.piece_histogram {
            *self.piece_histogram.entry(bar).or_default() += more;
        }
        self.legal_moves += other.legal_moves;
    }
}
