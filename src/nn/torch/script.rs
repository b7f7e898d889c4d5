//! Writing networks: a forward pass in Rust becomes a TorchScript file.
//!
//! A network of any family is a set of named tensors and a function over them. The
//! function runs once under libtorch's tracer, which records it as the file's
//! `forward`.

use super::shim::{self, RawTensor};
use super::{TorchError, module, words};
use crate::atomic_file;
use crate::chess::Game;
use crate::encode::Input;
use crate::nn::{Metadata, tensor_hash};
use std::ffi::{CString, c_int, c_void};
use std::path::{Path, PathBuf};
use tch::{Device, Kind, Tensor};

/// In which format a network's file stores its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportPrecision {
    /// 32-bit floating point.
    F32,
    /// bfloat16.
    Bf16,
    /// IEEE half precision: half the bytes, and far finer than the differences
    /// between two trainings.
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

    /// The format's number among libtorch's scalar types (c10::ScalarType),
    /// which tch keeps to itself.
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
        /// What the system said.
        source: std::io::Error,
    },
    /// libtorch refused.
    #[error("libtorch could not write the network: {0}")]
    Torch(#[from] TorchError),
}

/// A network about to be written.
pub struct Script<'a> {
    /// Its parameters by name (a path whose parts are parted by dots), on the
    /// CPU; they are stored in the file's precision.
    pub parameters: &'a [(String, Tensor)],
    /// Its other tensors by name: they are stored as they are.
    pub buffers: &'a [(String, Tensor)],
    /// From the parameters, in their order, and rows of words, i64
    /// [B, 104 + scalars], to the outputs that the metadata names. It reads
    /// `buffers` by the very tensors given here, else they end up in the file
    /// twice.
    pub forward: &'a dyn Fn(&[Tensor], &Tensor) -> Vec<Tensor>,
}

impl Script<'_> {
    /// Writes the network as one TorchScript file, all of it or nothing. The
    /// metadata comes back with the hash filled in, as the file's `meta()` says
    /// it.
    ///
    /// # Errors
    /// [`ScriptError`] if libtorch or the file system refuse.
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
        // What is traced is what is stored: rounding comes first. And each tensor
        // gets memory of its own, else a view would bring along all it looks at.
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
        let example = example(metadata);
        let json = serde_json::to_string(metadata).expect("plain data");
        let json = module::c_string(&json)?;
        let path = module::c_string(&path.to_string_lossy())?;
        let mut pass = Pass {
            forward: self.forward,
            weights,
        };
        // SAFETY: the arrays hold as many pointers as said and outlive the call,
        // as do the tensors, the strings and the pass; `run` unwinds nowhere.
        module::check(unsafe {
            shim::tessera_script_write(
                name_pointers.as_ptr(),
                tensors.as_ptr(),
                self.parameters.len(),
                self.buffers.len(),
                json.as_ptr(),
                example.as_ptr().cast(),
                run,
                (&raw mut pass).cast(),
                metadata.outputs.len(),
                precision.scalar_type(),
                path.as_ptr(),
            )
        })
    }
}

/// The initial position as the network reads it, in two rows, so that nothing
/// takes the batch's size for a constant 1.
fn example(metadata: &Metadata) -> Tensor {
    let input = Input::encode(&Game::default());
    let all: &[i64] = bytemuck::cast_slice(input.words());
    let row = match words(&metadata.scalars) {
        None => Tensor::from_slice(all),
        Some(words) => {
            let chosen: Vec<i64> = words.into_iter().map(|word| all[word]).collect();
            Tensor::from_slice(&chosen)
        }
    };
    row.repeat([2, 1])
}

/// What the forward pass needs when C++ calls it back.
struct Pass<'a> {
    forward: &'a dyn Fn(&[Tensor], &Tensor) -> Vec<Tensor>,
    weights: &'a [Tensor],
}

unsafe extern "C" fn run(
    context: *mut c_void,
    rows: *mut RawTensor,
    outputs: *mut *mut RawTensor,
    count: usize,
) -> c_int {
    let pass = std::panic::AssertUnwindSafe(|| {
        // SAFETY: `trace` hands over a `Pass` that outlives the call.
        let pass = unsafe { &*context.cast::<Pass>() };
        // SAFETY: `rows` is a live tensor of the caller's; the clone is ours.
        let rows = unsafe { Tensor::clone_from_ptr(rows.cast()) };
        (pass.forward)(pass.weights, &rows)
    });
    let Ok(tensors) = std::panic::catch_unwind(pass) else {
        return 1;
    };
    if tensors.len() != count {
        return 1;
    }
    for (index, mut tensor) in tensors.into_iter().enumerate() {
        // SAFETY: there is room for `count` pointers; the clone behind this one
        // belongs to the caller from here on, who deletes it.
        unsafe {
            *outputs.add(index) = torch_sys::at_shallow_clone(tensor.as_mut_ptr()).cast();
        }
    }
    0
}
