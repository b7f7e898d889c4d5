//! Self-attention along a token sequence.

use super::kv_cache::KeyValues;
use super::rotary::{Rotations, by_head};
use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Weights};
use crate::network::size::Part;
use crate::torch::fused;
use tch::{Device, Kind, Tensor};

/// The attention mask.
#[derive(Debug)]
pub(in crate::network) enum Mask {
    /// Each token attends to itself and to earlier tokens. Any cache must be empty.
    Causal,
    /// Each token attends to all tokens.
    Full,
    /// Each row has one new token, which attends to itself and to the cached tokens after the row's
    /// padding. The padding's lengths are i64 `[B]`.
    Cached(Option<Tensor>),
    /// Each token attends to the tokens that this bool tensor marks, [B, 1, T, S] or broadcastable,
    /// out of S.
    Given(Tensor),
}

/// Multi-head self-attention of tokens [B, T, width].
#[derive(Debug)]
pub(in crate::network) struct SelfAttention {
    heads: i64,
    /// Queries, keys and values.
    projection: Linear,
    output: Linear,
}

impl SelfAttention {
    /// Adds the block's parameters, with the initial output scaled by `gain`. The counted
    /// operations are the average per token of a full sequence of `context` tokens, in which a
    /// token attends to half of the sequence.
    pub fn build(
        builder: &mut Builder,
        width: i64,
        heads: i64,
        context: i64,
        gain: f64,
    ) -> SelfAttention {
        let dense = |output| Dense::per_token(width, output).with_rows(1).without_bias();
        // Each attended token takes part in two matrix multiplications.
        builder.count_macs(context * width);
        SelfAttention {
            heads,
            projection: builder.linear("qkv", dense(3 * width), Part::Main),
            output: builder.linear("output", dense(width).with_gain(gain), Part::Main),
        }
    }

    /// Attends to the tokens that the mask allows. `past` holds this layer's keys and values of
    /// earlier tokens, and the new ones are appended to it.
    pub fn forward(
        &self,
        weights: &Weights,
        x: &Tensor,
        rotations: Option<&Rotations>,
        mask: &Mask,
        past: Option<(&mut dyn KeyValues, usize)>,
    ) -> Tensor {
        let [query, key, value] = self.project(weights, x, rotations);
        let (key, value) = match past {
            Some((past, layer)) => past.extend(layer, &key, &value),
            None => (key, value),
        };
        let learned = match mask {
            Mask::Causal if query.requires_grad() && query.device() == Device::Cpu => {
                causal(&query, &key, &value)
            }
            Mask::Causal => attention(&query, &key, &value, None, true),
            Mask::Cached(padding)
                if weights.are_frozen() && fused::takes_cached_attention(&query) =>
            {
                fused::cached_attention(&query, [&key, &value], padding.as_ref())
            }
            Mask::Full | Mask::Cached(None) => attention(&query, &key, &value, None, false),
            Mask::Cached(Some(padding)) => {
                let mask = behind(padding, key.size()[2]);
                attention(&query, &key, &value, Some(&mask), false)
            }
            Mask::Given(mask) => attention(&query, &key, &value, Some(mask), false),
        };
        self.output
            .forward(weights, &learned.transpose(1, 2).flatten(2, 3))
    }

    /// Returns the causal attention weights, [B, heads, T, T], whose rows sum to 1. Earlier tokens
    /// in a cache are not included.
    pub fn weights(&self, weights: &Weights, x: &Tensor, rotations: Option<&Rotations>) -> Tensor {
        let [query, key, _] = self.project(weights, x, rotations);
        let (tokens, width) = (query.size()[2], query.size()[3]);
        let products = query.matmul(&key.transpose(2, 3)) / (width as f64).sqrt();
        let later = Tensor::ones([tokens, tokens], (Kind::Bool, x.device())).triu(1);
        products
            .masked_fill(&later, f64::NEG_INFINITY)
            .softmax(-1, None)
    }

    /// Returns queries, keys and values [B, heads, T, head width].
    fn project(&self, weights: &Weights, x: &Tensor, rotations: Option<&Rotations>) -> [Tensor; 3] {
        let joint = self.projection.forward(weights, x);
        match rotations {
            Some(rotations) => rotations.split(&joint, self.heads, weights.are_frozen()),
            None => by_head(&joint, self.heads),
        }
    }
}

/// Returns a mask, bool [B, 1, 1, columns], that marks the columns after the padding, whose lengths
/// are i64 `[B]`. The last column is always marked, since the softmax over no column is NaN.
fn behind(padding: &Tensor, columns: i64) -> Tensor {
    let places = Tensor::arange(columns, (Kind::Int64, padding.device()));
    let first = padding.clamp_max(columns - 1).view([-1, 1, 1, 1]);
    places.view([1, 1, 1, -1]).ge_tensor(&first)
}

/// Computes attention over [B, heads, T, head width] with libtorch's fused operator.
pub(in crate::network) fn attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Option<&Tensor>,
    is_causal: bool,
) -> Tensor {
    Tensor::scaled_dot_product_attention(query, key, value, mask, 0.0, is_causal, None, false)
}

/// Computes causal attention for training on the CPU. In bf16 at the length of games, the gradient
/// of libtorch's fused attention takes ten times as long and accounted for a third of a training
/// step.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_sees_its_game_in_the_cache() {
        tch::manual_seed(1);
        for (kind, tolerance) in [(Kind::Float, 1e-5), (Kind::BFloat16, 2e-2)] {
            for width in [16, 48] {
                let options = (Kind::Float, Device::Cpu);
                let random = |size: [i64; 4]| Tensor::randn(size, options).to_kind(kind);
                let query = random([3, 2, 1, width]);
                // A slice of a larger cache, as in practice.
                let [keys, values] = [(); 2].map(|()| random([3, 2, 20, width]).narrow(2, 0, 11));
                assert!(fused::takes_cached_attention(&query));
                for padding in [None, Some([0, 4, 10]), Some([0, 0, 15])] {
                    let padding = padding.map(|it: [i64; 3]| Tensor::from_slice(&it));
                    let found = fused::cached_attention(&query, [&keys, &values], padding.as_ref());
                    let mask = padding.map(|padding| behind(&padding, 11));
                    let expected = attention(&query, &keys, &values, mask.as_ref(), false);
                    let off = (found - expected).abs().max().double_value(&[]);
                    assert!(off < tolerance, "{kind:?} {width}: {off}");
                }
            }
        }
        // Other dtypes and shapes fall back to libtorch.
        let options = (Kind::Float, Device::Cpu);
        for size in [[1, 2, 2, 16], [1, 2, 1, 20], [1, 2, 1, 512]] {
            let query = Tensor::zeros(size, options);
            assert!(!fused::takes_cached_attention(&query), "{size:?}");
        }
    }

    #[test]
    #[should_panic(expected = "a cache of other sizes")]
    fn a_cache_of_other_games_is_refused() {
        let options = (Kind::Float, Device::Cpu);
        let query = Tensor::zeros([2, 2, 1, 16], options);
        let cache = Tensor::zeros([1, 2, 5, 16], options);
        let _ = fused::cached_attention(&query, [&cache, &cache], None);
    }
}
