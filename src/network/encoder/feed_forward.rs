//! The feed-forward block of an encoder layer.

use crate::network::layers::{Activation, Linear, Norm};
use crate::network::parameters::Weights;
use crate::network::taps::Tap;
use crate::nn::torch::fused;
use tch::Tensor;

/// A block that adds a feed-forward network to its input and normalises.
#[derive(Debug)]
pub(in crate::network) struct FeedForward {
    pub widen: Linear,
    pub activation: Activation,
    pub narrow: Linear,
    pub norm: Norm,
    /// Scale of what the block adds to its input.
    pub residual_gain: f64,
}

impl FeedForward {
    pub fn forward(&self, weights: &Weights, x: &Tensor, tap: &Tap) -> Tensor {
        if !tap.is_used()
            && let Some(fused) = self.fused(weights)
        {
            return fused.forward(x);
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

    /// The block as one operator, where there is one.
    fn fused<'a>(&self, weights: &'a Weights) -> Option<fused::FeedForward<'a>> {
        let widen = &weights[self.widen.weight];
        let is_available = self.activation == Activation::Mish
            && widen.requires_grad()
            && fused::is_available(widen, &widen.size());
        if !is_available {
            return None;
        }
        Some(fused::FeedForward {
            widen: self.widen.fused(weights),
            narrow: self.narrow.fused(weights),
            norm: self.norm.fused(weights, self.residual_gain),
        })
    }
}
