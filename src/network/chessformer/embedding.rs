//! Embedding of bitboard rows into tokens.

use super::attacks;
use super::layers::{Gains, feed_forward};
use super::ratings::RatingEmbedding;
use crate::encode::{BOARDS, PLANES_PER_BOARD};
use crate::network::bitboards;
use crate::network::config::chessformer::{EmbeddingConfig, ModelConfig};
use crate::network::encoder::FeedForward;
use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Initial, Slot, Weights};
use crate::network::size::Part;
use crate::network::taps::Tap;
use crate::torch::fused::{self, Block as _};
use tch::Tensor;

/// Features of a square before the embedding: Lc0's 112 input planes.
pub(super) const FEATURES: i64 = 112;

/// The plane that holds the plies since the last capture or pawn move. In Lc0's input it is the
/// plain count; as in the paper, the network multiplies it by [`RULE50_SCALE`].
pub(super) const RULE50_PLANE: i64 = BOARDS as i64 + 5;
pub(super) const RULE50_SCALE: f64 = 0.01;

/// Initial scale of the first projection. Only a dozen of a square's features are nonzero. Xavier's
/// scale assumes dense inputs and would make the initial tokens too short for the first attention
/// to distinguish pieces.
const INITIAL_GAIN: f64 = 3.0;

/// Number of piece planes of the current position, which the global embedding reads.
pub(super) const PIECES: i64 = PLANES_PER_BOARD as i64 - 1;

/// Returns the 112 planes of rows i64 [B, 110 or more], as [B, 64, 112] in the dtype of `like`.
/// `shifts` is the tensor from [`bitboards::shifts`].
pub(super) fn features(rows: &Tensor, shifts: &Tensor, like: &Tensor) -> Tensor {
    let boards = BOARDS as i64;
    let pieces = bitboards::squares(&rows.narrow(1, 0, boards), shifts, like);
    let castling = rows.narrow(1, boards, 4).ne(0).type_as(like);
    let black_to_move = rows.narrow(1, boards + 4, 1).type_as(like);
    let rule50 = rows.narrow(1, boards + 5, 1).type_as(like) * RULE50_SCALE;
    let zeros = black_to_move.zeros_like();
    let ones = black_to_move.ones_like();
    let scalars = Tensor::cat(&[castling, black_to_move, rule50, zeros, ones], 1)
        .unsqueeze(1)
        .expand([-1, 64, -1], false);
    Tensor::cat(&[pieces, scalars], 2)
}

/// Returns the features [B, 64, 112] from planes [B, 112, 8, 8] as Lc0 feeds them to its networks
/// in input format 1. Lc0's plane for the 50-move rule contains the unscaled number of plies, so
/// this function scales it.
pub(super) fn features_of_planes(planes: &Tensor) -> Tensor {
    let planes = planes.flatten(2, 3);
    let scaled = planes.narrow(1, RULE50_PLANE, 1) * RULE50_SCALE;
    let (before, after) = (RULE50_PLANE, FEATURES - RULE50_PLANE - 1);
    let parts = [
        planes.narrow(1, 0, before),
        scaled,
        planes.narrow(1, RULE50_PLANE + 1, after),
    ];
    Tensor::cat(&parts, 1).transpose(1, 2)
}

/// Embeds features [B, 64, 112] as tokens [B, 64, width].
#[derive(Debug)]
pub(super) struct Embedding {
    pub board: Option<Linear>,
    pub project: Linear,
    /// The part of the projection that reads attacks, [width, ATTACKS].
    pub attacks: Option<Slot>,
    pub ratings: Option<RatingEmbedding>,
    pub multiply: Slot,
    pub add: Slot,
    pub feed_forward: Option<FeedForward>,
}

impl Embedding {
    pub fn build(builder: &mut Builder, config: &ModelConfig, gains: Gains) -> Embedding {
        builder.scope("embedding", |builder| {
            let extra = match config.embedding {
                EmbeddingConfig::Token => 0,
                EmbeddingConfig::Global { board, .. } => board,
            };
            let board = (extra > 0).then(|| {
                let dense = Dense::per_board(64 * PIECES, 64 * extra);
                builder.linear("board", dense, Part::Other)
            });
            let dense = Dense::per_token(FEATURES + extra, config.width).with_gain(INITIAL_GAIN);
            let project = builder.linear("project", dense, Part::Other);
            let attacks = config.attacks.then(|| {
                let dense = Dense::per_token(attacks::ATTACKS, config.width).without_bias();
                builder.linear("attacks", dense, Part::Other).weight
            });
            let ratings = config
                .elo
                .then(|| RatingEmbedding::build(builder, config.width));
            let shape = [64, config.width];
            let multiply = builder.add("multiply", &shape, Initial::Ones);
            let add = builder.add("add", &shape, Initial::Zeros);
            let feed_forward = match config.embedding {
                EmbeddingConfig::Token => None,
                EmbeddingConfig::Global {
                    feed_forward: wide, ..
                } => Some(builder.scope("feed_forward", |builder| {
                    feed_forward(builder, config, wide, gains)
                })),
            };
            Embedding {
                board,
                project,
                attacks,
                ratings,
                multiply,
                add,
                feed_forward,
            }
        })
    }

