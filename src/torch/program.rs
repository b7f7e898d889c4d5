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
