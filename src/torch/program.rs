//! Programs that compute a network: its file's TorchScript, or its family's own code.

use super::module::{Module, TorchError};
use super::shim;
use crate::backend::PredictedFuture;
use std::ffi::c_void;
use std::fmt::Debug;
use tch::Tensor;

/// A network ready to evaluate rows, by several threads concurrently.
pub trait Program: Debug + Send + Sync {
    /// Returns the outputs, in the order of the network's metadata, for rows i64
    /// [B, 104 + scalars] on its device. No gradient flows through them.
    ///
    /// # Errors
    /// [`TorchError`] if the rows do not fit or the device fails.
    fn forward(&self, rows: &Tensor) -> Result<Vec<Tensor>, TorchError>;

    /// Evaluates like [`Program::forward`], with predicted futures if the network predicts them,
    /// in `steps` steps or the default.
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

    /// Returns whether any of its layers multiplies in int8; known after an evaluation.
    fn multiplies_in_int8(&self) -> bool {
        false
    }
}

impl Program for Module {
    fn forward(&self, rows: &Tensor) -> Result<Vec<Tensor>, TorchError> {
        Module::forward(self, rows)
    }
}

/// A guard for libtorch's inference mode: while it lives, tensors created by this thread take no
/// part in autograd, not even as inputs without gradients.
#[derive(Debug)]
pub(crate) struct Inference(
    /// libtorch's guard, which must end on the thread where it began: pointers are not `Send`.
    *mut c_void,
);

impl Inference {
    pub fn begin() -> Inference {
        Inference(shim::tessera_inference_begin())
    }
}

impl Drop for Inference {
    fn drop(&mut self) {
        // SAFETY: it came from `begin`, on this thread, and ends once.
        unsafe { shim::tessera_inference_end(self.0) }
    }
}