    /// Embeds features. `attacked` are the attack features, [B, 64, ATTACKS], and must be given if
    /// the network reads them. `ratings` [B, 2] are the mover's and the opponent's ratings. If they
    /// are `None`, both ratings are unknown.
    pub fn forward(
        &self,
        weights: &Weights,
        features: &Tensor,
        attacked: Option<&Tensor>,
        ratings: Option<&Tensor>,
    ) -> Tensor {
        let seen = self.board.as_ref().map(|board| {
            let pieces = features.narrow(2, 0, PIECES).flatten(1, 2);
            let extra = weights[board.weight].size()[0] / 64;
            board.forward(weights, &pieces).view([-1, 64, extra])
        });
        let inputs: Vec<&Tensor> = [Some(features), seen.as_ref(), attacked]
            .into_iter()
            .flatten()
            .collect();
        let project = &weights[self.project.weight];
        let weight = match self.attacks {
            Some(attacks) => weights.made("project and attacks", attacks, || {
                Tensor::cat(&[project, &weights[attacks]], 1)
            }),
            None => project.shallow_clone(),
        };
        let input = match inputs.as_slice() {
            [features] => features.shallow_clone(),
            several => Tensor::cat(several, 2),
        };
        let bias = self.project.bias.map(|bias| &weights[bias]);
        self.place(weights, input.linear(&weight, bias), ratings)
    }

    /// Embeds rows i64 [B, 110 or more] with fused operators. `attacked` are the attack features,
    /// u8 [B, 64, ATTACKS], and `ratings` are as in [`Embedding::forward`]. Returns `None` if no
    /// fused operator supports this embedding.
    pub fn forward_fused(
        &self,
        weights: &Weights,
        rows: &Tensor,
        attacked: Option<&Tensor>,
        ratings: Option<&Tensor>,
    ) -> Option<Tensor> {
        let project = &weights[self.project.weight];
        let width = project.size()[0];
        let is_whole = self.ratings.is_none()
            && (project.requires_grad() || weights.are_packed())
            && fused::is_available(project, &[width]);
        let reads_features = weights.are_frozen() && fused::is_available(project, &[]);
        if self.board.is_some() || !is_whole && !reads_features {
            return None;
        }
        let is_padded = is_whole || weights.are_packed();
        let weight = weights.made("project", self.project.weight, || {
            self.of_features(weights, is_padded)
        });
        let attacked = attacked.filter(|_| self.attacks.is_some());
        let features = fused::features(rows, attacked, &weight);
        if !is_whole {
            let bias = self.project.bias.map(|bias| &weights[bias]);
            let projected = features.linear(&weight, bias);
            return Some(self.place(weights, projected, ratings));
        }
        let embedding = fused::Embedding {
            dense: fused::Dense {
                weight: &weight,
                ..self.project.fused(weights)
            },
            multiply: &weights[self.multiply],
            add: &weights[self.add],
        };
        let tokens = match weights.are_packed() {
            true => {
                let pack = || embedding.pack(false);
                let packed = weights.made("embedding", self.project.weight, pack);
                embedding.infer(&features, &packed, false)
            }
            false => embedding.forward(&features),
        };
        Some(self.finish(weights, tokens))
    }

    /// Returns the joint weights of the projection and of attacks. If `is_padded`, zeros extend the
    /// inputs to a number that the kernels accept.
    fn of_features(&self, weights: &Weights, is_padded: bool) -> Tensor {
        let project = &weights[self.project.weight];
        let [width, features] = project.size()[..] else {
            unreachable!("dense layers have matrices")
        };
        let attacks = self.attacks.map(|attacks| &weights[attacks]);
        let known = features + attacks.map_or(0, |attacks| attacks.size()[1]);
        let missing = match is_padded {
            true => (known as u64).next_multiple_of(fused::MULTIPLE as u64) as i64 - known,
            false => 0,
        };
        let zeros = Tensor::zeros([width, missing], (project.kind(), project.device()));
        let parts: Vec<&Tensor> = [Some(project), attacks, Some(&zeros)]
            .into_iter()
            .flatten()
            .collect();
        Tensor::cat(&parts, 1)
    }

    /// Completes projected features to tokens.
    fn place(&self, weights: &Weights, projected: Tensor, ratings: Option<&Tensor>) -> Tensor {
        let projected = match (&self.ratings, ratings) {
            (Some(own), Some(ratings)) => projected + own.forward(weights, ratings),
            (Some(own), None) => projected + own.unknown(weights),
            (None, _) => projected,
        };
        let placed = projected * &weights[self.multiply] + &weights[self.add];
        self.finish(weights, placed)
    }

    fn finish(&self, weights: &Weights, placed: Tensor) -> Tensor {
        match &self.feed_forward {
            None => placed,
            Some(block) => block.forward(weights, &placed, &Tap::default()),
        }
    }
}
