//! Attention of each square to the same square of other boards.

use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Weights};
use crate::network::size::Part;
use tch::Tensor;

/// Multi-head attention along the time axis of tokens [B, 64, T, width]: every board sees
/// all others.
#[derive(Debug)]
pub(in crate::network) struct TimeAttention {
    heads: i64,
    head_width: i64,
    /// Queries, keys and values.
    projection: Linear,
    output: Linear,
}

impl TimeAttention {
    /// For so many boards.
    pub fn build(builder: &mut Builder, width: i64, heads: i64, boards: i64) -> TimeAttention {
        let dense = |output| Dense {
            rows: 64 * boards,
            ..Dense::per_token(width, output).without_bias()
        };
        builder.count_macs(2 * 64 * boards * boards * width);
        TimeAttention {
            heads,
            head_width: width / heads,
            // The joint matrix is taller than a square one, whose deviation it gets.
            projection: builder.linear(
                "qkv",
                dense(3 * width).with_gain(2.0f64.sqrt()),
                Part::Main,
            ),
            output: builder.linear("output", dense(width), Part::Main),
        }
    }

    /// What each token learns of the other boards.
    pub fn forward(&self, weights: &Weights, x: &Tensor) -> Tensor {
        let joint = self.projection.forward(weights, x);
        // Squares stand beside heads: kernels on CUDA take no more than 65,535 batches.
        let parts = joint
            .unflatten(-1, [3, self.heads, self.head_width])
            .permute([3, 0, 1, 4, 2, 5])
            .flatten(2, 3)
            .unbind(0);
        let [query, key, value]: [Tensor; 3] = parts.try_into().expect("three were joined");
        let none = None::<&Tensor>;
        let learned = Tensor::scaled_dot_product_attention(
            &query, &key, &value, none, 0.0, false, None, false,
        );
        let learned = learned
            .unflatten(1, [64, self.heads])
            .transpose(2, 3)
            .flatten(3, 4);
        self.output.forward(weights, &learned)
    }
}
