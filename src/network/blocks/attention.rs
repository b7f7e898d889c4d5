//! Self-attention along a run of tokens.

use super::kv_cache::KeyValues;
use super::rotary::{Rotations, by_head};
use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Weights};
use crate::network::size::Part;
use tch::{Device, Tensor};

/// Which tokens each sees.
#[derive(Debug)]
pub(in crate::network) enum Mask {
    /// Itself and those before it; there are no earlier ones in a cache.
    Causal,
    /// All: one new token a row sees itself and those in the cache.
    Full,
    /// Those of S where this bool tensor, [B, 1, T, S] or less, says so.
    Given(Tensor),
}

/// Multi-head attention of tokens [B, T, width] to each other.
#[derive(Debug)]
pub(in crate::network) struct SelfAttention {
    heads: i64,
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
        mask: &Mask,
        past: Option<(&mut dyn KeyValues, usize)>,
    ) -> Tensor {
        let joint = self.projection.forward(weights, x);
        let [query, key, value] = match rotations {
            Some(rotations) => rotations.split(&joint, self.heads),
            None => by_head(&joint, self.heads),
        };
        let (key, value) = match past {
            Some((past, layer)) => past.extend(layer, &key, &value),
            None => (key, value),
        };
        let learned = match mask {
            Mask::Causal if query.requires_grad() && query.device() == Device::Cpu => {
                causal(&query, &key, &value)
            }
            Mask::Causal => attention(&query, &key, &value, None, true),
            Mask::Full => attention(&query, &key, &value, None, false),
            Mask::Given(mask) => attention(&query, &key, &value, Some(mask), false),
        };
        self.output
            .forward(weights, &learned.transpose(1, 2).flatten(2, 3))
    }
}

/// libtorch's fused attention of [B, heads, T, head width].
fn attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Tensor>,
    is_causal: bool,
) -> Tensor {
    Tensor::scaled_dot_product_attention(query, key, value, mask, 0.0, is_causal, None, false)
}

/// Causal attention to learn by on the CPU, where the gradient of libtorch's fused one
/// takes ten times as long in bf16 at the lengths of games: it was a third of a step.
fn causal(query: &Tensor, key: &Tensor, value: &Tensor) -> Tensor {
    let size = query.size();
    let (length, width) = (size[2], size[3]);
    let [query, key, value] = [query, key, value].map(|tensor| tensor.flatten(0, 1));
    let later = Tensor::full(
        [1, length, length],
        f64::NEG_INFINITY,
        (query.kind(), query.device()),
    );
    let scale = 1.0 / (width as f64).sqrt();
    later
        .triu(1)
        .baddbmm(&query, &key.transpose(1, 2), 1.0, scale)
        .softmax(-1, None)
        .bmm(&value)
        .view(&*size)
}
