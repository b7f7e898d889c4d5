//! The parameters of a Chessformer's encoder in the order in which the encoder kernel reads them.

use super::layer::bias;
use super::words::Words;
use crate::network::chessformer::Chessformer;
use crate::network::config::chessformer::NormKind;
use crate::network::encoder::{EncoderLayer, GAB_EPSILON, Gab, PositionEncoding, Projection};
use crate::network::layers::{Activation, Linear, Norm};
use crate::network::parameters::Weights;
use crate::torch::{TorchError, gpu};
use tch::{Device, Kind, Tensor};

/// Rows and columns of the weights that a warp multiplies at once.
const TILE: [i64; 2] = [8, 16];

/// Parameters, each flattened.
#[derive(Default)]
struct Parameters {
    matrices: Vec<Tensor>,
    vectors: Vec<Tensor>,
}

impl Chessformer {
    /// Prepares an encoder that runs in a single kernel on a device. Returns `None` if the kernel
    /// does not support the network or the device.
    ///
    /// # Errors
    /// [`TorchError`] if the kernel cannot be compiled or loaded.
    pub(super) fn encoder(
        &self,
        weights: &Weights,
        device: Device,
    ) -> Result<Option<gpu::Encoder>, TorchError> {
        let words = Words::new(&self.config);
        let (Some(sizes), true) = (self.sizes(weights, words), self.is_plain()) else {
            return Ok(None);
        };
        let mut parameters = Parameters::default();
        let project = words.project(weights, &self.embedding).tr();
        let missing = -project.size()[1] & (TILE[1] - 1);
        parameters.matrix(packed(&project.constant_pad_nd([0, missing])));
        let generator = &weights[self.generator().expect("layers with GAB")];
        parameters.matrix(packed_rows(generator));
        parameters.vector(&weights[self.embedding.multiply]);
        parameters.vector(&weights[self.embedding.add]);
        let worth = self.attack_bias.map(|bias| bias.worth(weights));
        let none = || Tensor::zeros([self.config.heads, 2], (Kind::Float, Device::Cpu));
        parameters.vector(&worth.unwrap_or_else(none));
        for layer in &self.layers {
            parameters.layer(weights, layer);
        }
        let [matrices, vectors] = parameters.joined();
        gpu::Encoder::new(sizes, &matrices, &vectors, device)
    }

    /// Returns the encoder's sizes, or `None` if its layers have no GAB or other tiles than the
    /// kernel.
    fn sizes(&self, weights: &Weights, words: Words) -> Option<gpu::Sizes> {
        let layer = self.layers.first()?;
        let PositionEncoding::Gab(gab) = &layer.attention.position else {
            return None;
        };
        let [wide, hidden] = gab.widths(weights);
        let squares = &weights[gab.squares.as_ref()?.weight];
        let size = |size: i64| size as i32;
        let sizes = gpu::Sizes {
            words: words.width() as i32,
            features: words.features() as i32,
            layers: self.layers.len() as i32,
            width: size(self.config.width),
            heads: size(self.config.heads),
            feed_forward: size(self.config.feed_forward),
            compress: size(squares.size()[0]),
            hidden: size(hidden),
            generator: size(wide),
            heads_per_pass: size(self.config.heads),
            has_attacks: self.attack_bias.is_some().into(),
            is_centred: (self.config.norm == NormKind::Layer).into(),
            epsilon: layer.attention.norm.epsilon as f32,
            gab_epsilon: GAB_EPSILON as f32,
        };
        sizes.are_supported().then_some(sizes)
    }

    /// Returns whether the network has the activations that the kernel computes, and no board
    /// embedding.
    fn is_plain(&self) -> bool {
        let is_plain = |layer: &EncoderLayer| {
            let PositionEncoding::Gab(gab) = &layer.attention.position else {
                return false;
            };
            let norms = [&layer.attention.norm, &layer.feed_forward.norm];
            gab.is_fusible()
                && layer.feed_forward.activation == Activation::Mish
                && norms
                    .iter()
                    .all(|norm| norm.epsilon == self.layers[0].attention.norm.epsilon)
        };
        self.embedding.feed_forward.is_none() && self.layers.iter().all(is_plain)
    }
}

