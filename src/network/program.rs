//! Programs that evaluate a network: the TorchScript in the network's file, or the code of its
//! family.

use crate::backend::PredictedFuture;
use crate::torch::{Module, TorchError};
use std::fmt::Debug;
use tch::Tensor;

/// A network that is ready to evaluate rows. Several threads may use it concurrently.
pub trait Program: Debug + Send + Sync {
    /// Returns the outputs for rows i64 [B, 104 + scalars], in the order of the network's metadata
    /// and on the network's device. No gradients flow through the outputs.
    ///
    /// # Errors
    /// [`TorchError`] if the program rejects the rows or the device fails.
    fn forward(&self, rows: &Tensor) -> Result<Vec<Tensor>, TorchError>;

    /// Evaluates like [`Program::forward`], and also returns futures if the network predicts them.
    /// `steps` is the number of steps, or `None` for the default.
    ///
    /// # Errors
    /// The same as for [`Program::forward`].
    fn forward_with_futures(
        &self,
        rows: &Tensor,
        _steps: Option<usize>,
    ) -> Result<(Vec<Tensor>, Vec<PredictedFuture>), TorchError> {
        Ok((self.forward(rows)?, Vec::new()))
    }

    /// Returns whether any layer of the network multiplies in int8. The answer is valid only after
    /// an evaluation.
    fn multiplies_in_int8(&self) -> bool {
        false
    }

    /// Returns the program's form for GPUs, if it has one.
    fn compact(&self) -> Option<&dyn Compact> {
        None
    }
}

/// A program that performs cheap operations on the CPU, so that a GPU launches few operators.
pub trait Compact {
    /// Returns the number of words per position that the program reads.
    fn width(&self) -> usize;

    /// Writes the words of a position, given its row of 104 + scalars.
    fn write(&self, row: &[u64], words: &mut [u64]);

    /// Returns the index of a policy entry's logit, for the position in row `row` of a batch.
    fn place(&self, row: usize, entry: usize) -> u64;

    /// Evaluates positions, given by their words i64 [B, width]. Returns one vector that contains
    /// their values [B, m], followed by their logits at the indices `places`, i64 `[n]`. All
    /// tensors are on the program's device.
    ///
    /// # Errors
    /// The same as for [`Program::forward`].
    fn launch(&self, words: &Tensor, places: &Tensor) -> Result<Tensor, TorchError>;

    /// Computes the outputs other than the policy, in the network's order, from values [B, m].
    fn finish(&self, values: &[f32]) -> Vec<Vec<f32>>;
}

impl Program for Module {
    fn forward(&self, rows: &Tensor) -> Result<Vec<Tensor>, TorchError> {
        Module::forward(self, rows)
    }
}
