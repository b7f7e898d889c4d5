//! A Chessformer with GAB in few operators, for GPUs, where each operator is a launch that takes
//! microseconds even if it computes little.
//!
//! The folded network computes the same function as the original, up to rounding. Everything that
//! depends only on weights is computed once:
//!
//! - Every feature is one bit of each square, so that one matrix multiplication embeds all
//!   features.
//! - Matrix multiplications add their results to the residual stream, which already contains their
//!   biases.
//! - Consecutive layers without an activation between them are merged, and so are parallel layers,
//!   whose joint weights are padded with zeros.

mod heads;
mod layer;
#[cfg(test)]
mod tests;
mod words;

use super::Chessformer;
use super::embedding::{FEATURES, PIECES};
use crate::encode::POLICY_SIZE;
use crate::network::encoder::PositionEncoding;
use crate::network::parameters::Weights;
use crate::torch::{self, Compact, Inference, Program, TorchError};
use heads::FoldedHeads;
use layer::{FoldedFeedForward, FoldedLayer, FoldedLinear, attention_shift, feed_forward_shift};
use std::fmt::{self, Debug, Formatter};
use tch::{Device, Kind, Tensor};
use words::Words;

/// Number of pairs of squares.
const PAIRS: i64 = 64 * 64;

/// A Chessformer's folded tensors on a device.
pub(in crate::network) struct Folded {
    device: Device,
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
    heads: FoldedHeads,
    /// The index of each policy entry among the heads' logits.
    places: Vec<i64>,
}

/// The additional parts of a global embedding.
struct Global {
    /// Maps the pieces, [B, 12 · 64], to the board features of all squares.
    board: FoldedLinear,
    /// Maps a square's board features to a part of its token, [board, width].
    project: Tensor,
    feed_forward: FoldedFeedForward,
}

/// The dtype and the device for which a network is folded.
#[derive(Clone, Copy)]
struct Target {
    kind: Kind,
    device: Device,
}

impl Target {
    fn put(self, tensor: &Tensor) -> Tensor {
        let tensor = tensor.detach().to_kind(self.kind);
        tensor.to_device(self.device).contiguous()
    }
}

// SAFETY: threads only read the tensors in `Folded`, and their reference counts are atomic.
unsafe impl Sync for Folded {}

impl Debug for Folded {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (layers, device) = (self.layers.len(), self.device);
        write!(f, "Folded({layers} layers on {device:?})")
    }
}

impl Chessformer {
    /// Folds weights, f32 on the CPU, for play in a dtype on a device. Returns `None` unless every
    /// layer has GAB.
    pub(in crate::network) fn fold(
        &self,
        weights: &Weights,
        kind: Kind,
        device: Device,
    ) -> Option<Folded> {
        let target = Target { kind, device };
        let PositionEncoding::Gab(gab) = &self.layers.first()?.attention.position else {
            return None;
        };
        let mut shifts = self.layers.iter();
        let mut shift = || Some(attention_shift(weights, &shifts.next()?.attention));
        let first = shift()?;
        let layers = self.layers.iter();
        let layers = layers.map(|layer| FoldedLayer::new(weights, layer, shift().as_ref(), target));
        let layers = layers.collect::<Option<Vec<FoldedLayer>>>()?;
        let (words, embedding) = (Words::new(&self.config), &self.embedding);
        let added = match &embedding.feed_forward {
            Some(block) => feed_forward_shift(weights, block),
            None => first.shallow_clone(),
        };
        let global = embedding.board.zip(embedding.feed_forward.as_ref());
        let worth = |worth: Tensor| worth.repeat_interleave_self_int(layers.len() as i64, 0, None);
        Some(Folded {
            device,
            bits: target.put(&words::bits()),
            project: target.put(&words.project(weights, embedding).unsqueeze(0)),
            words,
            global: global.map(|(board, block)| Global {
                board: FoldedLinear::new(
                    &by_piece(&weights[board.weight]),
                    &layer::bias(weights, &board),
                    target,
                ),
                project: target.put(&of_board(&weights[embedding.project.weight])),
                feed_forward: FoldedFeedForward::new(weights, block, Some(&first), target),
            }),
            multiply: target.put(&weights[embedding.multiply]),
            add: target.put(&(&weights[embedding.add] + added)),
            attacks: self
                .attack_bias
                .map(|bias| target.put(&worth(bias.worth(weights)).unsqueeze(0))),
            generator: target.put(&weights[gab.generator]).tr(),
            layers,
            heads: FoldedHeads::new(weights, self, target),
            places: super::policy_gather(),
        })
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

impl Folded {
    /// Returns the words of rows i64 [B, 104 + scalars], on the network's device.
    fn words_of(&self, rows: &Tensor) -> Result<Tensor, TorchError> {
        let width = rows.size().last().map_or(0, |&width| width as usize);
        if width < self.words.row() {
            let expected = self.words.row();
            let reason = format!("rows have {width} words in place of {expected}");
            return Err(TorchError::new(&reason));
        }
        let rows = Vec::<i64>::try_from(rows.to_device(Device::Cpu).reshape([-1]))?;
        let rows = rows.chunks_exact(width);
        let mut words = vec![0; rows.len() * self.width()];
        for (row, words) in rows.zip(words.chunks_exact_mut(self.width())) {
            self.write(bytemuck::cast_slice(row), words);
        }
        Ok(self.on_device(&words).view([-1, self.width() as i64]))
    }

    fn on_device(&self, words: &[u64]) -> Tensor {
        let words: &[i64] = bytemuck::cast_slice(words);
        Tensor::from_slice(words).to_device(self.device)
    }

    /// Returns values and logits in the layout of [`Compact::launch`].
    fn evaluate(&self, words: &Tensor, places: &Tensor) -> Tensor {
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
        self.heads.forward(&x, places)
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

impl Compact for Folded {
    fn width(&self) -> usize {
        self.words.width()
    }

    fn write(&self, row: &[u64], words: &mut [u64]) {
        self.words.write(row, words);
    }

    fn place(&self, row: usize, entry: usize) -> u64 {
        (row as i64 * heads::LOGITS + self.places[entry]) as u64
    }

    fn launch(&self, words: &Tensor, places: &Tensor) -> Result<Tensor, TorchError> {
        let _inference = Inference::begin();
        torch::caught(|| self.evaluate(words, places))
    }

    fn finish(&self, values: &[f32]) -> Vec<Vec<f32>> {
        heads::finish(values)
    }
}

impl Program for Folded {
    fn forward(&self, rows: &Tensor) -> Result<Vec<Tensor>, TorchError> {
        let words = self.words_of(rows)?;
        let boards = words.size()[0] as usize;
        let all = (0..boards).flat_map(|row| (0..POLICY_SIZE).map(move |entry| (row, entry)));
        let places: Vec<u64> = all.map(|(row, entry)| self.place(row, entry)).collect();
        let places = self.on_device(&places);
        let found = torch::floats(&self.launch(&words, &places)?);
        let (values, policy) = found.split_at(found.len() - places.numel());
        let outputs = [policy.to_vec()].into_iter().chain(self.finish(values));
        let outputs = outputs.map(|output| {
            let tensor = Tensor::from_slice(&output).to_device(self.device);
            match output.len() == boards {
                true => tensor,
                false => tensor.view([boards as i64, -1]),
            }
        });
        Ok(outputs.collect())
    }

    fn compact(&self) -> Option<&dyn Compact> {
        Some(self)
    }
}
