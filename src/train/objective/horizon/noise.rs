//! Masks futures.
//!
//! All random choices depend only on the seed and on the sample's index in the sample order, so
//! that a resumed run makes the same choices.

use crate::data::examples::{Future, HorizonColumns};
use crate::data::loader::Batch;
use crate::encode::{Input, Squares};
use crate::network::diffusion::{DiffusionConfig, marks_of};
use crate::train::config::DiffusionTraining;
use crate::train::objective::{IGNORED, random_of};
use rand::{Rng, RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::f64::consts::FRAC_PI_2;

/// Minimum diffusion time, greater than 0 so that a small share is masked.
const FIRST_TIME: f64 = 0.01;
/// Distance between the times of consecutive samples, modulo 1. The times form a Weyl sequence with
/// the golden ratio, which is spread evenly over any run of consecutive samples.
const STRIDE: f64 = 0.618_033_988_749_894_9;
/// Number of binary digits to which the masked share is rounded.
const DIGITS: u32 = 16;

/// Settings for masking futures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    pub horizon: usize,
    /// Share of the samples whose future is fully masked.
    pub unknown: f64,
    /// Share of the samples whose input contains the network's predicted future instead of the true
    /// one.
    pub own: f64,
    /// Share of the other samples in which the first move is given.
    pub told: f64,
    pub seed: u64,
}

/// A sample in which the first move is given, identified by its row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Told {
    pub row: usize,
    /// The value of the given move, if that move is not the policy target.
    pub q: Option<f32>,
}

/// The futures of B positions as the network's input and targets, row by row; H is the horizon.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Noised {
    /// The network's input, as in [`crate::network::diffusion::Futures`].
    pub pieces: Vec<i64>,
    pub marks: Vec<i64>,
    pub noise: Vec<f32>,
    /// Bits of the classes of the squares, [B, H, 4], see [`Squares::words`].
    pub squares: Vec<i64>,
    /// Bitboards [B, H] of the squares that are targets.
    pub learned: Vec<i64>,
    /// Bitboards [B, H] of the squares that differ from the present position.
    pub changed: Vec<i64>,
    /// Policy indices [B, H − 1] of the moves after the first; [`IGNORED`] if a move is known or
    /// does not exist.
    pub moves: Vec<i64>,
    /// The weight `[B]` of the masked part.
    pub weight: Vec<f32>,
    /// The number of boards with targets `[B]`, and the number of target moves after the first.
    pub boards: Vec<f32>,
    pub later_moves: Vec<f32>,
    /// The rows of the samples that will use the network's predicted future. In this struct, their
    /// futures are fully masked and are not targets.
    pub own: Vec<i64>,
    /// The samples in which the first move is given.
    pub told: Vec<Told>,
}

impl Noise {
    pub fn new(config: &DiffusionConfig, training: &DiffusionTraining, seed: u64) -> Noise {
        Noise {
            horizon: config.horizon as usize,
            unknown: training.unknown,
            own: 0.0,
            told: 0.0,
            seed,
        }
    }

    /// Masks the futures of a batch.
    pub fn apply(&self, batch: &Batch<HorizonColumns>) -> Noised {
        let mut random = random_of(self.seed, batch);
        let start: f64 = random.random();
        // Skip the random numbers for the samples of other ranks and replicas.
        for _ in 0..batch.first {
            random.next_u64();
        }
        let mut noised = Noised::default();
        let columns = &batch.columns;
        let rows = columns.positions.inputs.iter().zip(&columns.futures);
        let rows = rows.zip(&columns.instead);
        for (place, ((input, future), instead)) in (batch.first..).zip(rows) {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(random.next_u64());
            let chance = (start + place as f64 * STRIDE).fract();
            if self.own > 0.0 && random.random::<f64>() < self.own {
                noised.own.push(noised.noise.len() as i64);
                let none = Future::new();
                self.add(&mut noised, input, &none, None, (1.0, 1.0), &mut random);
                continue;
            }
            let level = self.level(chance);
            let is_told = self.told > 0.0 && random.random::<f64>() < self.told;
            let instead = instead.as_ref();
            let instead = instead.filter(|_| is_told && random.random::<bool>());
            let future = instead.map_or(future, |it| &it.future);
            let first = future.first().filter(|_| is_told).map(|ply| ply.played);
            if first.is_some() {
                let (row, q) = (noised.noise.len(), instead.map(|it| it.q));
                noised.told.push(Told { row, q });
            }
            self.add(&mut noised, input, future, first, level, &mut random);
        }
        noised
    }

