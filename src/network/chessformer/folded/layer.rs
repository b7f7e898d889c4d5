//! Encoder layers with folded weights.

use super::Target;
use crate::network::blocks::attention;
use crate::network::encoder::{
    Attention, EncoderLayer, FeedForward, Gab, PositionEncoding, Projection,
};
use crate::network::layers::{Activation, Linear, Norm};
use crate::network::parameters::Weights;
use crate::torch::fused;
use tch::Tensor;

/// A dense layer.
pub(super) struct FoldedLinear {
    /// [outputs, inputs].
    pub weight: Tensor,
    /// `[outputs]`.
    pub bias: Tensor,
}

impl FoldedLinear {
    pub fn new(weight: &Tensor, bias: &Tensor, target: Target) -> FoldedLinear {
        FoldedLinear {
            weight: target.put(weight),
            bias: target.put(bias),
        }
    }

    /// Applies the layer to x [n, inputs].
    pub fn forward(&self, x: &Tensor) -> Tensor {
        x.linear(&self.weight, Some(&self.bias))
    }
}

/// A norm that also adds the shift of the next block, which is the bias of that block's output.
struct FoldedNorm {
    width: i64,
    epsilon: f64,
    weight: Tensor,
    /// The norm's own bias plus the shift.
    bias: Option<Tensor>,
    /// The shift, if the norm has no bias.
    shift: Option<Tensor>,
}

impl FoldedNorm {
    fn new(weights: &Weights, norm: &Norm, shift: Option<&Tensor>, target: Target) -> FoldedNorm {
        let bias = norm.bias.map(|bias| &weights[bias]);
        let shifted =
            bias.map(|bias| shift.map_or_else(|| bias.shallow_clone(), |shift| bias + shift));
        FoldedNorm {
            width: norm.width,
            epsilon: norm.epsilon,
            weight: target.put(&weights[norm.weight]),
            shift: shift.filter(|_| shifted.is_none()).map(|it| target.put(it)),
            bias: shifted.map(|bias| target.put(&bias)),
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let Some(bias) = &self.bias else {
            let mut y = fused::rms_norm(x, &self.weight, self.epsilon);
            if let Some(shift) = &self.shift {
                let _ = y.g_add_(shift);
            }
            return y;
        };
        x.layer_norm(
            [self.width],
            Some(&self.weight),
            Some(bias),
            self.epsilon,
            true,
        )
    }
}

/// A feed-forward block. Its input tokens [n, width] include its shift.
pub(super) struct FoldedFeedForward {
    widen: FoldedLinear,
    activation: Activation,
    /// [wide, width].
    narrow: Tensor,
    norm: FoldedNorm,
}

impl FoldedFeedForward {
    /// Folds a block. `next` is the shift of the next block.
    pub fn new(
        weights: &Weights,
        block: &FeedForward,
        next: Option<&Tensor>,
        target: Target,
    ) -> FoldedFeedForward {
        let shift = feed_forward_shift(weights, block);
        let widen = &weights[block.widen.weight];
        let bias = bias(weights, &block.widen) - widen.mv(&shift);
        let narrow = &weights[block.narrow.weight] * block.residual_gain;
        FoldedFeedForward {
            widen: FoldedLinear::new(widen, &bias, target),
            activation: block.activation,
            narrow: target.put(&narrow.tr()),
            norm: FoldedNorm::new(weights, &block.norm, next, target),
        }
    }

