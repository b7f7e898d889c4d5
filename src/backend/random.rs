//! The random backend, which derives evaluations from a hash of the position.

use super::uniform::without_network;
use super::{Backend, BackendError, Batch, Evaluations, Properties, Value};

/// Derives values and logits from a hash of the position and a seed. A search with this backend
/// gives the same result on every machine, because the backend only adds, multiplies and halves,
/// which IEEE 754 defines bit for bit, and calls no mathematical library.
///
/// Unlike with the uniform backend, search trees resemble those of a network: they are uneven, and
/// transpositions have equal values.
#[derive(Debug)]
pub struct Random {
    properties: Properties,
    seed: u64,
}

impl Random {
    /// Returns a different backend for each seed.
    pub fn new(seed: u64) -> Random {
        Random {
            properties: without_network("random"),
            seed: mix(seed),
        }
    }
}

impl Backend for Random {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        out.clear();
        for (index, key) in batch.keys().iter().enumerate() {
            let state = mix(key ^ self.seed);
            // Take the mean of two uniform numbers, so that clear-cut positions are rarer than even
            // ones. The draw probability is a share of 1 − |q|.
            let q = (signed(state) + signed(mix(state))) / 2.0;
            let value = Value {
                q,
                d: (1.0 - q.abs()) / 2.0,
                ..Value::default()
            };
            let logits = batch.moves(index).iter().map(|&mv| {
                let hash = mix(state ^ u64::from(mv).wrapping_mul(GOLDEN_GAMMA));
                LOGIT_RANGE * signed(hash)
            });
            out.push(value, logits);
        }
        Ok(())
    }
}

/// Logits range from minus this value to this value. The likeliest of thirty moves then has a prior
/// a few times as high as with the uniform backend, roughly as with a network.
const LOGIT_RANGE: f32 = 2.0;

/// The increment of splitmix64, 2⁶⁴ over the golden ratio.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Runs one step of splitmix64 (Steele, Lea, Flood 2014).
fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(GOLDEN_GAMMA);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// Maps the top 24 bits to −1…1. The result is exact, because an f32 holds 24 bits.
fn signed(hash: u64) -> f32 {
    let centred = (hash >> 40) as i32 - (1 << 23);
    centred as f32 / (1 << 23) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::tests::positions;

    fn evaluate(seed: u64, batch: &Batch) -> Evaluations {
        let mut out = Evaluations::default();
        Random::new(seed).evaluate(batch, &mut out).unwrap();
        out
    }

    #[test]
    fn the_same_everywhere_and_always() {
        // Reference values for splitmix64 with seed 0.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(GOLDEN_GAMMA), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!((signed(0), signed(1 << 63)), (-1.0, 0.0));
        let batch = positions(1, false);
        let out = evaluate(7, &batch);
        assert_eq!(out.value(0).q, -0.360_109_03);
        assert_eq!(out.logits(0)[0], -0.051_938_295);
    }

    #[test]
    fn position_move_and_seed_all_matter() {
        let batch = positions(40, false);
        let (one, other) = (evaluate(1, &batch), evaluate(2, &batch));
        for index in 0..batch.len() {
            let value = one.value(index);
            assert!(value.q.abs() < 1.0 && value.wdl().iter().all(|&part| part > 0.0));
            assert_ne!(value, other.value(index));
            assert_ne!(one.logits(index), other.logits(index));
            let mut logits = one.logits(index).to_vec();
            assert!(logits.iter().all(|logit| logit.abs() <= LOGIT_RANGE));
            logits.sort_by(f32::total_cmp);
            logits.dedup();
            assert!(logits.len() + 1 >= batch.moves(index).len());
        }
        let first = (0..batch.len()).map(|index| one.value(index).q.to_bits());
        let different: std::collections::HashSet<u32> = first.collect();
        assert!(different.len() > 30);
    }
}
