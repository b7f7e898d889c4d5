//! The feed-forward block of an encoder layer.

use crate::network::layers::{Activation, Linear, Norm};
use crate::network::parameters::Weights;
use crate::network::taps::Tap;
use crate::torch::fused::{self, Block as _};
use tch::Tensor;

/// A block that adds a feed-forward network to its input and normalises the sum.
#[derive(Debug)]
pub(in crate::network) struct FeedForward {
    pub widen: Linear,
    pub activation: Activation,
    pub narrow: Linear,
    pub norm: Norm,
    /// Scale of the block's output before the residual.
    pub residual_gain: f64,
}

impl FeedForward {
    pub fn forward(&self, weights: &Weights, x: &Tensor, tap: &Tap) -> Tensor {
        if !tap.is_used() && self.has_kernel(weights) {
            return self.forward_fused(weights, x);
        }
        let hidden = self.activation.forward(&self.widen.forward(weights, x));
        let y = self
            .narrow
            .forward_scaled(weights, &hidden, self.residual_gain);
        tap.give("input", x);
        tap.give("hidden", &hidden);
        tap.give("output", &y);
        let y = tap.changed("output", y);
        self.norm.forward(weights, &(x + y))
    }

    /// Returns whether a single operator computes the block with these weights.
    fn has_kernel(&self, weights: &Weights) -> bool {
        let widen = &weights[self.widen.weight];
        self.activation == Activation::Mish
            && (widen.requires_grad() || weights.are_packed())
            && fused::is_available(widen, &widen.size())
    }

    fn forward_fused(&self, weights: &Weights, x: &Tensor) -> Tensor {
        let block = fused::FeedForward {
            widen: self.widen.fused(weights),
            narrow: self.narrow.fused(weights),
            norm: self.norm.fused(weights, self.residual_gain),
        };
        if !weights.are_packed() {
            return block.forward(x);
        }
        let (weight, bias) = self.narrow.scaled(weights, self.residual_gain);
        let block = fused::FeedForward {
            narrow: fused::Dense {
                weight: &weight,
                bias: bias.as_ref().expect("fused layers have biases"),
            },
            norm: self.norm.fused(weights, 1.0),
            ..block
        };
        let (slot, inputs) = (self.widen.weight, weights[self.widen.weight].size());
        let packed = weights.packed("feed_forward", slot, &inputs, |int8| block.pack(int8));
        let packed = packed.expect("packed weights");
        block.infer(x, &packed.weights, packed.int8)
    }
}
