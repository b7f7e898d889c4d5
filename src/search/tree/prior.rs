//! Priors in a byte each.
//!
//! A position stores one byte per legal move, in generation order, and no moves: a tree is mostly
//! leaves, and leaves are mostly priors. The code is logarithmic, exact to 1.8 %, the precision
//! of a logit in bf16; it reaches down to 2⁻¹³.

use super::arena::{Arena, Index};
use crate::search::numeric::{exp2, log2};
use std::f32::consts::LOG2_E;
use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;

/// Moves that can have priors. No legal position has more than 218; constructed ones may, and
/// only a root chooses which of them to keep.
pub(crate) const MAX_MOVES: usize = 248;
/// Binary orders of magnitude that the codes span.
const RANGE: f32 = 13.0;
const STEPS: f32 = 255.0;

static DECODED: LazyLock<[f32; 256]> =
    LazyLock::new(|| std::array::from_fn(|code| exp2((code as f32 - STEPS) * RANGE / STEPS)));

/// Returns the words needed for the priors of a number of moves.
pub(crate) fn words(moves: usize) -> usize {
    moves.div_ceil(8)
}

/// Returns the table from codes to probabilities.
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
    // Eight lanes at a time; the padding of the last has zero weight.
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

/// A move by its prior's code and its number in generation order.
///
/// Moves become children in descending order of rank, so the children of a node are always a
/// prefix of that order, and the last child determines the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(u16);

impl Rank {
    /// Above every move.
    pub(crate) const TOP: Rank = Rank(u16::MAX);

    #[cfg(test)]
    pub(crate) fn new(code: u8, number: u8) -> Rank {
        // Of equal priors the move generated first ranks higher. No number is
        // above 254, so nothing equals the top.
        Rank(u16::from(code) << 8 | u16::from(254u8.wrapping_sub(number)))
    }

    /// Returns the rank as 16 bits, for [`Rank::from_bits`].
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    pub(crate) fn from_bits(bits: u16) -> Rank {
        Rank(bits)
    }

    pub(crate) fn code(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Returns the move's number in generation order.
    pub(crate) fn number(self) -> u8 {
        254u8.wrapping_sub(self.0 as u8)
    }

    /// Returns the highest-ranking of `moves` moves below this one.
    pub(crate) fn next(self, arena: &Arena, index: Index, moves: u8) -> Option<Rank> {
        // In eight lanes. The padding of the last word ranks below all moves, by its code of 0
        // and its number.
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
