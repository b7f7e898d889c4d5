//! Describes attention heads by comparing their attention with chess relations.

use super::ExplainError;
use super::evaluator::{Evaluator, floats};
use super::relations::Relation;
use crate::chess::Game;
use serde::Serialize;
use shakmaty::Square;
use tch::{Kind, Tensor};

/// Number of positions that are evaluated together. All their attention maps are in memory at the
/// same time.
const BATCH: usize = 8;

/// One attention head.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    /// The head's layer, numbered from 1.
    pub layer: usize,
    /// The head's number in the layer, starting from 1.
    pub head: usize,
    /// The head's attention along each relation. Empty without a sample.
    pub relations: Vec<RelationScore>,
    /// The network's outputs without the head. Absent if computing them would take minutes.
    pub ablation: Option<Ablation>,
}

/// A head's attention along one relation, over the sample.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RelationScore {
    /// The relation.
    pub relation: Relation,
    /// Fraction of the attention that falls on related squares, averaged over the squares that have
    /// related squares.
    pub share: f32,
    /// The fraction that uniform attention would put on related squares.
    pub chance: f32,
    /// `(share − chance) / (1 − chance)`: 0 means chance, and 1 means that all attention falls on
    /// related squares.
    pub score: f32,
}

/// The changes that the ablation of a head causes. The ablation sets the head's part of the layer's
/// output to zero.
#[derive(Clone, Debug, Serialize)]
pub struct Ablation {
    /// The expected result for the side to move without the head.
    pub q: f32,
    /// The probability of the explained move without the head.
    pub prior: f32,
    /// Kullback–Leibler divergence of the policy from the policy without the head, in nats.
    pub divergence: f32,
    /// The most probable move without the head, in UCI notation.
    pub first: String,
    /// Changes over the sample.
    pub sample: Option<SampleAblation>,
}

/// The changes that the ablation of a head causes over positions of the sample.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SampleAblation {
    /// The number of positions evaluated.
    pub positions: usize,
    /// Mean divergence of the policy from the policy without the head, in nats.
    pub divergence: f32,
    /// Fraction of the positions in which the most probable move changes.
    pub changed: f32,
}

/// Sums, over positions, of the attention that falls on related squares.
#[derive(Default)]
struct Tally {
    /// The attention of each layer `[heads]`, summed over the attending squares.
    attention: Vec<Tensor>,
    /// Number of pairs of related squares.
    related: f64,
    /// Number of squares that have related squares.
    looking: f64,
}

/// Scores all heads over a sample. The result is empty for networks without attention.
pub(super) fn score(evaluator: &Evaluator, sample: &[Game]) -> Result<Vec<Head>, ExplainError> {
    let _guard = tch::no_grad_guard();
    let mut tallies: Vec<Tally> = Relation::ALL.iter().map(|_| Tally::default()).collect();
    for games in sample.chunks(BATCH) {
        let layers = attention(evaluator, games);
        for (tally, relation) in tallies.iter_mut().zip(Relation::ALL) {
            tally.add(&layers, &masks(evaluator, games, relation));
        }
    }
    let sums: Vec<Vec<Vec<f32>>> = tallies
        .iter()
        .map(|tally| tally.attention.iter().map(floats).collect())
        .collect();
    let layers = sums.first().map_or(0, Vec::len);
    let mut heads = Vec::new();
    for layer in 0..layers {
        for head in 0..sums[0][layer].len() {
            let relations = tallies.iter().zip(&sums).zip(Relation::ALL);
            let relations =
                relations.map(|((tally, sums), relation)| tally.score(relation, sums[layer][head]));
            heads.push(Head {
                layer: layer + 1,
                head: head + 1,
                relations: relations.collect(),
                ablation: None,
            });
        }
    }
    Ok(heads)
}

/// Returns the attention weights [B, heads, 64, 64] of each layer, in the order of the squares that
/// the network sees.
fn attention(evaluator: &Evaluator, games: &[Game]) -> Vec<Tensor> {
    let mut taps = evaluator.taps(games);
    let names = (0..).map(|layer| format!("encoder.{layer}.attention.weights"));
    names.map_while(|name| taps.remove(&name)).collect()
}

/// Marks the related squares in each game, f32 [B, 64, 64], in the same order of squares.
fn masks(evaluator: &Evaluator, games: &[Game], relation: Relation) -> Tensor {
    let mut masks = vec![0f32; games.len() * 64 * 64];
    for (game, mask) in games.iter().zip(masks.chunks_exact_mut(64 * 64)) {
        let seen = evaluator.seen(game);
        for square in Square::ALL {
            for other in relation.squares(game.position(), square) {
                mask[64 * seen[usize::from(square)] + seen[usize::from(other)]] = 1.0;
            }
        }
    }
    Tensor::from_slice(&masks).view([-1, 64, 64])
}

impl Tally {
    fn add(&mut self, layers: &[Tensor], mask: &Tensor) {
        let of_squares = mask.sum_dim_intlist([2i64].as_slice(), false, None::<Kind>);
        self.related += of_squares.sum(Kind::Double).double_value(&[]);
        self.looking += of_squares.gt(0).sum(Kind::Double).double_value(&[]);
        let sums = layers.iter().map(|weights| {
            let on_related = weights * mask.unsqueeze(1);
            on_related.sum_dim_intlist([0i64, 2, 3].as_slice(), false, Kind::Double)
        });
        if self.attention.is_empty() {
            self.attention = sums.collect();
        } else {
            for (total, sum) in self.attention.iter_mut().zip(sums) {
                *total += sum;
            }
        }
    }

    /// Returns the score of a head, where `attention` is the sum of its attention on related
    /// squares.
    fn score(&self, relation: Relation, attention: f32) -> RelationScore {
        let looking = self.looking.max(1.0);
        let share = f64::from(attention) / looking;
        let chance = self.related / looking / 64.0;
        RelationScore {
            relation,
            share: share as f32,
            chance: chance as f32,
            score: ((share - chance) / (1.0 - chance)) as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Device;

    #[test]
    fn attention_at_random_scores_nothing_and_attention_on_the_related_all() {
        // Each of the first 8 squares is related to two squares that no other square is related to.
        let mask = Tensor::zeros([1, 64, 64], (Kind::Float, Device::Cpu));
        for square in 0..8 {
            let _ = mask.get(0).get(square).narrow(0, 2 * square, 2).fill_(1.0);
        }
        let even = Tensor::full([1, 1, 64, 64], 1.0 / 64.0, (Kind::Float, Device::Cpu));
        let related = mask.unsqueeze(1) / 2.0;
        let mut tally = Tally::default();
        for _ in 0..3 {
            tally.add(&[Tensor::cat(&[&even, &related], 1)], &mask);
        }
        let sums = floats(&tally.attention[0]);
        for (sum, share, expected) in [(sums[0], 2.0 / 64.0, 0.0), (sums[1], 1.0, 1.0)] {
            let found = tally.score(Relation::Identity, sum);
            assert!((found.chance - 2.0 / 64.0).abs() < 1e-6);
            assert!((found.share - share).abs() < 1e-6);
            assert!((found.score - expected).abs() < 1e-6);
        }
    }
}
