//! Adaptive layer norms that start as nothing: AdaLN-Zero (Peebles and Xie 2023).

use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Weights};
use crate::network::size::Part;
use tch::Tensor;

/// Added to variances.
const EPSILON: f64 = 1e-6;

/// A norm without parameters before a block, and a gate behind it. Scale, shift and gate
/// are read off a condition, by weights that start at zero: what the block adds is nothing
/// at first, so that a network grown by it begins as the same function.
#[derive(Debug)]
pub(in crate::network) struct AdaLnZero {
    width: i64,
    modulation: Linear,
}

impl AdaLnZero {
    /// For tokens and a condition of these widths.
    pub fn build(builder: &mut Builder, width: i64, condition: i64) -> AdaLnZero {
        let dense = Dense::per_board(condition, 3 * width);
        AdaLnZero {
            width,
            modulation: builder.linear("modulation", dense.with_gain(0.0).outer(), Part::Other),
        }
    }

    /// Tokens [.., width] as the block is to read them, and the gate of what it adds.
    /// The condition [.., condition] is as long as the tokens, or 1, in all dimensions.
    pub fn forward(&self, weights: &Weights, x: &Tensor, condition: &Tensor) -> (Tensor, Tensor) {
        let modulation = self.modulation.forward(weights, condition).chunk(3, -1);
        let [scale, shift, gate]: [Tensor; 3] = modulation.try_into().expect("three chunks");
        let none = None::<&Tensor>;
        let normed = x.layer_norm([self.width], none, none, EPSILON, true);
        (normed * (scale + 1.0) + shift, gate)
    }
}
