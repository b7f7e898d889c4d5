//! libtorch's inference mode.

use super::shim;
use std::ffi::c_void;

/// A guard for libtorch's inference mode. While the guard exists, tensors that this thread creates
/// are excluded from autograd: they cannot take part in it later, even as inputs without gradients.
#[derive(Debug)]
pub(crate) struct InferenceMode(
    /// libtorch's guard, which must end on the thread where it began. The pointer ensures this,
    /// because it is not `Send`.
    *mut c_void,
);

impl InferenceMode {
    pub fn begin() -> InferenceMode {
        InferenceMode(shim::tessera_inference_begin())
    }
}

impl Drop for InferenceMode {
    fn drop(&mut self) {
        // SAFETY: the guard came from `begin` on this thread and ends only once.
        unsafe { shim::tessera_inference_end(self.0) }
    }
}
