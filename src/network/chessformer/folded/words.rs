//! The input of a folded Chessformer, in which every feature is one bit of each square.

use crate::encode::{ATTACK_WORDS, ATTACKS, BOARDS, COUNT_BITS, RATINGS, WIDTH, slice_attacks};
use crate::network::chessformer::ModelConfig;
use crate::network::chessformer::embedding::{Embedding, FEATURES, RULE50_PLANE, RULE50_SCALE};
use crate::network::chessformer::ratings::STRONGEST;
use crate::network::parameters::Weights;
use tch::Tensor;

/// Number of words for castling rights and the side to move, each set on all squares or on none. A
/// word of ones follows them.
const FLAGS: usize = 5;
/// Number of bits for the plies since the last capture or pawn move.
const RULE50_BITS: usize = 16;
/// Number of bits for a rating. Two words before the bits state whether the rating is unknown and
/// whether it is known.
const RATING_BITS: usize = 13;
/// Number of piece kinds whose attackers are counted.
const COUNTS: i64 = 12;
/// The number of features is a multiple of this, for the matrix units of GPUs.
const MULTIPLE: usize = 8;
/// Number of words for the squares that attack and are attacked.
const PAIRS: usize = 128;

/// The layout of a position's words: the features, then for each square the squares that its piece
/// attacks and the squares whose pieces attack it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    has_attacks: bool,
    has_ratings: bool,
    has_pairs: bool,
}

impl Words {
    pub fn new(config: &ModelConfig) -> Words {
        Words {
            has_attacks: config.attacks,
            has_ratings: config.elo,
            has_pairs: config.attack_bias,
        }
    }

    /// Returns the minimum number of words in a row.
    pub fn row(self) -> usize {
        if self.has_ratings {
            WIDTH
        } else {
            BOARDS + FLAGS + 1
        }
    }

    /// Returns the number of features per square.
    pub fn features(self) -> usize {
        let attacks = if self.has_attacks { ATTACK_WORDS } else { 0 };
        let ratings = if self.has_ratings {
            2 * (2 + RATING_BITS)
        } else {
            0
        };
        (BOARDS + FLAGS + 1 + RULE50_BITS + attacks + ratings).next_multiple_of(MULTIPLE)
    }

    /// Returns the number of words per position.
    pub fn width(self) -> usize {
        self.features() + if self.has_pairs { PAIRS } else { 0 }
    }

    /// Writes the words of a position from its row. The row may end after the words that the
    /// network reads.
    pub fn write(self, row: &[u64], words: &mut [u64]) {
        let (features, pairs_here) = words.split_at_mut(self.features());
        let (mut attacks, mut pairs) = ([0; ATTACK_WORDS], [0; PAIRS]);
        if self.has_attacks || self.has_pairs {
            slice_attacks(row, &mut attacks, &mut pairs);
        }
        let mut features = features.iter_mut();
        let mut push = |word| *features.next().expect("room for the features") = word;
        row[..BOARDS].iter().copied().for_each(&mut push);
        let (flags, numbers) = row[BOARDS..].split_at(FLAGS);
        flags
            .iter()
            .map(|&flag| filled(flag != 0))
            .for_each(&mut push);
        push(u64::MAX);
        bits_of(numbers[0], RULE50_BITS).for_each(&mut push);
        if self.has_attacks {
            attacks.into_iter().for_each(&mut push);
        }
        if self.has_ratings {
            for &rating in &row[RATINGS..RATINGS + 2] {
                let is_known = rating as i64 > 0;
                push(filled(!is_known));
                push(filled(is_known));
                let rating = if is_known {
                    rating.min(STRONGEST as u64)
                } else {
                    0
                };
                bits_of(rating, RATING_BITS).for_each(&mut push);
            }
        }
        features.for_each(|word| *word = 0);
        let pairs = pairs_here.iter_mut().zip(pairs);
        pairs.for_each(|(word, pair)| *word = pair);
    }

    /// Returns the weights [features, width] that project the features to tokens.
    pub fn project(self, weights: &Weights, embedding: &Embedding) -> Tensor {
        let project = &weights[embedding.project.weight].tr();
        let row = |at: usize| project.narrow(0, at as i64, 1);
        let bias = embedding.project.bias.map(|bias| &weights[bias]);
        let ones = row(FEATURES as usize - 1);
        let mut parts = vec![
            project.narrow(0, 0, (BOARDS + FLAGS) as i64),
            bias.map_or_else(|| ones.shallow_clone(), |bias| &ones + bias),
            binary(&(row(RULE50_PLANE as usize) * RULE50_SCALE), RULE50_BITS),
        ];
        if let Some(attacks) = embedding.attacks {
            let attacks = &weights[attacks].tr();
            let counts = (0..COUNTS).map(|kind| binary(&attacks.narrow(0, kind, 1), COUNT_BITS));
            parts.extend(counts);
            parts.push(attacks.narrow(0, COUNTS, ATTACKS as i64 - COUNTS));
        }
        if let Some(ratings) = &embedding.ratings {
            for player in &ratings.players {
                let [unknown, weak, strong] = [player.unknown, player.weak, player.strong]
                    .map(|slot| weights[slot].unsqueeze(0));
                let point = (strong - &weak) / STRONGEST as f64;
                parts.extend([unknown, weak, binary(&point, RATING_BITS)]);
            }
        }
        let known: i64 = parts.iter().map(|part| part.size()[0]).sum();
        let padding = [self.features() as i64 - known, project.size()[1]];
        parts.push(Tensor::zeros(padding, (project.kind(), project.device())));
        Tensor::cat(&parts, 0)
    }
}

/// Returns a word that is set on all squares, or on none.
fn filled(is_set: bool) -> u64 {
    if is_set { u64::MAX } else { 0 }
}

/// Returns the lowest bits of a number as words. If the number has more bits, all words are set.
fn bits_of(number: u64, count: usize) -> impl Iterator<Item = u64> {
    let number = number.min((1 << count) - 1);
    (0..count).map(move |bit| filled(number >> bit & 1 == 1))
}

/// Returns the weights [count, width] of a number's bits from the weights of the number, [1,
/// width].
fn binary(weight: &Tensor, count: usize) -> Tensor {
    let powers: Vec<f32> = (0..count).map(|bit| (1 << bit) as f32).collect();
    Tensor::from_slice(&powers).unsqueeze(1) * weight
}

/// Returns the bits of each byte, lowest bit first, f32 [256, 8].
pub(super) fn bits() -> Tensor {
    let bits = (0..256).flat_map(|byte| (0..8).map(move |bit| (byte >> bit & 1) as f32));
    Tensor::from_slice(&bits.collect::<Vec<f32>>()).view([256, 8])
}
