//! Programs that evaluate a network: the TorchScript in its file, or its family's own code.

use super::module::{Module, TorchError};
use super::shim;
use crate::backend::PredictedFuture;
use std::ffi::c_void;
use std::fmt::Debug;
use tch::Tensor;

/// A network that is ready to evaluate rows. Several threads may use it concurrently.
pub trait Program: Debug + Send + Sync {
    /// Returns the outputs for rows i64 [B, 104 + scalars], in the order of the network's metadata
    /// and on its device. No gradients flow through them.
    ///
    /// # Errors
    /// [`TorchError`] if the rows do not fit or the device fails.
    fn forward(&self, rows: &Tensor) -> Result<Vec<Tensor>, TorchError>;

    /// Evaluates like [`Program::forward`], and also returns futures if the network predicts them.
    /// `steps` is the number of steps, or `None` for the default.
    ///
    /// # Errors
    /// As [`Program::forward`].
    fn forward_with_futures(
        &self,
        rows: &Tensor,
        _steps: Option<usize>,
    ) -> Result<(Vec<Tensor>, Vec<PredictedFuture>), TorchError> {
        Ok((self.forward(rows)?, Vec::new()))
    }

    /// Returns whether any of its layers multiplies in int8. This is known only after an
    /// evaluation.
    fn multiplies_in_int8(&self) -> bool {
        false
    }

    /// Returns its form for GPUs, if it has one.
    fn compact(&self) -> Option<&dyn Compact> {
        None
    }
}

/// A program that leaves to the processor everything that is cheap there, so that a GPU launches
/// few operators.
pub trait Compact {
    /// Returns the number of words that it reads of a position.
    fn width(&self) -> usize;

    /// Writes the words of a position from its row of 104 + scalars.
    fn write(&self, row: &[u64], words: &mut [u64]);

    /// Returns the place of a policy entry of the position in row `row` of a batch.
    fn place(&self, row: usize, entry: usize) -> u64;

    /// Returns the values [B, m] of positions by their words i64 [B, width], and after them their
    /// logits at places i64 `[n]`, in one vector; all tensors are on its device.
    ///
    /// # Errors
    /// As [`Program::forward`].
    fn launch(&self, words: &Tensor, places: &Tensor) -> Result<Tensor, TorchError>;

    /// Returns the outputs other than the policy, in their order, from values [B, m].
    fn finish(&self, values: &[f32]) -> Vec<Vec<f32>>;
}

impl Program for Module {
    fn forward(&self, rows: &Tensor) -> Result<Vec<Tensor>, TorchError> {
        Module::forward(self, rows)
    }
}

/// A guard for libtorch's inference mode. While it lives, tensors that this thread creates take no
/// part in autograd, not even as inputs without gradients.
#[derive(Debug)]
pub(crate) struct Inference(
    /// libtorch's guard. It must end on the thread where it began; the pointer ensures that,
    /// because it is not `Send`.
    *mut c_void,
);

impl Inference {
    pub fn begin() -> Inference {
        Inference(shim::tessera_inference_begin())
    }
}

impl Drop for Inference {
    fn drop(&mut self) {
        // SAFETY: the guard came from `begin` on this thread and ends only once.
        unsafe { shim::tessera_inference_end(self.0) }
    }
}
