//! Self-attention along a run of tokens.

use super::kv_cache::KeyValues;
use super::rotary::Rotations;
use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Weights};
use crate::network::size::Part;
use tch::Tensor;

/// Which tokens each sees.
#[derive(Debug)]
pub(in crate::network) enum Seen {
    /// Itself and those before it; there are no earlier ones in a cache.
    Before,
    /// All: one new token a row sees itself and those in the cache.
    All,
    /// Those of S where this bool tensor, [B, 1, T, S] or less, says so.
    These(Tensor),
}

/// Multi-head attention of tokens [B, T, width] to each other.
#[derive(Debug)]
pub(in crate::network) struct SelfAttention {
    heads: i64,
    head_width: i64,
    /// Queries, keys and values.
    projection: Linear,
    output: Linear,
}

impl SelfAttention {
    /// Adds the block's parameters, whose output starts smaller by `gain`. Counts are those
    /// of a token in a full run of `context`, where it sees half of the others.
    pub fn build(
        builder: &mut Builder,
        width: i64,
        heads: i64,
        context: i64,
        gain: f64,
    ) -> SelfAttention {
        let dense = |output| Dense {
            rows: 1,
            ..Dense::per_token(width, output).without_bias()
        };
        // Two products with each token that is seen.
        builder.count_macs(context * width);
        SelfAttention {
            heads,
            head_width: width / heads,
            projection: builder.linear("qkv", dense(3 * width), Part::Main),
            output: builder.linear("output", dense(width).with_gain(gain), Part::Main),
        }
    }

    /// What each token learns of those that it sees. `past` holds the keys and values of
    /// this layer's earlier tokens and takes those of the new ones.
    pub fn forward(
        &self,
        weights: &Weights,
        x: &Tensor,
        rotations: Option<&Rotations>,
        seen: &Seen,
        past: Option<(&mut dyn KeyValues, usize)>,
    ) -> Tensor {
        let joint = self.projection.forward(weights, x);
        let parts = joint
            .unflatten(-1, [3, self.heads, self.head_width])
            .permute([2, 0, 3, 1, 4])
            .unbind(0);
        let [query, key, value]: [Tensor; 3] = parts.try_into().expect("three were joined");
        let (query, key) = match rotations {
            Some(rotations) => (rotations.turn(&query), rotations.turn(&key)),
            None => (query, key),
        };
        let (key, value) = match past {
            Some((past, layer)) => past.extend(layer, &key, &value),
            None => (key, value),
        };
        let (mask, is_causal) = match seen {
            Seen::Before => (None, true),
            Seen::All => (None, false),
            Seen::These(mask) => (Some(mask), false),
        };
        let learned = Tensor::scaled_dot_product_attention(
            &query, &key, &value, mask, 0.0, is_causal, None, false,
        );
        self.output
            .forward(weights, &learned.transpose(1, 2).flatten(2, 3))
    }
}
