//! The layers that everything is made of.

use super::parameters::{Slot, Weights};
use crate::nn::torch::fused;
use serde::{Deserialize, Serialize};
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

    /// The layer, which has a bias, for a fused operator.
    pub fn fused<'a>(&self, weights: &'a Weights) -> fused::Dense<'a> {
        fused::Dense {
            weight: &weights[self.weight],
            bias: &weights[self.bias.expect("fused layers have biases")],
        }
    }

    /// The output times `gain`, at the price of scaling the weights: they are
    /// far smaller than the activations.
    pub fn forward_scaled(&self, weights: &Weights, x: &Tensor, gain: f64) -> Tensor {
        if gain == 1.0 {
            return self.forward(weights, x);
        }
        let bias = self.bias.map(|bias| &weights[bias] * gain);
        x.linear(&(&weights[self.weight] * gain), bias.as_ref())
    }
}

/// Mish of what each layer makes of the same tokens [B, 64, width].
pub(super) fn dense_mish<const N: usize>(
    weights: &Weights,
    x: &Tensor,
    layers: [&Linear; N],
) -> [Tensor; N] {
    if x.requires_grad() && fused::is_available(x, &x.size()[2..]) {
        return fused::dense_mish(x, layers.map(|layer| layer.fused(weights)));
    }
    layers.map(|layer| layer.forward(weights, x).mish())
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

    /// Weight and bias of a centred norm, for a fused operator.
    pub fn centred<'a>(&self, weights: &'a Weights) -> (&'a Tensor, &'a Tensor) {
        let bias = self.bias.expect("centred norms have biases");
        (&weights[self.weight], &weights[bias])
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

/// What a layer does to its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Activation {
    Mish,
    Relu,
    None,
    Tanh,
    Sigmoid,
    Selu,
    Swish,
    /// The square of ReLU.
    Relu2,
    /// With the error function, not its approximation.
    Gelu,
}

impl Activation {
    pub(super) fn forward(self, x: &Tensor) -> Tensor {
        match self {
            Activation::Mish => x.mish(),
            Activation::Relu => x.relu(),
            Activation::None => x.shallow_clone(),
            Activation::Tanh => x.tanh(),
            Activation::Sigmoid => x.sigmoid(),
            Activation::Selu => x.selu(),
            Activation::Swish => x.silu(),
            Activation::Relu2 => x.relu().square(),
            Activation::Gelu => x.gelu("none"),
        }
    }
}
