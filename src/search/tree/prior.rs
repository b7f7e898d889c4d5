//! Priors, stored in one byte each.
//!
//! A node stores one byte per legal move, in generation order, but not the moves themselves,
//! because a tree consists mostly of leaves, and leaves consist mostly of priors. The code is
//! logarithmic and reaches down to 2⁻¹³. Its error of up to 1.8 % equals the precision of a logit
//! in bf16.

use super::arena::{Arena, Index};
use crate::search::numeric::{exp2, log2};
use std::f32::consts::LOG2_E;
use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum number of moves that can have priors. No position of a real game has more than 218
/// moves, but constructed positions can exceed the maximum. The root then keeps the likeliest moves;
/// other nodes keep those that are generated first.
pub(crate) const MAX_MOVES: usize = 248;
/// The number of binary orders of magnitude that the codes span.
const RANGE: f32 = 13.0;
const STEPS: f32 = 255.0;
/// The code of a move that had an edge when the priors were [corrected](super::correct).
pub(crate) const TAKEN: u8 = u8::MAX;

static DECODED: LazyLock<[f32; 256]> =
    LazyLock::new(|| std::array::from_fn(|code| exp2((code as f32 - STEPS) * RANGE / STEPS)));

/// Returns the number of words needed for the priors of this many moves.
pub(crate) fn words(moves: usize) -> usize {
    moves.div_ceil(8)
}

/// Returns the table that maps codes to probabilities.
pub(crate) fn table() -> &'static [f32; 256] {
    &DECODED
}

/// Writes the codes of the softmax of `logits` at `temperature` to the block at
/// `index`; `scratch` is overwritten.
pub(crate) fn write(
    arena: &Arena,
    index: Index,
    logits: &[f32],
    temperature: f32,
    scratch: &mut Vec<f32>,
) {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let scale = LOG2_E / temperature;
    // Computed eight lanes at a time; the padding of the last group has zero weight.
    scratch.clear();
    scratch.extend(logits.iter().map(|&logit| (logit - top) * scale));
    scratch.resize(words(logits.len()) * 8, f32::NEG_INFINITY);
    let (lanes, _) = scratch.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for powers in lanes {
        for (sum, &power) in sums.iter_mut().zip(powers) {
            *sum += exp2(power);
        }
    }
    let sum: f32 = sums.iter().sum();
    let shift = STEPS + 0.5 - log2(sum) * (STEPS / RANGE);
    let block = arena.slice(index, lanes.len());
    for (word, powers) in block.iter().zip(lanes) {
        let codes = powers.map(|power| (power * (STEPS / RANGE) + shift) as u8);
        word.store(u64::from_le_bytes(codes), Relaxed);
    }
}

/// Returns the code of a move.
pub(crate) fn code(arena: &Arena, index: Index, number: u8) -> u8 {
    let word = &arena.slice(index + Index::from(number / 8), 1)[0];
    word.load(Relaxed).to_le_bytes()[usize::from(number % 8)]
}

/// Sets the codes of these moves to [`TAKEN`], and lowers those of all others below it.
pub(crate) fn take(arena: &Arena, index: Index, moves: u8, taken: impl Iterator<Item = Rank>) {
    let mut codes = [[0; 8]; MAX_MOVES / 8];
    let block = arena.slice(index, words(moves.into()));
    for (codes, word) in codes.iter_mut().zip(block) {
        *codes = word
            .load(Relaxed)
            .to_le_bytes()
            .map(|code| code.min(TAKEN - 1));
    }
    for rank in taken {
        codes.as_flattened_mut()[usize::from(rank.number())] = TAKEN;
    }
    for (codes, word) in codes.into_iter().zip(block) {
        word.store(u64::from_le_bytes(codes), Relaxed);
    }
}

/// A move, represented by the code of its prior and its number in generation order.
///
/// Moves become children in descending order of rank. The children of a node are therefore always a
/// prefix of that order, and the last child determines the next one, unless the priors are
/// [corrected](super::correct).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(u16);

impl Rank {
    /// A rank above that of every move.
    pub(crate) const TOP: Rank = Rank(u16::MAX);
    /// A rank above those of all moves without an edge when the priors were
    /// [corrected](super::correct).
    pub(crate) const CORRECTED: Rank = Rank((TAKEN as u16) << 8);

    #[cfg(test)]
    pub(crate) fn new(code: u8, number: u8) -> Rank {
        // Of moves with equal priors, the one generated first ranks higher. No number exceeds 254,
        // so no rank equals `TOP`.
        Rank(u16::from(code) << 8 | u16::from(254u8.wrapping_sub(number)))
    }

    /// Returns the rank as 16 bits, which [`Rank::from_bits`] accepts.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    pub(crate) fn from_bits(bits: u16) -> Rank {
        Rank(bits)
    }

    /// Returns the rank of the same move with another code.
    pub(crate) fn with_code(self, code: u8) -> Rank {
        Rank(u16::from(code) << 8 | self.0 & 0xff)
    }

    pub(crate) fn code(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Returns the move's number in generation order.
    pub(crate) fn number(self) -> u8 {
        254u8.wrapping_sub(self.0 as u8)
    }

    /// Returns the highest rank below this one among `moves` moves.
    pub(crate) fn next(self, arena: &Arena, index: Index, moves: u8) -> Option<Rank> {
        // Computed in eight lanes. The padding of the last word ranks below all moves, because of
        // its code of 0 and its number.
        let mut best = [0; 8];
        let mut first = 254u16;
        for word in arena.slice(index, words(moves.into())) {
            let codes = word.load(Relaxed).to_le_bytes();
            for (lane, (best, code)) in best.iter_mut().zip(codes).enumerate() {
                let rank = u16::from(code) << 8 | (first - lane as u16);
                let below = if rank < self.0 { rank } else { 0 };
                *best = below.max(*best);
            }
            first -= 8;
        }
        let best = best.into_iter().max().map_or(Rank(0), Rank);
        (best.0 > 0 && best.number() < moves).then_some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_come_in_descending_order_with_their_priors() {
        let mut arena = Arena::new(1);
        arena.reset(4);
        let logits: Vec<f32> = (0..218).map(|i| ((i * 37) % 218) as f32 / 40.0).collect();
        write(&arena, 8, &logits, 1.5, &mut Vec::new());
        let mut exact: Vec<f32> = logits.iter().map(|l| l / 1.5).collect();
        crate::softmax::softmax(&mut exact, 1.0);
        let mut rank = Rank::TOP;
        let mut seen = Vec::new();
        while let Some(next) = rank.next(&arena, 8, 218) {
            assert!(next < rank);
            let prior = table()[usize::from(next.code())];
            let truth = exact[usize::from(next.number())];
            assert!((prior / truth - 1.0).abs() < 0.019, "{prior} {truth}");
            seen.push(next.number());
            rank = next;
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..218).collect::<Vec<u8>>());
    }

    #[test]
    fn a_certain_move_has_prior_one_and_a_hopeless_one_is_kept() {
        let mut arena = Arena::new(1);
        arena.reset(4);
        write(&arena, 8, &[50.0, -50.0], 1.0, &mut Vec::new());
        let first = Rank::TOP.next(&arena, 8, 2).unwrap();
        assert_eq!((first.code(), first.number()), (255, 0));
        let second = first.next(&arena, 8, 2).unwrap();
        assert_eq!((second.code(), second.number()), (0, 1));
        assert_eq!(second.next(&arena, 8, 2), None);
    }
}
