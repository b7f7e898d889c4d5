//! The feed-forward network of a layer.

use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Weights};
use crate::network::size::Part;
use tch::Tensor;

/// Two dense layers that process each token by itself.
#[derive(Debug)]
pub(in crate::network) enum Mlp {
    /// One half of the hidden features gates the other (Shazeer 2020).
    SwiGlu {
        /// The layer that computes the gates, then the gated features.
        widen: Linear,
        narrow: Linear,
    },
    /// The hidden features pass through GELU with the exact error function, as in GPT-2.
    Gelu { widen: Linear, narrow: Linear },
}

impl Mlp {
    /// Adds the parameters of gated layers, with the initial output scaled by `gain`.
    pub fn swiglu(builder: &mut Builder, [width, hidden]: [i64; 2], gain: f64) -> Mlp {
        let [widen, narrow] = build(builder, [width, 2 * hidden], [hidden, width], gain);
        Mlp::SwiGlu { widen, narrow }
    }

    /// Adds the parameters of layers without gates, with the initial output scaled by `gain`.
    pub fn gelu(builder: &mut Builder, [width, hidden]: [i64; 2], gain: f64) -> Mlp {
        let [widen, narrow] = build(builder, [width, hidden], [hidden, width], gain);
        Mlp::Gelu { widen, narrow }
    }

    pub fn forward(&self, weights: &Weights, x: &Tensor) -> Tensor {
        match self {
            Mlp::SwiGlu { widen, narrow } => {
                let halves = widen.forward(weights, x).chunk(2, -1);
                narrow.forward(weights, &(halves[0].silu() * &halves[1]))
            }
            Mlp::Gelu { widen, narrow } => {
                narrow.forward(weights, &widen.forward(weights, x).gelu("none"))
            }
        }
    }
}

fn build(builder: &mut Builder, widen: [i64; 2], narrow: [i64; 2], gain: f64) -> [Linear; 2] {
    let dense =
        |[input, output]: [i64; 2]| Dense::per_token(input, output).with_rows(1).without_bias();
    [
        builder.linear("widen", dense(widen), Part::Main),
        builder.linear("narrow", dense(narrow).with_gain(gain), Part::Main),
    ]
}
