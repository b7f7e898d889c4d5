//! Residual towers. Between convolutions, tensors have the shape [B, 64, channels]. libtorch treats
//! them as channels-last images, the layout that its CPU kernels prefer.

use crate::network::config::lc0::Tower;
use crate::network::layers::{Activation, Linear};
use crate::network::parameters::{Builder, Dense, Weights};
use crate::network::planes::PLANES;
use crate::network::size::Part;
use crate::network::taps::Tap;
use crate::torch::fused;
use tch::{Kind, Tensor};

/// A residual tower of 3 × 3 convolutions.
#[derive(Debug)]
pub(super) struct ResidualTower {
    activation: Activation,
    input: Linear,
    blocks: Vec<Block>,
}

/// A residual block of two convolutions.
#[derive(Debug)]
struct Block {
    convolutions: [Linear; 2],
    /// The layers for squeeze and excitation.
    excitation: Option<[Linear; 2]>,
}

impl ResidualTower {
    pub fn build(builder: &mut Builder, tower: Tower, activation: Activation) -> ResidualTower {
        let filters = tower.filters;
        let input = builder.convolution("input", PLANES, filters, Part::Main);
        let block = |builder: &mut Builder| Block {
            convolutions: ["conv1", "conv2"]
                .map(|name| builder.convolution(name, filters, filters, Part::Main)),
            excitation: tower.squeeze.map(|squeeze| {
                let (narrow, wide) = (
                    Dense::per_board(filters, squeeze),
                    Dense::per_board(squeeze, 2 * filters),
                );
                [("squeeze", narrow), ("excite", wide)]
                    .map(|(name, dense)| builder.linear(name, dense, Part::Main))
            }),
        };
        let blocks = (0..tower.blocks).map(|number| builder.scope(format!("body.{number}"), block));
        ResidualTower {
            activation,
            input,
            blocks: blocks.collect(),
        }
    }

    /// Maps planes [B, 64, 112] to [B, 64, filters].
    pub fn forward(&self, weights: &Weights, planes: &Tensor, tap: &Tap) -> Tensor {
        let activation = self.activation;
        let mut x = activation.forward(&convolve(weights, &self.input, planes));
        tap.give("embedding", &x);
        for (number, block) in self.blocks.iter().enumerate() {
            let [first, second] = &block.convolutions;
            let y = activation.forward(&convolve(weights, first, &x));
            let y = convolve(weights, second, &y);
            let sum = match &block.excitation {
                None => y + x,
                Some(layers) => {
                    let [gain, shift] = self.excite(weights, layers, &y);
                    (x + shift).addcmul(&y, &gain)
                }
            };
            x = activation.forward(&sum);
            tap.give(&format!("body.{number}"), &x);
        }
        x
    }

    /// Returns the gain and the shift of squeeze and excitation (Hu et al. 2018), both [B, 1,
    /// filters].
    fn excite(
        &self,
        weights: &Weights,
        [squeeze, excite]: &[Linear; 2],
        y: &Tensor,
    ) -> [Tensor; 2] {
        let squeezed = y.mean_dim([1i64].as_slice(), false, None::<Kind>);
        let hidden = squeeze.forward(weights, &squeezed);
        let hidden = self.activation.forward(&hidden);
        let both = excite.forward(weights, &hidden).unsqueeze(1);
        let filters = both.size()[2] / 2;
        [
            both.narrow(2, 0, filters).sigmoid(),
            both.narrow(2, filters, filters),
        ]
    }
}

/// Applies a 3 × 3 convolution that keeps the board's size.
pub(super) fn convolve(weights: &Weights, layer: &Linear, x: &Tensor) -> Tensor {
    let weight = &weights[layer.weight];
    let [output, input] = [0, 1].map(|dimension| weight.size()[dimension]);
    let bias = layer.bias.map(|bias| &weights[bias]);
    let boards = x.view([-1, 8, 8, input]).permute([0, 3, 1, 2]);
    let convolved = match weights.are_frozen() && fused::takes_convolution(layer.fused(weights)) {
        true => {
            let layer_of = layer.fused(weights);
            let kernel = weights.made("winograd", layer.weight, || {
                fused::convolution_kernel(layer_of)
            });
            fused::convolution(&boards, layer_of, &kernel)
        }
        false => boards.conv2d(weight, bias, [1, 1], [1, 1], [1, 1], 1),
    };
    convolved.permute([0, 2, 3, 1]).reshape([-1, 64, output])
}