    /// Returns the masked share of a sample's future, and the weight of the masked part, given a
    /// uniform random number in 0…1.
    fn level(&self, chance: f64) -> (f64, f64) {
        if chance < self.unknown {
            return (1.0, 1.0);
        }
        let time = (chance - self.unknown) / (1.0 - self.unknown);
        let time = FIRST_TIME + (1.0 - FIRST_TIME) * time;
        (masked_share(time), weight_of_masked(time))
    }

    /// Adds a sample with this masked share and weight. `first` is the first move if it is given.
    fn add(
        &self,
        noised: &mut Noised,
        input: &Input,
        future: &Future,
        first: Option<u16>,
        (share, weight): (f64, f64),
        random: &mut Xoshiro256PlusPlus,
    ) {
        let present = Squares::of_planes(input.words());
        let seen = [present, present.reversed()];
        let mut marks_before = marks_of(0, first);
        for ply in 1..=self.horizon {
            let present = &seen[ply % 2];
            let unknown = some_squares(share, random);
            let is_told = random.random::<f64>() >= share;
            let real = future.get(ply - 1);
            let mut learned = 0;
            let (mut board, mut masked) = (*present, u64::MAX);
            if let Some(real) = real {
                (masked, learned) = (unknown, unknown);
                board = real.board.with(unknown, present);
            }
            let played = real.map(|ply| ply.played);
            if ply > 1 {
                if is_told {
                    let told = marks_of(0, played);
                    marks_before[1..].copy_from_slice(&told[1..]);
                }
                let wanted = played.filter(|_| !is_told);
                noised.moves.push(wanted.map_or(IGNORED, i64::from));
            }
            noised.marks.extend(marks_before.map(|word| word as i64));
            marks_before = marks_of(masked, None);
            noised.pieces.extend(board.planes().map(|word| word as i64));
            let target = real.map_or(*present, |real| real.board);
            noised
                .squares
                .extend(target.words().map(|word| word as i64));
            noised.learned.push(learned as i64);
            noised.changed.push(target.difference(present) as i64);
        }
        noised.marks.extend(marks_before.map(|word| word as i64));
        noised.noise.push(share as f32);
        noised.weight.push(weight as f32);
        let plies = future.len().min(self.horizon);
        noised.boards.push(plies as f32);
        noised.later_moves.push(plies.saturating_sub(1) as f32);
    }
}

/// Returns a bitboard in which each square is set with probability `share`.
fn some_squares(share: f64, random: &mut Xoshiro256PlusPlus) -> u64 {
    let share = (share * f64::from(1u32 << DIGITS)).round() as u32;
    if share >> DIGITS != 0 {
        return u64::MAX;
    }
    // Compares 64 random binary fractions with the share, one digit of all fractions at a time.
    (0..DIGITS).fold(0, |below, digit| match share >> digit & 1 {
        0 => below & random.next_u64(),
        _ => below | random.next_u64(),
    })
}

/// Returns the masked share of a future at a time in 0…1. The share follows a quarter of a sine
/// wave, as in MaskGIT (Chang et al. 2022), and exceeds one half at most times.
fn masked_share(time: f64) -> f64 {
    (FRAC_PI_2 * time).sin()
}

/// Returns the weight of masked variables at a time, which is the logarithmic derivative of
/// [`masked_share`]. With this weight, every variable counts equally on average, and the loss
/// bounds the likelihood of futures (Sahoo et al. 2024).
fn weight_of_masked(time: f64) -> f64 {
    FRAC_PI_2 / (FRAC_PI_2 * time).tan()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A variable's weight, which is 0 while it is not masked, has a mean of one over all times.
    #[test]
    fn every_variable_weighs_one() {
        let count = 10_000;
        let times = (0..count).map(|it| (f64::from(it) + 0.5) / f64::from(count));
        let weights = times.map(|time| masked_share(time) * weight_of_masked(time));
        let mean = weights.sum::<f64>() / f64::from(count);
        assert!((mean - 1.0).abs() < 1e-6, "{mean}");
        assert!((masked_share(1.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn squares_are_chosen_with_their_chance() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        for share in [0.0, 0.01, 0.3, 0.5, 0.9, 1.0] {
            let count = 2000;
            let chosen: u32 = (0..count)
                .map(|_| some_squares(share, &mut random).count_ones())
                .sum();
            let found = f64::from(chosen) / f64::from(64 * count);
            let deviation = (share * (1.0 - share) / f64::from(64 * count)).sqrt();
            assert!(
                (found - share).abs() <= 4.0 * deviation,
                "{found}, not {share}"
            );
        }
    }
}
