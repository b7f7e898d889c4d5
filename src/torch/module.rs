//! TorchScript modules with features that [`tch::CModule`] lacks: loading from memory, multiple
//! outputs, freezing, and conversion of only the floating-point tensors.

use super::shim::{self, take_text};
use crate::backend::{BackendError, Precision};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
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
    /// Creates an empty module, to be filled with [`Module::register_parameter`],
    /// [`Module::register_buffer`] and [`Module::define`].
    ///
    /// # Errors
    /// [`TorchError`] if the name is not an identifier.
    pub fn create(name: &str) -> Result<Module, TorchError> {
        let name = c_string(name)?;
        let mut module = ptr::null_mut();
        // SAFETY: both pointers are valid for the call.
        check(unsafe { shim::tessera_module_create(name.as_ptr(), &raw mut module) })?;
        owned(module)
    }

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

    /// Writes the module as a TorchScript file.
    ///
    /// # Errors
    /// [`TorchError`] if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), TorchError> {
        let path = path
            .to_str()
            .ok_or_else(|| TorchError(format!("{} is not UTF-8", path.display())))?;
        let path = c_string(path)?;
        // SAFETY: the module is valid, and the string outlives the call.
        check(unsafe { shim::tessera_module_save(self.0.as_ptr(), path.as_ptr()) })
    }

    /// Compiles methods written in TorchScript, such as
    /// `def forward(self, x): return x`.
    ///
    /// # Errors
    /// [`TorchError`] if the source does not compile.
    pub fn define(&mut self, source: &str) -> Result<(), TorchError> {
        // The parser requires a final newline.
        let source = c_string(&format!("{source}\n"))?;
        // SAFETY: the module is valid, and the string outlives the call.
        check(unsafe { shim::tessera_module_define(self.0.as_ptr(), source.as_ptr()) })
    }

    /// Adds a trainable tensor.
    ///
    /// # Errors
    /// [`TorchError`] if the name is invalid.
    pub fn register_parameter(&mut self, name: &str, tensor: &Tensor) -> Result<(), TorchError> {
        self.register(name, tensor, true)
    }

    /// Adds a non-trainable tensor.
    ///
    /// # Errors
    /// [`TorchError`] if the name is invalid.
    pub fn register_buffer(&mut self, name: &str, tensor: &Tensor) -> Result<(), TorchError> {
        self.register(name, tensor, false)
    }

    fn register(&mut self, name: &str, tensor: &Tensor, parameter: bool) -> Result<(), TorchError> {
        let name = c_string(name)?;
        let tensor = tensor.as_ptr().cast();
        // SAFETY: all three pointers are valid, and the module takes its own reference to the
        // tensor.
        check(unsafe {
            shim::tessera_module_register(self.0.as_ptr(), name.as_ptr(), tensor, parameter)
        })
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

    /// Calls a method without arguments and returns its string, or `None` if the method does not
    /// exist.
    ///
    /// # Errors
    /// [`TorchError`] if the method fails or does not return a string.
    pub fn call_for_text(&self, method: &str) -> Result<Option<String>, TorchError> {
        let method = c_string(method)?;
        let mut text = ptr::null_mut();
        // SAFETY: all pointers are valid for the call.
        check(unsafe {
            shim::tessera_module_string(self.0.as_ptr(), method.as_ptr(), &raw mut text)
        })?;
        // SAFETY: the shim returns null or a string that it owns.
        Ok(unsafe { take_text(text) })
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
mod tests {
    use super::*;

    fn doubler() -> Module {
        let mut module = Module::create("Doubler").unwrap();
        let weight = Tensor::from_slice(&[2f32]);
        let index = Tensor::from_slice(&[0i64, 1]);
        module.register_parameter("weight", &weight).unwrap();
        module.register_buffer("index", &index).unwrap();
        module
            .define(
                "def forward(self, x):\n    y = x.to(self.weight.dtype) * self.weight\n    \
                 return y, y[self.index]\ndef meta(self):\n    return 'two'",
            )
            .unwrap();
        module
    }

    #[test]
    fn a_module_survives_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("doubler.pt");
        doubler().save(&path).unwrap();
        let module = Module::load(&std::fs::read(&path).unwrap()).unwrap();
        let names: Vec<String> = module.tensors().unwrap().into_iter().map(|t| t.0).collect();
        assert_eq!(names, ["weight", "index"]);
        assert_eq!(module.call_for_text("meta").unwrap().unwrap(), "two");
        assert_eq!(module.call_for_text("beta").unwrap(), None);
        let input = Tensor::from_slice(&[1i64, 2, 3]);
        for (module, kind) in [
            (
                Module::load(&std::fs::read(&path).unwrap()).unwrap(),
                Kind::Float,
            ),
            (module, Kind::BFloat16),
        ] {
            let module = module.freeze(Device::Cpu, kind).unwrap();
            let outputs = module.forward(&input).unwrap();
            assert_eq!(outputs[0].kind(), kind);
            assert_eq!(
                Vec::<f32>::try_from(outputs[0].to_kind(Kind::Float)).unwrap(),
                [2.0, 4.0, 6.0]
            );
            assert_eq!(outputs[1].size(), [2]);
        }
    }

    /// Returns two results of `forward` on `input`: the result of unmodified libtorch in f32, and
    /// that of the module frozen in `kind`.
    fn plain_and_frozen(forward: &str, input: &Tensor, kind: Kind) -> [Vec<f32>; 2] {
        let make = || {
            let mut module = Module::create("Operators").unwrap();
            let width = *input.size().last().unwrap();
            let weight = Tensor::linspace(-1, 2, width, (Kind::Float, Device::Cpu));
            module.register_parameter("weight", &weight).unwrap();
            module.define(forward).unwrap();
            module
        };
        let frozen = make().freeze(Device::Cpu, kind).unwrap();
        [(make(), Kind::Float), (frozen, kind)].map(|(module, kind)| {
            let output = &module.forward(&input.to_kind(kind)).unwrap()[0];
            assert_eq!((output.kind(), output.size()), (kind, input.size()));
            let output = output.to_kind(Kind::Float).contiguous();
            super::floats(&output).to_vec()
        })
    }

    const NORM: &str = "def forward(self, x):\n    \
                        return torch.rms_norm(x, [x.size(-1)], self.weight, 1e-6)";

    #[test]
    fn our_norm_agrees_with_that_of_libtorch() {
        for width in [1, 31, 32, 77, 256] {
            let input = Tensor::linspace(-30, 30, 64 * width, (Kind::Float, Device::Cpu));
            let input = input.view([width, 64]).transpose(0, 1).contiguous();
            for (kind, tolerance) in [(Kind::Float, 1e-5), (Kind::BFloat16, 0.02)] {
                let [plain, frozen] = plain_and_frozen(NORM, &input, kind);
                for (a, b) in plain.iter().zip(&frozen) {
                    let close = (a - b).abs() <= tolerance * a.abs().max(1.0);
                    assert!(close, "{kind:?} {width}: {a} {b}");
                }
                // Our kernel sums in another order, so equal results would mean that it is not in
                // use.
                let ours = kind == Kind::Float && width == 256;
                assert!(!ours || plain != frozen);
            }
        }
    }

    #[test]
    fn our_norm_keeps_what_is_no_number() {
        for number in [f32::NAN, f32::INFINITY] {
            let input = Tensor::from_slice(&[number, 1.0, 1.0, 1.0]).view([2, 2]);
            let [_, out] = plain_and_frozen(NORM, &input, Kind::BFloat16);
            assert!(
                out[0].is_nan() && out[2].is_finite() && out[3].is_finite(),
                "{out:?}"
            );
        }
    }

    #[test]
    fn a_lack_of_memory_is_known_on_every_device() {
        for (message, expected) in [
            ("std::bad_alloc", true),
            ("CUDA out of memory. Tried to allocate 20.00 GiB.", true),
            (
                "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory",
                true,
            ),
            ("PytorchStreamReader failed reading zip archive", false),
        ] {
            let error = TorchError(message.to_owned());
            assert_eq!(error.is_out_of_memory(), expected, "{message}");
        }
    }

    #[test]
    fn failures_are_errors_of_one_line() {
        let mut module = doubler();
        let tensor = Tensor::from(1f32);
        let mut unusual = Module::create("Unusual").unwrap();
        unusual
            .define("def forward(self, x): return 'no tensor'")
            .unwrap();
        let errors = [
            module.define("def forward(self:").unwrap_err(),
            module.register_parameter("a\0b", &tensor).unwrap_err(),
            module.define("a\0b").unwrap_err(),
            module
                .save(Path::new("/no/such/folder/net.pt"))
                .unwrap_err(),
            module.forward(&Tensor::from(1i64)).unwrap_err(),
            module.forward(&Tensor::from_slice(&[1i64])).unwrap_err(),
            unusual.forward(&Tensor::from(1i64)).unwrap_err(),
            Module::load(b"").unwrap_err(),
            Module::load(b"PK\x03\x04 not really").unwrap_err(),
        ];
        for error in errors {
            let message = error.to_string();
            assert!(!message.is_empty() && !message.contains('\n'), "{message}");
            println!("{message}");
        }
    }
}
