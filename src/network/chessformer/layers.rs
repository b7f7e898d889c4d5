//! The encoder layers of a Chessformer.

use super::position;
use crate::network::config::chessformer::{EmbeddingConfig, ModelConfig, NormKind};
use crate::network::encoder::{Attention, FeedForward, Projection};
use crate::network::layers::{Activation, Norm};
use crate::network::parameters::{Builder, Dense, Slot};
use crate::network::size::Part;

/// DeepNorm's gains for an encoder with N layers (Wang et al. 2022).
#[derive(Clone, Copy, Debug)]
pub(in crate::network) struct Gains {
    /// DeepNorm scales the residual by α = (2N)^¼. As in Lc0, the other branch is scaled by 1/α
    /// instead.
    pub residual: f64,
    /// The initial scale of weights that write to the residual, β = (8N)^−¼.
    pub initial: f64,
}

impl Gains {
    pub fn of(layers: i64) -> Gains {
        let depth = layers as f64;
        Gains {
            residual: (2.0 * depth).powf(-0.25),
            initial: (8.0 * depth).powf(-0.25),
        }
    }
}

/// Builds a norm of the encoder's kind.
///
/// Lc0's ε is 1e-3 in bodies with a global embedding, otherwise 1e-6. We use the same values so
/// that Lc0 can run our networks.
pub(in crate::network) fn norm(builder: &mut Builder, config: &ModelConfig) -> Norm {
    let epsilon = match config.embedding {
        EmbeddingConfig::Token => 1e-6,
        EmbeddingConfig::Global { .. } => 1e-3,
    };
    let is_centred = config.norm == NormKind::Layer;
    builder.norm("norm", config.width, is_centred, epsilon)
}

/// Builds the attention of a layer. `generator` is as in [`position::build`].
pub(in crate::network) fn attention(
    builder: &mut Builder,
    config: &ModelConfig,
    gains: Gains,
    layer: i64,
    generator: Option<Slot>,
) -> Attention {
    let width = config.width;
    let square = Dense::per_token(width, width);
    // Xavier's deviation depends on a matrix's height, and the joint matrix is twice as tall as
    // each projection. The gain restores the deviation of a separate projection.
    let joint = Dense::per_token(width, 2 * width).with_gain((3.0f64 / 2.0).sqrt());
    let value = square.without_bias().with_gain(gains.initial);
    builder.count_macs(2 * 64 * 64 * width);
    Attention {
        heads: config.heads,
        head_width: config.head_width(),
        residual_gain: gains.residual,
        projection: Projection::QueryKey {
            query_key: builder.linear("query_key", joint.without_bias(), Part::Main),
            value: builder.linear("value", value, Part::Main),
        },
        output: builder.linear("output", square.with_gain(gains.initial), Part::Main),
        norm: norm(builder, config),
        position: position::build(builder, config, layer, generator),
    }
}

