//! TorchScript modules with features that [`tch::CModule`] lacks: loading from memory, multiple
//! outputs, freezing, and conversion of only the floating-point tensors.

use super::shim::{self, take_text};
use crate::backend::{BackendError, Precision};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use tch::{Device, Kind, Tensor};

/// An error from libtorch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TorchError(String);

impl TorchError {
    /// Shortens a libtorch message to one line.
    pub(crate) fn new(message: &str) -> TorchError {
        TorchError(gist(message).to_owned())
    }

    /// Returns whether the cause is a lack of memory, on the CPU or on a device.
    pub fn is_out_of_memory(&self) -> bool {
        const SIGNS: [&str; 3] = ["bad_alloc", "can't allocate memory", "out of memory"];
        SIGNS.iter().any(|sign| self.0.contains(sign))
    }
}

impl From<tch::TchError> for TorchError {
    fn from(error: tch::TchError) -> TorchError {
        TorchError::new(&error.to_string())
    }
}

impl From<TorchError> for BackendError {
    fn from(error: TorchError) -> BackendError {
        BackendError::Torch(error.to_string())
    }
}

/// The dtype in which a frozen network computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComputeType {
    /// The dtype of the network's floating-point tensors.
    pub kind: Kind,
    /// Whether dense layers over tokens multiply in int8. This requires the CPU and int8 kernels,
    /// whose dtype for the other layers must be `kind`.
    pub int8: bool,
}

impl From<Kind> for ComputeType {
    fn from(kind: Kind) -> ComputeType {
        ComputeType { kind, int8: false }
    }
}

impl From<ComputeType> for Precision {
    fn from(dtype: ComputeType) -> Precision {
        match dtype {
            ComputeType { int8: true, .. } => Precision::Int8,
            ComputeType {
                kind: Kind::BFloat16,
                ..
            } => Precision::Bf16,
            ComputeType {
                kind: Kind::Half, ..
            } => Precision::Fp16,
            ComputeType { .. } => Precision::F32,
        }
    }
}

/// An owned TorchScript module.
#[derive(Debug)]
pub struct Module(NonNull<shim::Module>);

// SAFETY: modules have atomic reference counts. `forward` is the only method that several threads
// run concurrently, and libtorch locks what they share. Methods that change a module take it by
// `&mut` or by value.
unsafe impl Send for Module {}
// SAFETY: the reasons for `Send` also apply to `Sync`.
unsafe impl Sync for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the pointer was created by the shim and is freed only once.
        unsafe { shim::tessera_module_free(self.0.as_ptr()) }
    }
}

impl Module {
    /// Reads a TorchScript file from memory onto the CPU. The file is not checked, and libtorch
    /// runs its code. To load networks, use [`open`](super::open).
    ///
    /// # Errors
    /// [`TorchError`] if the bytes are not a complete TorchScript file.
    pub fn load(file: &[u8]) -> Result<Module, TorchError> {
        let mut module = ptr::null_mut();
        // SAFETY: the bytes outlive the call, which copies everything that it needs later.
        let loaded = check(unsafe {
            shim::tessera_module_load(file.as_ptr().cast(), file.len(), &raw mut module)
        });
        // libtorch's message speculates at length about the cause after the first sentence.
        loaded.map_err(|TorchError(message)| {
            let first = message.split(". ").next().unwrap_or_default();
            TorchError(first.to_owned())
        })?;
        owned(module)
    }

    /// Returns a copy that shares nothing with the module.
    ///
    /// # Errors
    /// [`TorchError`] if there is not enough memory.
    pub fn copy(&self) -> Result<Module, TorchError> {
        let mut module = ptr::null_mut();
        // SAFETY: the module and the output pointer are valid for the call.
        check(unsafe { shim::tessera_module_copy(self.0.as_ptr(), &raw mut module) })?;
        owned(module)
    }

    /// Returns the module's parameters and buffers by name, including those of its submodules.
    ///
    /// # Errors
    /// [`TorchError`] if one of them is not a dense tensor of plain numbers in CPU memory that lies
    /// entirely within its storage.
    pub fn tensors(&self) -> Result<Vec<(String, Tensor)>, TorchError> {
        let mut tensors = Vec::new();
        let context: *mut Vec<(String, Tensor)> = &raw mut tensors;
        // SAFETY: the module is valid, and `context` is what `collect` expects.
        check(unsafe { shim::tessera_module_tensors(self.0.as_ptr(), context.cast(), collect) })?;
        Ok(tensors)
    }

