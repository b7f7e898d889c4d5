//! Adaptive layer norms with zero initialization: AdaLN-Zero (Peebles and Xie 2023).

use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Weights};
use crate::network::size::Part;
use tch::Tensor;

/// The constant that is added to variances.
const EPSILON: f64 = 1e-6;

/// A norm without parameters before a block, and a gate after it. Zero-initialised weights project
/// scale, shift and gate from a condition. The block therefore adds nothing at first, and a network
/// that gains such a block starts as the same function.
#[derive(Debug)]
pub(in crate::network) struct AdaLnZero {
    width: i64,
    modulation: Linear,
}

impl AdaLnZero {
    /// Builds the norm and the gate for tokens and a condition of these widths.
    pub fn build(builder: &mut Builder, width: i64, condition: i64) -> AdaLnZero {
        let dense = Dense::per_board(condition, 3 * width);
        AdaLnZero {
            width,
            modulation: builder.linear("modulation", dense.with_gain(0.0).outer(), Part::Other),
        }
    }

    /// Returns the block's input, computed from tokens [.., width], and the gate of its output.
    /// Each other dimension of the condition [.., condition] is as long as that of the tokens, or
    /// 1.
    pub fn forward(&self, weights: &Weights, x: &Tensor, condition: &Tensor) -> (Tensor, Tensor) {
        let modulation = self.modulation.forward(weights, condition).chunk(3, -1);
        let [scale, shift, gate]: [Tensor; 3] = modulation.try_into().expect("three chunks");
        let none = None::<&Tensor>;
        let normed = x.layer_norm([self.width], none, none, EPSILON, true);
        (normed * (scale + 1.0) + shift, gate)
    }
}