/// Builds a feed-forward block with this hidden width.
pub(in crate::network) fn feed_forward(
    builder: &mut Builder,
    config: &ModelConfig,
    width: i64,
    gains: Gains,
) -> FeedForward {
    let dense = |input, output| Dense::per_token(input, output).with_gain(gains.initial);
    FeedForward {
        widen: builder.linear("widen", dense(config.width, width), Part::Main),
        activation: Activation::Mish,
        narrow: builder.linear("narrow", dense(width, config.width), Part::Main),
        norm: norm(builder, config),
        residual_gain: gains.residual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::chessformer::PositionConfig;
    use crate::network::encoder::{Board, displacements};
    use crate::network::parameters::{Weights, initialise};
    use crate::network::taps::Tap;
    use tch::{Device, Kind, Tensor};

    const WIDTH: usize = 6;
    const HEADS: usize = 2;
    const HEAD_WIDTH: usize = WIDTH / HEADS;
    const GAINS: Gains = Gains {
        residual: 0.7,
        initial: 1.0,
    };

    /// Computes the paper's equations 6 and 7 with scalar arithmetic.
    fn by_hand(parameter: impl Fn(&str) -> Vec<f64>, x: &[f64]) -> Vec<f64> {
        let (query_key, value) = (parameter("query_key.weight"), parameter("value.weight"));
        let [q, k, v] = ["query", "key", "value"].map(|t| parameter(&format!("position.{t}")));
        let project = |weight: &[f64], row: usize, square: usize| -> f64 {
            (0..WIDTH)
                .map(|c| weight[row * WIDTH + c] * x[square * WIDTH + c])
                .sum()
        };
        // The row of the displacement from j to i in the tables, which cover 15 × 15 ranks and
        // files.
        let pair = |i: usize, j: usize| ((i / 8 + 7 - j / 8) * 15 + i % 8 + 7 - j % 8) * WIDTH;
        let mut seen = vec![0.0; 64 * WIDTH];
        for head in 0..HEADS {
            let features = head * HEAD_WIDTH..(head + 1) * HEAD_WIDTH;
            for i in 0..64 {
                let logit = |j: usize| -> f64 {
                    let product = |f: usize| {
                        (project(&query_key, f, i) + q[pair(i, j) + f])
                            * (project(&query_key, WIDTH + f, j) + k[pair(i, j) + f])
                    };
                    features.clone().map(product).sum::<f64>() / (HEAD_WIDTH as f64).sqrt()
                };
                let weights: Vec<f64> = (0..64).map(|j| logit(j).exp()).collect();
                let total: f64 = weights.iter().sum();
                for f in features.clone() {
                    seen[i * WIDTH + f] = (0..64)
                        .map(|j| weights[j] / total * (project(&value, f, j) + v[pair(i, j) + f]))
                        .sum();
                }
            }
        }
        let (output, bias) = (parameter("output.weight"), parameter("output.bias"));
        let norm = parameter("norm.weight");
        let mut result = vec![0.0; 64 * WIDTH];
        for i in 0..64 {
            let sum = |row: usize| {
                let seen = (0..WIDTH).map(|c| output[row * WIDTH + c] * seen[i * WIDTH + c]);
                x[i * WIDTH + row] + GAINS.residual * (seen.sum::<f64>() + bias[row])
            };
            let sums: Vec<f64> = (0..WIDTH).map(sum).collect();
            let square = sums.iter().map(|sum| sum * sum).sum::<f64>() / WIDTH as f64;
            for f in 0..WIDTH {
                result[i * WIDTH + f] = sums[f] / (square + 1e-6).sqrt() * norm[f];
            }
        }
        result
    }

    #[test]
    fn shaw_is_equations_6_and_7_with_every_product() {
        let mut config = ModelConfig::preset("cf-6m-shaw").unwrap();
        (config.width, config.heads) = (WIDTH as i64, HEADS as i64);
        assert_eq!(config.position, PositionConfig::Shaw);
        let mut builder = Builder::default();
        let attention = builder.scope("a", |b| attention(b, &config, GAINS, 0, None));
        let (parameters, _) = builder.finish();
        tch::manual_seed(6);
        let flat = initialise(&parameters);
        // Position vectors are as large as the other parameters, so that a missing vector is
        // detected.
        let flat = &flat + flat.randn_like() * 0.5;
        let weights = Weights::from_flat(&flat, &parameters);
        let x = Tensor::randn([2, 64, WIDTH as i64], (Kind::Float, Device::Cpu));
        let pairs = Tensor::from_slice(&displacements());
        let board = Board {
            displacements: Some(&pairs),
            attacks: None,
        };
        let found = attention.forward(&weights, &x, board, &Tap::default());
        let doubles = |tensor: &Tensor| -> Vec<f64> {
            Vec::try_from(tensor.to_kind(Kind::Double).flatten(0, -1)).unwrap()
        };
        let parameter = |name: &str| {
            let name = format!("a.{name}");
            let place = parameters
                .iter()
                .position(|parameter| parameter.name == name);
            doubles(&weights.tensors()[place.unwrap()])
        };
        for position in 0..2 {
            let expected = by_hand(parameter, &doubles(&x.get(position)));
            for (found, expected) in doubles(&found.get(position)).into_iter().zip(expected) {
                assert!((found - expected).abs() < 1e-4, "{found}, not {expected}");
            }
        }
    }
}
