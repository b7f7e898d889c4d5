//! The encoder with libtorch's operators.

use super::layer::{
    FoldedFeedForward, FoldedLayer, FoldedLinear, attention_shift, bias, feed_forward_shift,
};
use super::words::{self, Words};
use super::{PAIRS, Target};
use crate::network::chessformer::Chessformer;
use crate::network::chessformer::embedding::{FEATURES, PIECES};
use crate::network::encoder::PositionEncoding;
use crate::network::parameters::Weights;
use std::fmt::{self, Debug, Formatter};
use tch::{Kind, Tensor};

/// The encoder's folded tensors.
pub(super) struct Operators {
    words: Words,
    /// The bits of each byte, [256, 8].
    bits: Tensor,
    /// [1, features, width].
    project: Tensor,
    global: Option<Global>,
    /// The scale of each square's token, [64, width].
    multiply: Tensor,
    /// The offset of each square's token, [64, width], which includes the shift of the next block.
    add: Tensor,
    /// Each head's attack weights, repeated for each layer, [1, heads · layers, 2].
    attacks: Option<Tensor>,
    /// [wide, 4096].
    generator: Tensor,
    layers: Vec<FoldedLayer>,
}

/// The additional parts of a global embedding.
struct Global {
    /// Maps the pieces, [B, 12 · 64], to the board features of all squares.
    board: FoldedLinear,
    /// Maps a square's board features to a part of its token, [board, width].
    project: Tensor,
    feed_forward: FoldedFeedForward,
}

impl Debug for Operators {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Operators({} layers)", self.layers.len())
    }
}

impl Operators {
    /// Folds a network's encoder. Returns `None` unless every layer has GAB.
    pub fn new(network: &Chessformer, weights: &Weights, target: Target) -> Option<Operators> {
        let PositionEncoding::Gab(gab) = &network.layers.first()?.attention.position else {
            return None;
        };
        let mut shifts = network.layers.iter();
        let mut shift = || Some(attention_shift(weights, &shifts.next()?.attention));
        let first = shift()?;
        let layers = network.layers.iter();
        let layers = layers.map(|layer| FoldedLayer::new(weights, layer, shift().as_ref(), target));
        let layers = layers.collect::<Option<Vec<FoldedLayer>>>()?;
        let (words, embedding) = (Words::new(&network.config), &network.embedding);
        let added = match &embedding.feed_forward {
            Some(block) => feed_forward_shift(weights, block),
            None => first.shallow_clone(),
        };
        let global = embedding.board.zip(embedding.feed_forward.as_ref());
        let worth = |worth: Tensor| worth.repeat_interleave_self_int(layers.len() as i64, 0, None);
        Some(Operators {
            bits: target.put(&words::bits()),
            project: target.put(&words.project(weights, embedding).unsqueeze(0)),
            words,
            global: global.map(|(board, block)| Global {
                board: FoldedLinear::new(
                    &by_piece(&weights[board.weight]),
                    &bias(weights, &board),
                    target,
                ),
                project: target.put(&of_board(&weights[embedding.project.weight])),
                feed_forward: FoldedFeedForward::new(weights, block, Some(&first), target),
            }),
            multiply: target.put(&weights[embedding.multiply]),
            add: target.put(&(&weights[embedding.add] + added)),
            attacks: network
                .attack_bias
                .map(|bias| target.put(&worth(bias.worth(weights)).unsqueeze(0))),
            generator: target.put(&weights[gab.generator]).tr(),
            layers,
        })
    }

    /// Encodes boards, given by their words i64 [B, words], to tokens [B · 64, width].
    pub fn forward(&self, words: &Tensor) -> Tensor {
        let boards = words.size()[0];
        let features = self.words.features() as i64;
        let bytes = words.view_dtype(Kind::Uint8).to_kind(Kind::Int);
        let bits = Tensor::embedding(&self.bits, &bytes, -1, false, false);
        let bits = bits.view([boards, -1, 64]);
        let mut x = self.embed(&bits.narrow(1, 0, features));
        let mut biases = self.attacks.as_ref().map(|worth| {
            let pairs = bits.narrow(1, features, 2 * 64).view([boards, 2, PAIRS]);
            let biases = worth.expand([boards, -1, -1], false).bmm(&pairs);
            let layers = self.layers.len() as i64;
            biases.view([-1, layers, PAIRS]).unbind(1).into_iter()
        });
        for layer in &self.layers {
            let biases = biases.as_mut().and_then(Iterator::next);
            x = layer.forward(x, &self.generator, biases);
        }
        x
    }

    /// Returns tokens [B · 64, width] from features [B, features, 64].
    fn embed(&self, features: &Tensor) -> Tensor {
        let boards = features.size()[0];
        let project = self.project.expand([boards, -1, -1], false);
        let projected = features.transpose(1, 2).bmm(&project);
        if let Some(Global { board, project, .. }) = &self.global {
            let seen = board.forward(&features.narrow(1, 0, PIECES).flatten(1, 2));
            let seen = seen.view([boards * 64, -1]);
            let _ = projected.flatten(0, 1).addmm_(&seen, project);
        }
        let placed = self.add.addcmul(&projected, &self.multiply).flatten(0, 1);
        match &self.global {
            Some(global) => global.feed_forward.forward(placed),
            None => placed,
        }
    }
}

/// Converts the weights of a layer that reads pieces, [outputs, 64 · 12], from the order by square
/// to the order by piece plane.
fn by_piece(weight: &Tensor) -> Tensor {
    let by_square = weight.view([-1, 64, PIECES]);
    by_square.transpose(1, 2).flatten(1, 2)
}

/// Returns the part of the projection's weights that reads the board features, [board, width].
fn of_board(weight: &Tensor) -> Tensor {
    let board = weight.size()[1] - FEATURES;
    weight.narrow(1, FEATURES, board).tr()
}
