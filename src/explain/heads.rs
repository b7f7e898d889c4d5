//! Classifies heads by comparing their attention with chess relations.

use super::ExplainError;
use super::evaluator::{Evaluator, floats};
use super::relations::Relation;
use crate::chess::Game;
use serde::Serialize;
use shakmaty::Square;
use tch::{Kind, Tensor};

/// Positions tapped together: their maps are all in memory.
const BATCH: usize = 8;

/// One attention head.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    /// Its layer, from 1.
    pub layer: usize,
    /// Its number in the layer, from 1.
    pub head: usize,
    /// Its attention along each relation; empty without a sample.
    pub relations: Vec<RelationScore>,
    /// The network's outputs without it; omitted if that takes minutes.
    pub ablation: Option<Ablation>,
}

/// A head's attention along one relation, over the sample.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RelationScore {
    /// The relation.
    pub relation: Relation,
    /// Share of the attention that falls on related squares, over the squares that
    /// have any.
    pub share: f32,
    /// The share that attention spread evenly would have.
    pub chance: f32,
    /// `(share − chance) / (1 − chance)`: 0 is chance, 1 all of the attention.
    pub score: f32,
}

/// Changes without a head: its part of the layer's output is set to zero.
#[derive(Clone, Debug, Serialize)]
pub struct Ablation {
    /// Expected result of the mover without the head.
    pub q: f32,
    /// Probability of the explained move without it.
    pub prior: f32,
    /// Kullback–Leibler divergence of the policy from the one without it, in nats.
    pub divergence: f32,
    /// The most probable move without it, in UCI notation.
    pub first: String,
    /// Changes over the sample.
    pub sample: Option<SampleAblation>,
}

/// Changes without a head, over positions of the sample.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SampleAblation {
    /// Positions that were evaluated.
    pub positions: usize,
    /// Mean divergence of the policy from the one without the head, in nats.
    pub divergence: f32,
    /// Share of the positions in which another move is the most probable.
    pub changed: f32,
}

/// Sums over positions of the attention on related squares.
#[derive(Default)]
struct Tally {
    /// Attention of each layer `[heads]`, summed over the squares that look.
    attention: Vec<Tensor>,
    /// Related squares.
    related: f64,
    /// Squares that have any.
    looking: f64,
}

/// Scores all heads over a sample; empty for networks without attention.
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

/// The attention [B, heads, 64, 64] of each layer, by the squares that the network sees.
fn attention(evaluator: &Evaluator, games: &[Game]) -> Vec<Tensor> {
    let mut taps = evaluator.taps(games);
    let names = (0..).map(|layer| format!("encoder.{layer}.attention.weights"));
    names.map_while(|name| taps.remove(&name)).collect()
}

/// Marks related squares in each game, f32 [B, 64, 64], likewise.
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

    /// The score of a head whose attention on related squares sums to `attention`.
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
        // Each of the first 8 squares is related to two squares of its own.
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