    /// Moves the module to a device, converts its floating-point tensors to `kind` and freezes it:
    /// its parameters become constants of a graph that is optimised for inference. Only the method
    /// `forward` remains.
    ///
    /// # Errors
    /// [`TorchError`] if the device does not have enough memory or the module cannot be frozen.
    ///
    /// # Panics
    /// Panics if `kind` is not Float, BFloat16 or Half, or if the device is neither the CPU nor
    /// CUDA.
    pub fn freeze(self, device: Device, kind: Kind) -> Result<Module, TorchError> {
        let device = match device {
            Device::Cpu => -1,
            Device::Cuda(number) => c_int::try_from(number).unwrap_or(c_int::MAX),
            other => panic!("networks do not run on {other:?}"),
        };
        let kind = match kind {
            Kind::Float => 0,
            Kind::BFloat16 => 1,
            Kind::Half => 2,
            other => panic!("networks are not computed in {other:?}"),
        };
        // The fuser would compile CUDA kernels at run time, again for many batch sizes, and it
        // requires another library.
        tch::jit::set_tensor_expr_fuser_enabled(false);
        // SAFETY: the module is valid and not shared.
        check(unsafe { shim::tessera_module_freeze(self.0.as_ptr(), device, kind) })?;
        Ok(self)
    }

    /// Runs `forward` on one tensor in inference mode, and returns the tensors of the resulting
    /// tuple. They have no gradients.
    ///
    /// # Errors
    /// [`TorchError`] if the module rejects the input or the device fails.
    pub fn forward(&self, input: &Tensor) -> Result<Vec<Tensor>, TorchError> {
        let mut outputs: Vec<(String, Tensor)> = Vec::new();
        let context: *mut Vec<(String, Tensor)> = &raw mut outputs;
        // SAFETY: the module and the input are valid, and `context` is what `collect` expects.
        check(unsafe {
            let input = input.as_ptr().cast();
            shim::tessera_module_forward(self.0.as_ptr(), input, context.cast(), collect)
        })?;
        Ok(outputs.into_iter().map(|(_, tensor)| tensor).collect())
    }
}

/// Returns the elements of a contiguous f32 tensor on the CPU, row by row. For any other tensor,
/// the slice is empty.
pub(crate) fn floats(tensor: &Tensor) -> &[f32] {
    let plain = tensor.kind() == Kind::Float
        && tensor.device() == Device::Cpu
        && tensor.is_contiguous()
        && tensor.numel() > 0;
    if !plain {
        return &[];
    }
    // SAFETY: a contiguous f32 tensor on the CPU has `numel` aligned values at `data_ptr` for as
    // long as it lives, and nothing here writes to them.
    unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast(), tensor.numel()) }
}

/// Takes ownership of a tensor from the shim.
///
/// # Safety
/// `context` must point to a `Vec<(String, Tensor)>`, `name` to a string, and `tensor` to a tensor
/// that nothing else will free.
unsafe extern "C" fn collect(
    context: *mut c_void,
    name: *const c_char,
    tensor: *mut shim::RawTensor,
) {
    // SAFETY: guaranteed by the caller.
    let (tensors, name, tensor) = unsafe {
        (
            &mut *context.cast::<Vec<(String, Tensor)>>(),
            CStr::from_ptr(name),
            Tensor::from_ptr(tensor.cast()),
        )
    };
    tensors.push((name.to_string_lossy().into_owned(), tensor));
}

fn owned(module: *mut shim::Module) -> Result<Module, TorchError> {
    NonNull::new(module)
        .map(Module)
        .ok_or_else(|| TorchError("no module came back".to_owned()))
}

pub(super) fn c_string(text: &str) -> Result<CString, TorchError> {
    CString::new(text).map_err(|error| TorchError(error.to_string()))
}

/// Converts the shim's return value into a result.
pub(super) fn check(error: *mut c_char) -> Result<(), TorchError> {
    // SAFETY: the shim returns null or a string that it owns.
    match unsafe { take_text(error) } {
        None => Ok(()),
        Some(message) => Err(TorchError::new(&message)),
    }
}

/// Returns the line of libtorch's message that describes the error. The interpreter puts this line
/// last, after a trace of the module's code. All other parts of libtorch put it first.
fn gist(message: &str) -> &str {
    let mut lines = message.lines().map(str::trim);
    lines
        .clone()
        .rev()
        .find_map(|line| line.strip_prefix("RuntimeError: "))
        .or_else(|| lines.find(|line| !line.is_empty()))
        .unwrap_or("libtorch failed without saying why")
}

#[cfg(test)]
pub(super) mod tests;
