//! The heads for policies, values and moves left.

use crate::encode::{POLICY_SIZE, from_square_to_square};
use crate::network::config::chessformer::ModelConfig;
use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Weights};
use crate::network::size::Part;
use crate::torch::fused::{self, Block as _};
use shakmaty::Role;
use tch::{Kind, Tensor};

/// The promotions that policy entries express with a suffix: all except promotion to a knight.
const PROMOTIONS: [Role; 3] = [Role::Queen, Role::Rook, Role::Bishop];

/// Number of features per square that the moves-left head reads.
pub(crate) const MOVES_LEFT_FEATURES: i64 = 8;

/// Number of plies per unit of the moves-left head's last layer.
pub(crate) const MOVES_LEFT_SCALE: f64 = 20.0;

/// The gradient that is added to the softplus of the moves-left head. The softplus's own gradient
/// vanishes far below zero, where training could not recover.
const MOVES_LEFT_LEAK: f64 = 0.05;

/// Returns the index of each of the 1858 policy entries among the logits: the 64 · 64 pairs of
/// squares, followed by the 8 · 8 · 3 promotions.
pub(crate) fn policy_gather() -> Vec<i64> {
    (0..POLICY_SIZE)
        .filter_map(from_square_to_square)
        .map(|(from, to, promotion)| {
            let piece = promotion.and_then(|role| PROMOTIONS.iter().position(|&p| p == role));
            let promotion = |piece| 64 * 64 + ((from % 8) * 8 + to % 8) * 3 + piece;
            piece.map_or(from * 64 + to, promotion)
        })
        .map(|place| place as i64)
        .collect()
}

/// A policy head: attention from a move's origin square to its destination square.
#[derive(Debug)]
pub(in crate::network) struct PolicyHead {
    width: i64,
    pub query: Linear,
    pub key: Linear,
    pub promotion: Linear,
}

impl PolicyHead {
    pub fn build(
        builder: &mut Builder,
        name: &str,
        config: &ModelConfig,
        part: Part,
    ) -> PolicyHead {
        let width = config.width;
        builder.scope(name, |builder| {
            builder.count_macs(64 * 64 * width);
            let square = Dense::per_token(width, width);
            let promotion = Dense::per_token(width, PROMOTIONS.len() as i64)
                .with_rows(8)
                .without_bias()
                .outer();
            PolicyHead {
                width,
                query: builder.linear("query", square, part),
                key: builder.linear("key", square, part),
                promotion: builder.linear("promotion", promotion, Part::Other),
            }
        })
    }

    /// Returns logits f32 [B, 1858] from policy embeddings [B, 64, width]. `gather` is the tensor
    /// of [`policy_gather`].
    pub fn forward(&self, weights: &Weights, x: &Tensor, gather: &Tensor) -> Tensor {
        let has_kernels = x.requires_grad() || weights.are_packed();
        if has_kernels && fused::is_available(x, &[self.width]) {
            let head = fused::Policy {
                query: self.query.fused(weights),
                key: self.key.fused(weights),
                promotion: &weights[self.promotion.weight],
                places: gather,
            };
            let (slot, inputs) = (self.query.weight, [self.width]);
            return match weights.packed("policy", slot, &inputs, |int8| head.pack(int8)) {
                Some(packed) => head.infer(x, &packed.weights, packed.int8),
                None => head.forward(x),
            };
        }
        let query = self.query.forward(weights, x);
        let key = self.key.forward(weights, x);
        let scale = 1.0 / (self.width as f64).sqrt();
        let pairs = query.bmm(&key.transpose(1, 2)) * scale;
        let last_rank = key.narrow(1, 56, 8);
        let offsets = self.promotion.forward(weights, &last_rank).unsqueeze(1);
        let promotions = pairs.narrow(1, 48, 8).narrow(2, 56, 8).unsqueeze(3) + offsets;
        Tensor::cat(&[pairs.flatten(1, 2), promotions.flatten(1, 3)], 1)
            .index_select(1, gather)
            .to_kind(Kind::Float)
    }
}

/// Layers that summarise the board as one vector for a head.
#[derive(Debug)]
pub(super) struct Summary {
    pub squares: Linear,
    pub hidden: Linear,
}

impl Summary {
    fn build(builder: &mut Builder, width: i64, features: i64, hidden: i64) -> Summary {
        let squares = Dense::per_token(width, features);
        let dense = Dense::per_board(64 * features, hidden);
        Summary {
            squares: builder.linear("squares", squares, Part::Other),
            hidden: builder.linear("hidden", dense, Part::Other),
        }
    }

    /// Returns the summary [B, hidden]. `squares` are the squares' features [B, 64, features] after
    /// mish.
    fn forward(&self, weights: &Weights, squares: &Tensor) -> Tensor {
        let squares = squares.flatten(1, 2);
        self.hidden.forward_mish(weights, &squares)
    }
}

/// The head for win, draw and loss.
#[derive(Debug)]
pub(super) struct ResultHead {
    pub summary: Summary,
    pub wdl: Linear,
}

