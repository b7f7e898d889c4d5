//! A Chessformer with GAB in few launches, for GPUs, where each operator is a launch that takes
//! microseconds even if it computes little.
//!
//! The folded network computes the same function as the original, up to rounding. Its encoder
//! consists of libtorch's operators or, in f16 and if the network's sizes suit it, of a
//! [single kernel](crate::torch::gpu). Everything that depends only on weights is computed once:
//!
//! - Every feature is one bit of each square, so that one matrix multiplication embeds all
//!   features.
//! - Matrix multiplications add their results to the residual stream, which already contains their
//!   biases.
//! - Consecutive layers without an activation between them are merged, and so are parallel layers,
//!   whose joint weights are padded with zeros.

mod heads;
mod kernel;
mod layer;
mod operators;
#[cfg(test)]
mod tests;
mod words;

use super::Chessformer;
use crate::encode::POLICY_SIZE;
use crate::network::parameters::Weights;
use crate::network::program::{Compact, Program};
use crate::torch::{self, InferenceMode, TorchError, gpu};
use heads::FoldedHeads;
use operators::Operators;
use std::fmt::{self, Debug, Formatter};
use tch::{Device, Kind, Tensor};
use words::Words;

/// Number of pairs of squares.
const PAIRS: i64 = 64 * 64;

/// A folded Chessformer on a device.
pub(crate) struct Folded {
    device: Device,
    words: Words,
    encoder: Encoder,
    heads: FoldedHeads,
    /// The index of each policy entry among the heads' logits.
    places: Vec<i64>,
}

/// The part of a network between its words and the tokens after the last layer.
#[derive(Debug)]
enum Encoder {
    Kernel(gpu::Encoder),
    Operators(Operators),
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
        write!(f, "Folded({:?} on {:?})", self.encoder, self.device)
    }
}

impl Chessformer {
    /// Folds weights, f32 on the CPU, for play in a dtype on a device, with libtorch's operators.
    /// Returns `None` unless every layer has GAB.
    pub(crate) fn fold(&self, weights: &Weights, kind: Kind, device: Device) -> Option<Folded> {
        let target = Target { kind, device };
        let encoder = Encoder::Operators(Operators::new(self, weights, target)?);
        Some(self.folded(weights, encoder, target))
    }

    /// Folds weights, f32 on the CPU, for play in f16 on a device, with the encoder kernel. Returns
    /// `None` if the kernel does not support the network or the device.
    ///
    /// # Errors
    /// [`TorchError`] if the kernel cannot be compiled or loaded.
    pub(crate) fn fold_with_kernel(
        &self,
        weights: &Weights,
        device: Device,
    ) -> Result<Option<Folded>, TorchError> {
        let target = Target {
            kind: Kind::Half,
            device,
        };
        let encoder = self.encoder(weights, device)?;
        Ok(encoder.map(|encoder| self.folded(weights, Encoder::Kernel(encoder), target)))
    }

    fn folded(&self, weights: &Weights, encoder: Encoder, target: Target) -> Folded {
        Folded {
            device: target.device,
            words: Words::new(&self.config),
            encoder,
            heads: FoldedHeads::new(weights, self, target),
            places: super::policy_gather(),
        }
    }
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
    fn evaluate(&self, words: &Tensor, places: &Tensor) -> Result<Tensor, TorchError> {
        let tokens = match &self.encoder {
            Encoder::Kernel(encoder) => encoder.forward(words)?,
            Encoder::Operators(encoder) => encoder.forward(words),
        };
        Ok(self.heads.forward(&tokens, places))
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
        let _inference = InferenceMode::begin();
        torch::caught(|| self.evaluate(words, places))?
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