impl Parameters {
    fn matrix(&mut self, matrix: Tensor) {
        self.matrices.push(matrix.reshape([-1]));
    }

    fn vector(&mut self, vector: &Tensor) {
        self.vectors.push(vector.reshape([-1]));
    }

    /// Returns all matrices, and all vectors.
    fn joined(&self) -> [Tensor; 2] {
        [&self.matrices, &self.vectors].map(|parts| Tensor::cat(parts, 0).detach())
    }

    /// Adds a layer that reads all squares, whose outputs are scaled.
    fn dense(&mut self, weights: &Weights, layer: &Linear, gain: f64) {
        self.matrix(packed(&(&weights[layer.weight] * gain)));
        self.vector(&(bias(weights, layer) * gain));
    }

    fn norm(&mut self, weights: &Weights, norm: &Norm) {
        self.vector(&weights[norm.weight]);
        self.vector(&match norm.bias {
            Some(bias) => weights[bias].shallow_clone(),
            None => weights[norm.weight].zeros_like(),
        });
    }

    /// Adds a layer of GAB that reads the whole board, with its norm.
    fn summary(&mut self, weights: &Weights, layer: &Linear, norm: &Norm) {
        self.matrix(weights[layer.weight].shallow_clone());
        self.vector(&bias(weights, layer));
        self.norm(weights, norm);
    }

    fn layer(&mut self, weights: &Weights, layer: &EncoderLayer) {
        let EncoderLayer {
            attention,
            feed_forward,
        } = layer;
        let (PositionEncoding::Gab(gab), Projection::QueryKey { query_key, value }) =
            (&attention.position, &attention.projection)
        else {
            unreachable!("the layers of Chessformers with GAB have these parts")
        };
        self.gab(weights, gab);
        let joint = [&weights[query_key.weight], &weights[value.weight]];
        self.matrix(packed(&Tensor::cat(&joint, 0)));
        self.vector(&bias(weights, query_key));
        self.vector(&bias(weights, value));
        self.dense(weights, &attention.output, attention.residual_gain);
        self.norm(weights, &attention.norm);
        self.dense(weights, &feed_forward.widen, 1.0);
        self.dense(weights, &feed_forward.narrow, feed_forward.residual_gain);
        self.norm(weights, &feed_forward.norm);
    }

    fn gab(&mut self, weights: &Weights, gab: &Gab) {
        let squares = gab.squares.as_ref().expect("GAB that reads squares");
        self.dense(weights, squares, 1.0);
        self.summary(weights, &gab.summary, &gab.summary_norm);
        self.summary(weights, &gab.heads_of, &gab.heads_norm);
    }
}

/// Returns weights [outputs, inputs] in the order in which the lanes of a warp read them: in each
/// tile, lane 4 g + t reads the inputs 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of output g.
fn packed(weight: &Tensor) -> Tensor {
    let [outputs, inputs] = weight.size()[..] else {
        unreachable!("dense layers have matrices")
    };
    let [rows, columns] = TILE;
    let tiles = weight.view([outputs / rows, rows, inputs / columns, 2, 4, 2]);
    tiles.permute([0, 2, 1, 4, 3, 5])
}

/// Returns weights [outputs, inputs] whose outputs are the rows of a product, in the order in which
/// the lanes of a warp read them: in each tile of 16 outputs, lane 4 g + t reads the inputs 2 t and
/// 2 t + 1 of outputs g and g + 8, and then the inputs 2 t + 8 and 2 t + 9.
fn packed_rows(weight: &Tensor) -> Tensor {
    let [outputs, inputs] = weight.size()[..] else {
        unreachable!("dense layers have matrices")
    };
    let tiles = weight.view([outputs / 16, 2, 8, inputs / 16, 2, 4, 2].as_slice());
    tiles.permute([0, 3, 2, 5, 4, 1, 6])
}
