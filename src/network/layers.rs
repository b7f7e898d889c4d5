//! Basic layers.

use super::parameters::{Builder, Dense, Initial, Slot, Weights};
use super::size::Part;
use crate::torch::fused::{self, Block as _};
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

    /// Returns the output after mish.
    pub fn forward_mish(&self, weights: &Weights, x: &Tensor) -> Tensor {
        fused::mish(&self.forward(weights, x))
    }

    /// Returns the layer for a fused operator. The layer must have a bias.
    pub fn fused<'a>(&self, weights: &'a Weights) -> fused::Dense<'a> {
        fused::Dense {
            weight: &weights[self.weight],
            bias: &weights[self.bias.expect("fused layers have biases")],
        }
    }

    /// Returns the output times `gain`. The function scales the weights, because they are far
    /// smaller than the activations.
    pub fn forward_scaled(&self, weights: &Weights, x: &Tensor, gain: f64) -> Tensor {
        let (weight, bias) = self.scaled(weights, gain);
        x.linear(&weight, bias.as_ref())
    }

    /// Returns the weight and the bias, each times `gain`.
    pub fn scaled(&self, weights: &Weights, gain: f64) -> (Tensor, Option<Tensor>) {
        let scaled = |slot: Slot| match gain == 1.0 {
            true => weights[slot].shallow_clone(),
            false => weights.made("scaled", slot, || &weights[slot] * gain),
        };
        (scaled(self.weight), self.bias.map(scaled))
    }
}

/// Applies each layer, followed by mish, to the same tokens [B, 64, width].
pub(super) fn dense_mish<const N: usize>(
    weights: &Weights,
    x: &Tensor,
    layers: [&Linear; N],
) -> [Tensor; N] {
    let width = &x.size()[2..];
    let has_kernel = || fused::is_available(x, width);
    if x.requires_grad() && has_kernel() {
        return fused::DenseLayers(layers.map(|layer| layer.fused(weights))).mish(x);
    }
    if weights.are_packed() && has_kernel() {
        let dense = fused::DenseLayers(layers.map(|layer| layer.fused(weights)));
        let pack = |int8| dense.pack(int8);
        // A single layer is cached under its own key, because it may also be part of a joint call.
        let what = if N == 1 { "single dense" } else { "dense" };
        if let Some(packed) = weights.packed(what, layers[0].weight, width, pack) {
            return dense.infer_mish(x, &packed.weights, packed.int8);
        }
    }
    layers.map(|layer| layer.forward_mish(weights, x))
}

/// Returns the activated output of a layer over tokens [B, 64, width].
pub(super) fn activated(
    weights: &Weights,
    x: &Tensor,
    layer: &Linear,
    activation: Activation,
) -> Tensor {
    match activation {
        Activation::Mish if weights.are_packed() => {
            let [y] = dense_mish(weights, x, [layer]);
            y
        }
        _ => activation.forward(&layer.forward(weights, x)),
    }
}

/// A norm over the last dimension: centred with a bias, or root mean square.
#[derive(Clone, Copy, Debug)]
pub(super) struct Norm {
    pub width: i64,
    /// The constant that is added to the variance before its root is taken.
    pub epsilon: f64,
    pub weight: Slot,
    pub bias: Option<Slot>,
}

impl Norm {
    pub fn forward(&self, weights: &Weights, x: &Tensor) -> Tensor {
        let gain = &weights[self.weight];
        match self.bias.map(|bias| &weights[bias]) {
            Some(bias) => x.layer_norm([self.width], Some(gain), Some(bias), self.epsilon, true),
            None => fused::rms_norm(x, gain, self.epsilon),
        }
    }

    /// Returns the weight and the bias of a centred norm, for a fused operator.
    pub fn centred<'a>(&self, weights: &'a Weights) -> (&'a Tensor, &'a Tensor) {
        let bias = self.bias.expect("centred norms have biases");
        (&weights[self.weight], &weights[bias])
    }

    /// Returns the norm that ends a fused block, whose output is scaled by `gain`.
    pub fn fused<'a>(&self, weights: &'a Weights, gain: f64) -> fused::NormEnd<'a> {
        fused::NormEnd {
            gain,
            epsilon: self.epsilon,
            weight: &weights[self.weight],
            bias: self.bias.map(|bias| &weights[bias]),
        }
    }
}

impl Builder {
    /// Adds a dense layer that is applied to `rows` rows per position.
    ///
    /// The weights start Xavier-normal times `gain`, and the biases start at zero.
    pub fn linear(&mut self, name: &str, dense: Dense, part: Part) -> Linear {
        let Dense {
            input,
            output,
            bias,
            gain,
            rows,
            is_outer,
        } = dense;
        self.count(part, rows * input * output);
        let deviation = gain * (2.0 / (input + output) as f64).sqrt();
        self.scope(name, |builder| Linear {
            weight: builder.add_matrix(
                "weight",
                &[output, input],
                Initial::Normal(deviation),
                is_outer,
            ),
            bias: bias.then(|| builder.add("bias", &[output], Initial::Zeros)),
        })
    }

    /// Adds a dense layer without bias that starts as the identity.
    pub fn identity(&mut self, name: &str, width: i64) -> Linear {
        let identity = (0..width * width).map(|at| f32::from(u8::from(at % (width + 1) == 0)));
        let identity = Initial::Around(identity.collect(), 0.0);
        self.scope(name, |builder| Linear {
            weight: builder.add_matrix("weight", &[width, width], identity, false),
            bias: None,
        })
    }

    /// Adds a norm over the last `width` features, with a bias if `centred`.
    pub fn norm(&mut self, name: &str, width: i64, centred: bool, epsilon: f64) -> Norm {
        let bias = centred.then_some(Initial::Zeros);
        self.norm_from(name, width, epsilon, Initial::Ones, bias)
    }

    /// Adds a norm with this initial weight and bias. Without a bias, the norm is not centred.
    pub fn norm_from(
        &mut self,
        name: &str,
        width: i64,
        epsilon: f64,
        weight: Initial,
        bias: Option<Initial>,
    ) -> Norm {
        self.scope(name, |builder| Norm {
            width,
            epsilon,
            weight: builder.add("weight", &[width], weight),
            bias: bias.map(|bias| builder.add("bias", &[width], bias)),
        })
    }

    /// Adds a 3 × 3 convolution over the board's 64 squares.
    ///
    /// The weights start Xavier-normal, and the biases start at zero.
    pub fn convolution(&mut self, name: &str, input: i64, output: i64, part: Part) -> Linear {
        let shape = [output, input, 3, 3];
        self.count(part, 64 * shape.iter().product::<i64>());
        let deviation = (2.0 / (9 * (input + output)) as f64).sqrt();
        self.scope(name, |builder| Linear {
            weight: builder.add("weight", &shape, Initial::Normal(deviation)),
            bias: Some(builder.add("bias", &[output], Initial::Zeros)),
        })
    }
}

/// A layer's activation.
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
    /// GELU with the exact error function instead of its approximation.
    Gelu,
}

impl Activation {
    pub(super) fn forward(self, x: &Tensor) -> Tensor {
        match self {
            Activation::Mish => fused::mish(x),
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
