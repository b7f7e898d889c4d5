//! Self-attention along a run of tokens.

use super::kv_cache::KvCache;
use super::rotary::Rotations;
use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Weights};
use crate::network::size::Part;
use tch::Tensor;

/// Multi-head attention of tokens [B, T, width] to each other, where a token sees itself
/// and those before it.
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

    /// What each token learns of those that it sees. `mask`, bool, of [B, 1, T, S] or
    /// less, says which of S tokens each may see; without one there are no earlier tokens, and
    /// each sees those before it. `cache` holds the keys and
    /// values of this layer's earlier tokens and takes those of the new ones.
    pub fn forward(
        &self,
        weights: &Weights,
        x: &Tensor,
        rotations: Option<&Rotations>,
        mask: Option<&Tensor>,
        cache: Option<(&mut KvCache, usize)>,
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
        let (key, value) = match cache {
            Some((cache, layer)) => cache.extend(layer, &key, &value),
            None => (key, value),
        };
        let is_causal = mask.is_none();
        let seen = Tensor::scaled_dot_product_attention(
            &query, &key, &value, mask, 0.0, is_causal, None, false,
        );
        self.output
            .forward(weights, &seen.transpose(1, 2).flatten(2, 3))
    }
}
