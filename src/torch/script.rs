//! Writes networks by converting a forward pass in Rust to a TorchScript file.
//!
//! A network of any family is a set of named tensors and functions on them. Each function runs once
//! under libtorch's tracer, which records it as a method in the file.

use super::shim::{self, RawTensor};
use super::{TorchError, module};
use crate::atomic_file;
use crate::backend::Metadata;
use crate::backend::metadata::{Method, RECORD, TensorSpec};
use crate::torch::tensor_hash;
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use tch::{Device, Kind, Tensor};

/// The format in which a network's file stores its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportPrecision {
    /// 32-bit floating point.
    F32,
    /// bfloat16.
    Bf16,
    /// IEEE half precision: half the size of f32, with rounding errors far below the differences
    /// between two training runs.
    #[default]
    Fp16,
}

impl ExportPrecision {
    fn kind(self) -> Kind {
        match self {
            ExportPrecision::F32 => Kind::Float,
            ExportPrecision::Bf16 => Kind::BFloat16,
            ExportPrecision::Fp16 => Kind::Half,
        }
    }

    /// Returns the format's number among libtorch's scalar types (c10::ScalarType), which tch does
    /// not expose.
    fn scalar_type(self) -> c_int {
        match self {
            ExportPrecision::F32 => 6,
            ExportPrecision::Bf16 => 15,
            ExportPrecision::Fp16 => 5,
        }
    }
}

/// Why a network could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// libtorch failed.
    #[error("libtorch could not write the network: {0}")]
    Torch(#[from] TorchError),
}

/// A method to trace.
pub struct TracedMethod<'a> {
    /// The name of the method.
    pub name: &'static str,
    /// The inputs, in order.
    pub inputs: Vec<TensorSpec>,
    /// The outputs, in order.
    pub outputs: Vec<TensorSpec>,
    /// The arguments with which the method is traced. Variable sizes must not be 1 in them, because
    /// sizes of 1 would become constants.
    pub example: Vec<Tensor>,
    /// The function, which maps the parameters, in order, and the arguments to the results. It must
    /// access buffers through the same tensors as [`Script::buffers`]; otherwise they would be
    /// stored twice.
    pub run: Box<Run<'a>>,
}

/// A function of parameters and arguments.
pub type Run<'a> = dyn Fn(&[Tensor], &[Tensor]) -> Vec<Tensor> + 'a;

impl TracedMethod<'_> {
    /// Returns the method's entry in the metadata.
    pub fn described(&self) -> (String, Method) {
        let method = Method {
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
        };
        (self.name.to_owned(), method)
    }
}

/// A network to write.
pub struct Script<'a> {
    /// The parameters on the CPU, by name (a path with parts separated by dots). They are stored in
    /// the file's precision.
    pub parameters: &'a [(String, Tensor)],
    /// The other tensors, by name. They are stored unchanged.
    pub buffers: &'a [(String, Tensor)],
    /// The methods to trace.
    pub methods: &'a [TracedMethod<'a>],
}

impl Script<'_> {
    /// Writes the network as one TorchScript file, atomically. Returns the metadata with the hash
    /// filled in, which the file's `meta()` also returns.
    ///
    /// # Errors
    /// [`ScriptError`] if libtorch or the file system fails.
    pub fn write(
        &self,
        metadata: Metadata,
        precision: ExportPrecision,
        path: &Path,
    ) -> Result<Metadata, ScriptError> {
        let _guard = tch::no_grad_guard();
        let kind = precision.kind();
        let rounded = |tensor: &Tensor| tensor.detach().to_device(Device::Cpu).to_kind(kind);
        let stored = self
            .parameters
            .iter()
            .map(|(name, tensor)| (name.clone(), rounded(tensor)))
            .collect::<Vec<_>>();
        // Parameters are rounded first, so that the trace uses the stored values. Each tensor gets
        // its own memory, because storing a view would store all the memory that the view shares.
        let weights: Vec<Tensor> = stored
            .iter()
            .map(|(_, tensor)| tensor.to_kind(Kind::Float).copy())
            .collect();
        let buffers = self.buffers.iter();
        let buffers = buffers.map(|(name, tensor)| (name.clone(), tensor.shallow_clone()));
        let metadata = Metadata {
            hash: tensor_hash(stored.into_iter().chain(buffers)),
            ..metadata
        };
        let failed = |source| ScriptError::Write {
            path: path.to_owned(),
            source,
        };
        let unfinished = atomic_file::unfinished(path).map_err(failed)?;
        self.trace(&weights, &metadata, precision, unfinished.path())?;
        atomic_file::persist(unfinished, path).map_err(failed)?;
        Ok(metadata)
    }

    fn trace(
        &self,
        weights: &[Tensor],
        metadata: &Metadata,
        precision: ExportPrecision,
        path: &Path,
    ) -> Result<(), TorchError> {
        let names = self.parameters.iter().chain(self.buffers);
        let names = names
            .map(|(name, _)| module::c_string(name))
            .collect::<Result<Vec<CString>, _>>()?;
        let name_pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let buffers = self.buffers.iter().map(|(_, tensor)| tensor);
        let tensors: Vec<*const RawTensor> = weights
            .iter()
            .chain(buffers)
            .map(|tensor| tensor.as_ptr().cast())
            .collect();
        let passes: Vec<Pass> = self
            .methods
            .iter()
            .map(|method| Pass::new(method, weights))
            .collect::<Result<_, _>>()?;
        let methods: Vec<shim::Method> = passes.iter().map(Pass::described).collect();
        let json = serde_json::to_string(metadata).expect("plain data");
        let json = module::c_string(&json)?;
        let record = module::c_string(RECORD)?;
        let path = module::c_string(&path.to_string_lossy())?;
        // SAFETY: the arrays have the stated numbers of pointers. The arrays, the tensors, the
        // strings and the passes outlive the call. `run` never unwinds.
        module::check(unsafe {
            shim::tessera_script_write(
                name_pointers.as_ptr(),
                tensors.as_ptr(),
                self.parameters.len(),
                self.buffers.len(),
                json.as_ptr(),
                record.as_ptr(),
                methods.as_ptr(),
                methods.len(),
                run,
                precision.scalar_type(),
                path.as_ptr(),
            )
        })
    }
}