    /// Applies the block, and overwrites the tokens.
    pub fn forward(&self, mut x: Tensor) -> Tensor {
        let hidden = activated(self.activation, self.widen.forward(&x));
        self.norm.forward(&x.addmm_(&hidden, &self.narrow))
    }
}

/// An encoder layer. Its input tokens [B · 64, width] include the shift of its attention.
pub(super) struct FoldedLayer {
    heads: i64,
    /// Maps tokens to queries, keys and values.
    project: FoldedLinear,
    /// Maps a board's tokens to its summary.
    summary: FoldedLinear,
    summary_norm: FoldedNorm,
    heads_of: FoldedLinear,
    heads_norm: FoldedNorm,
    activation: Activation,
    /// Width of the vector from which a head's biases are generated.
    wide: i64,
    /// [width, width].
    output: Tensor,
    norm: FoldedNorm,
    feed_forward: FoldedFeedForward,
}

impl FoldedLayer {
    /// Folds a layer. `next` is the shift of the next layer. Returns `None` unless the layer has
    /// GAB that reads features of the squares.
    pub fn new(
        weights: &Weights,
        layer: &EncoderLayer,
        next: Option<&Tensor>,
        target: Target,
    ) -> Option<FoldedLayer> {
        let EncoderLayer {
            attention,
            feed_forward,
        } = layer;
        let (PositionEncoding::Gab(gab), Projection::QueryKey { query_key, value }) =
            (&attention.position, &attention.projection)
        else {
            return None;
        };
        let shift = attention_shift(weights, attention);
        let project = Tensor::cat(&[&weights[query_key.weight], &weights[value.weight]], 0);
        let biases = Tensor::cat(&[bias(weights, query_key), bias(weights, value)], 0);
        let output = &weights[attention.output.weight] * attention.residual_gain;
        let after = feed_forward_shift(weights, feed_forward);
        let norm = |norm, shift| FoldedNorm::new(weights, norm, shift, target);
        Some(FoldedLayer {
            heads: attention.heads,
            project: FoldedLinear::new(&project, &(biases - project.mv(&shift)), target),
            summary: summary(weights, gab, &shift, target)?,
            summary_norm: norm(&gab.summary_norm, None),
            heads_of: FoldedLinear::new(
                &weights[gab.heads_of.weight],
                &bias(weights, &gab.heads_of),
                target,
            ),
            heads_norm: norm(&gab.heads_norm, None),
            activation: gab.activation,
            wide: gab.wide,
            output: target.put(&output.tr()),
            norm: norm(&attention.norm, Some(&after)),
            feed_forward: FoldedFeedForward::new(weights, feed_forward, next, target),
        })
    }

    /// Applies the layer, and overwrites the tokens and the attack biases [B · heads, 4096], if
    /// any. `generator` is [wide, 4096].
    pub fn forward(&self, mut x: Tensor, generator: &Tensor, attacks: Option<Tensor>) -> Tensor {
        let width = x.size()[1];
        let head_width = width / self.heads;
        let joint = self.project.forward(&x);
        let parts = joint.view([-1, 64, 3, self.heads, head_width]);
        let parts = parts.permute([2, 0, 3, 1, 4]);
        let [query, key, value] = [0, 1, 2].map(|part| parts.select(0, part));
        let summary = self.summary.forward(&x.view([-1, 64 * width]));
        let summary = self
            .summary_norm
            .forward(&activated(self.activation, summary));
        let heads = activated(self.activation, self.heads_of.forward(&summary));
        let heads = self.heads_norm.forward(&heads).view([-1, self.wide]);
        let biases = match attacks {
            Some(mut biases) => biases.addmm_(&heads, generator),
            None => heads.mm(generator),
        };
        let biases = biases.unflatten(0, [-1, self.heads]).unflatten(2, [64, 64]);
        let seen = attention(&query, &key, &value, Some(&biases), false);
        let seen = seen.transpose(1, 2).reshape([-1, width]);
        let x = self.norm.forward(&x.addmm_(&seen, &self.output));
        self.feed_forward.forward(x)
    }
}

/// Merges GAB's first two layers into one, for tokens that include the shift.
fn summary(weights: &Weights, gab: &Gab, shift: &Tensor, target: Target) -> Option<FoldedLinear> {
    let squares = gab.squares.as_ref()?;
    let [hidden, inputs] = weights[gab.summary.weight].size()[..] else {
        unreachable!("dense layers have matrices")
    };
    let by_square = weights[gab.summary.weight].view([hidden, 64, inputs / 64]);
    let sum = |x: &Tensor| x.sum_dim_intlist([1i64].as_slice(), false, None);
    let constant = sum(&by_square).mv(&bias(weights, squares));
    let joint = by_square.matmul(&weights[squares.weight]);
    let constant = bias(weights, &gab.summary) + constant - sum(&joint).mv(shift);
    Some(FoldedLinear::new(&joint.flatten(1, 2), &constant, target))
}

/// Returns the bias that an attention block adds to the residual stream, `[width]`.
pub(super) fn attention_shift(weights: &Weights, attention: &Attention) -> Tensor {
    bias(weights, &attention.output) * attention.residual_gain
}

/// Returns the bias that a feed-forward block adds to the residual stream, `[width]`.
pub(super) fn feed_forward_shift(weights: &Weights, block: &FeedForward) -> Tensor {
    bias(weights, &block.narrow) * block.residual_gain
}

/// Returns a layer's bias, or zeros if the layer has none.
pub(super) fn bias(weights: &Weights, layer: &Linear) -> Tensor {
    match layer.bias {
        Some(bias) => weights[bias].shallow_clone(),
        None => weights[layer.weight].select(1, 0).zeros_like(),
    }
}

/// Applies an activation, in place if libtorch supports that.
pub(super) fn activated(activation: Activation, mut x: Tensor) -> Tensor {
    match activation {
        Activation::Mish => x.mish_(),
        Activation::Swish => x.silu_(),
        _ => activation.forward(&x),
    }
}