impl ResultHead {
    pub fn build(builder: &mut Builder, config: &ModelConfig) -> ResultHead {
        builder.scope("result", |builder| ResultHead {
            summary: Summary::build(
                builder,
                config.width,
                config.value_features,
                config.value_hidden,
            ),
            wdl: builder.linear("wdl", Dense::per_board(config.value_hidden, 3), Part::Other),
        })
    }

    /// Returns logits f32 [B, 3] from the squares' features after mish.
    pub fn forward(&self, weights: &Weights, squares: &Tensor) -> Tensor {
        let summary = self.summary.forward(weights, squares);
        self.wdl.forward(weights, &summary).to_kind(Kind::Float)
    }
}

/// A head that predicts a reward as a scalar and as a distribution, and the scalar's expected
/// error.
#[derive(Debug)]
pub(super) struct RewardHead {
    pub summary: Summary,
    pub scalar: Linear,
    categorical: Linear,
    pub error: Linear,
}

impl RewardHead {
    pub fn build(builder: &mut Builder, name: &str, config: &ModelConfig) -> RewardHead {
        let hidden = config.value_hidden;
        let dense = |output| Dense::per_board(hidden, output);
        builder.scope(name, |builder| RewardHead {
            summary: Summary::build(builder, config.width, config.value_features, hidden),
            scalar: builder.linear("scalar", dense(1), Part::Other),
            categorical: builder.linear("categorical", dense(config.buckets), Part::Other),
            error: builder.linear("error", dense(1), Part::Other),
        })
    }

    /// Returns those outputs that are `wanted`: the reward, f32 `[B]`, its expected squared error,
    /// f32 `[B]`, and the logits of the reward's buckets, f32 [B, buckets].
    pub fn forward(
        &self,
        weights: &Weights,
        squares: &Tensor,
        wanted: [bool; 3],
    ) -> [Option<Tensor>; 3] {
        if wanted == [false; 3] {
            return [None, None, None];
        }
        let summary = self.summary.forward(weights, squares);
        let output = |layer: &Linear| layer.forward(weights, &summary).to_kind(Kind::Float);
        let single = |layer: &Linear| output(layer).squeeze_dim(1);
        let [scalar, error, categorical] = wanted;
        [
            scalar.then(|| single(&self.scalar).tanh()),
            error.then(|| single(&self.error).sigmoid()),
            categorical.then(|| output(&self.categorical)),
        ]
    }
}

/// Returns the bucket, i64 `[B]`, that contains each reward f32 `[B]`. The buckets divide −1…1
/// evenly.
pub fn bucket_of(reward: &Tensor, buckets: i64) -> Tensor {
    let scaled = (reward + 1.0) * (buckets as f64 / 2.0);
    scaled
        .floor()
        .clamp(0.0, (buckets - 1) as f64)
        .to_kind(Kind::Int64)
}

/// The head for the plies to the end of the game.
#[derive(Debug)]
pub(super) struct MovesLeftHead {
    pub summary: Summary,
    pub plies: Linear,
}

impl MovesLeftHead {
    pub fn build(builder: &mut Builder, config: &ModelConfig) -> MovesLeftHead {
        let hidden = config.value_hidden;
        builder.scope("moves_left", |builder| MovesLeftHead {
            summary: Summary::build(builder, config.width, MOVES_LEFT_FEATURES, hidden),
            plies: builder.linear("plies", Dense::per_board(hidden, 1), Part::Other),
        })
    }

    /// Returns the number of plies, f32 `[B]`, which is never negative.
    pub fn forward(&self, weights: &Weights, squares: &Tensor) -> Tensor {
        let summary = self.summary.forward(weights, squares);
        let plies = self.plies.forward(weights, &summary).squeeze_dim(1);
        let plies = plies.to_kind(Kind::Float);
        let positive = plies.softplus();
        if !plies.requires_grad() {
            return positive * MOVES_LEFT_SCALE;
        }
        // The leak is zero and has a gradient.
        let leak = (&plies - plies.detach()) * MOVES_LEFT_LEAK;
        (positive + leak) * MOVES_LEFT_SCALE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_entry_has_its_own_logit() {
        let gather = policy_gather();
        assert_eq!(gather.len(), POLICY_SIZE);
        assert!(
            gather
                .iter()
                .all(|&place| (0..64 * 64 + 192).contains(&place))
        );
        let mut distinct = gather.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), POLICY_SIZE);
        // The entries are a7a8 without a suffix, a7a8q and b7a8q.
        assert_eq!(gather[1401], 48 * 64 + 56);
        assert_eq!(gather[1792], 64 * 64);
        assert_eq!(gather[1798], 64 * 64 + 8 * 3);
    }

    #[test]
    fn buckets_cover_the_rewards() {
        let rewards = Tensor::from_slice(&[-1.0f32, -0.999, 0.0, 0.99, 1.0]);
        let buckets: Vec<i64> = bucket_of(&rewards, 32).try_into().unwrap();
        assert_eq!(buckets, [0, 0, 16, 31, 31]);
    }
}