/// A method, with the data about it that C++ needs.
struct Pass<'a> {
    name: CString,
    /// Names of the arguments, and pointers to them.
    arguments: Vec<CString>,
    argument_pointers: Vec<*const c_char>,
    examples: Vec<*const RawTensor>,
    method: &'a TracedMethod<'a>,
    weights: &'a [Tensor],
}

impl<'a> Pass<'a> {
    fn new(method: &'a TracedMethod, weights: &'a [Tensor]) -> Result<Pass<'a>, TorchError> {
        assert_eq!(method.inputs.len(), method.example.len());
        let arguments = method.inputs.iter();
        let arguments = arguments
            .map(|input| module::c_string(&input.name))
            .collect::<Result<Vec<CString>, _>>()?;
        let examples = method.example.iter();
        Ok(Pass {
            name: module::c_string(method.name)?,
            argument_pointers: arguments.iter().map(|name| name.as_ptr()).collect(),
            arguments,
            examples: examples.map(|tensor| tensor.as_ptr().cast()).collect(),
            method,
            weights,
        })
    }

    fn described(&self) -> shim::Method {
        shim::Method {
            name: self.name.as_ptr(),
            arguments: self.argument_pointers.as_ptr(),
            examples: self.examples.as_ptr(),
            inputs: self.arguments.len(),
            outputs: self.method.outputs.len(),
            context: std::ptr::from_ref(self).cast_mut().cast(),
        }
    }
}

/// Runs the method of a pass on these arguments.
unsafe extern "C" fn run(
    context: *mut c_void,
    arguments: *const *mut RawTensor,
    outputs: *mut *mut RawTensor,
) -> c_int {
    // SAFETY: `trace` passes a `Pass` that outlives the call, a live tensor for each of the method's
    // inputs and room for each of its outputs.
    unsafe {
        let Pass {
            method, weights, ..
        } = &*context.cast::<Pass>();
        let (inputs, count) = (method.inputs.len(), method.outputs.len());
        shim::answer((arguments, inputs), (outputs, count), |arguments| {
            (method.run)(weights, arguments)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::metadata::tests::metadata;

    /// Traces a multiplication by a parameter, and writes it to a file.
    fn write_a_product(path: &Path) -> Result<(), TorchError> {
        let numbers = |count: i64| Tensor::ones([count], (Kind::Float, Device::Cpu));
        let factor = numbers(1 << 16);
        let script = Script {
            parameters: &[("factor".to_owned(), factor.shallow_clone())],
            buffers: &[],
            methods: &[TracedMethod {
                name: "forward",
                inputs: vec![TensorSpec::of_output("q")],
                outputs: vec![TensorSpec::of_output("q")],
                example: vec![numbers(1 << 16)],
                run: Box::new(|parameters, x| vec![(&x[0] * &parameters[0]).to_kind(Kind::Double)]),
            }],
        };
        let metadata = metadata(&["policy"], "wdl");
        script.trace(&[factor], &metadata, ExportPrecision::F32, path)
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_disk_that_is_full_is_an_error() {
        let error = write_a_product(Path::new("/dev/full")).unwrap_err();
        assert!(
            error.to_string().contains("could not be written"),
            "{error}"
        );
    }

    #[test]
    fn traced_code_names_no_device() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("product.pt");
        write_a_product(&path).unwrap();
        let file = std::fs::read(path).unwrap();
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(file)).unwrap();
        let name = |name: &&str| name.ends_with("code/__torch__.py");
        let name = archive.file_names().find(name).unwrap().to_owned();
        let mut code = String::new();
        std::io::Read::read_to_string(&mut archive.by_name(&name).unwrap(), &mut code).unwrap();
        assert!(
            code.contains("torch.to(") && !code.contains("device"),
            "{code}"
        );
    }
}
