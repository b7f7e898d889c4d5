//! The two layers that everything is made of.

use super::parameters::{Slot, Weights};
use crate::nn::torch::fused;
use tch::Tensor;

/// A dense layer over the last dimension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear {
    pub weight: Slot,
    pub bias: Option<Slot>,
}

impl Linear {
    pub fn forward(&self, weights: &Weights, x: &Tensor) -> Tensor {
        x.linear(&weights[self.weight], self.bias.map(|bias| &weights[bias]))
    }

    /// The output times `gain`, at the price of scaling the weights: they are
    /// far smaller than the activations.
    pub fn forward_scaled(&self, weights: &Weights, x: &Tensor, gain: f64) -> Tensor {
        let bias = self.bias.map(|bias| &weights[bias] * gain);
        x.linear(&(&weights[self.weight] * gain), bias.as_ref())
    }
}

/// A norm over the last dimension: centred with a bias, or root mean square.
#[derive(Clone, Copy, Debug)]
pub(super) struct Norm {
    pub width: i64,
    /// Added to the variance before its root is taken.
    pub epsilon: f64,
    pub weight: Slot,
    pub bias: Option<Slot>,
}

impl Norm {
    pub fn forward(&self, weights: &Weights, x: &Tensor) -> Tensor {
        let gain = Some(&weights[self.weight]);
        match self.bias {
            Some(bias) => {
                x.layer_norm([self.width], gain, Some(&weights[bias]), self.epsilon, true)
            }
            None => x.rms_norm([self.width], gain, self.epsilon),
        }
    }

    /// The norm at the end of a fused block whose output is scaled by `gain`.
    pub fn fused<'a>(&self, weights: &'a Weights, gain: f64) -> fused::NormEnd<'a> {
        fused::NormEnd {
            gain,
            epsilon: self.epsilon,
            weight: &weights[self.weight],
            bias: self.bias.map(|bias| &weights[bias]),
        }
    }
}
