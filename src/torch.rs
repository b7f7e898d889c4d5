//! Networks that run on libtorch.

mod archive;
pub mod check;
mod contents;
mod device;
pub(crate) mod fused;
pub(crate) mod gpu;
mod hash;
mod inference_mode;
mod module;
mod numbers;
mod pickle;
pub(crate) mod process;
mod profile;
mod script;
pub(crate) mod shim;
#[cfg(test)]
#[path = "torch/tests/tiny.rs"]
pub(crate) mod tiny;

pub use device::{DeviceError, device};
pub use fused::compute_as_on_a_gpu;
pub use hash::tensor_hash;
pub(crate) use module::floats as slice;
pub use module::{ComputeType, Module, TorchError};
pub use pickle::PickleError;
pub use process::{CudaStatus, Environment, LIBTORCH_VERSION, environment};
pub use profile::Trace;
pub use script::{ExportPrecision, Run, Script, ScriptError, TracedMethod};

pub(crate) use archive::{Archive, ArchiveError};
pub(crate) use contents::{NetworkFile, contents};
pub use contents::{describe, open};
pub(crate) use device::{has_format, receive, resolve_for, send, staged, words_of};
pub(crate) use inference_mode::InferenceMode;
pub(crate) use numbers::{bytes, caught, floats, rows, words};
pub(crate) use pickle::{Object, Pickle, View};

use crate::backend::{ContractError, Way};
use check::{CheckError, Refusal};

/// Why a network cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The file is not a network file.
    #[error(
        "it is not a TorchScript file: `tessera import` converts networks of other programs (Lc0's weights, ONNX, Maia-3 checkpoints)"
    )]
    OtherFormat,
    /// There is not enough memory to load the network.
    #[error("there is not enough memory for it: {0}")]
    OutOfMemory(String),
    /// The file is not TorchScript, or is damaged.
    #[error(
        "it is not a valid TorchScript file (truncated or corrupt?): {0}; fetch it again, or export it again with `tessera-train export`"
    )]
    NotTorchScript(String),
    /// The file contains code that our exporters do not write, which might do anything.
    #[error("{0}; AllowNetworkCode (--allow-code) runs it anyway: only if you trust the file")]
    Refused(#[from] Refusal),
    /// The TorchScript file was written by another program.
    #[error(
        "it is a TorchScript file without the record `extra/metadata.json`, so not a network of this engine: `tessera-train export` writes those"
    )]
    Foreign,
    /// The network file was written by another version of this program.
    #[error("{0}: export it again with `tessera-train export` of this version")]
    Contract(#[from] ContractError),
    /// The tensors differ from those that were exported.
    #[error("it is damaged (its tensors do not match its `hash`): fetch it again")]
    Hash,
    /// libtorch cannot run the network on this machine.
    #[error("libtorch cannot run it: {0}")]
    Torch(#[source] TorchError),
    /// An output's shape differs from the contract.
    #[error("its output `{name}` has the shape {found:?} in place of {expected:?}")]
    Output {
        /// The output.
        name: String,
        /// The shape of the output.
        found: Vec<i64>,
        /// The shape that the contract states.
        expected: Vec<i64>,
    },
    /// The device is not available.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The requested way cannot run the network here.
    #[error("the way `{0}` cannot run it on this device in this precision: leave Way at auto")]
    Way(Way),
}

impl From<TorchError> for NetworkError {
    fn from(error: TorchError) -> NetworkError {
        match error.is_out_of_memory() {
            true => NetworkError::OutOfMemory(error.to_string()),
            false => NetworkError::Torch(error),
        }
    }
}

impl From<CheckError> for NetworkError {
    fn from(error: CheckError) -> NetworkError {
        match error {
            CheckError::Archive(ArchiveError::OutOfMemory(error)) => {
                NetworkError::OutOfMemory(error.to_string())
            }
            CheckError::Archive(error) => NetworkError::NotTorchScript(error.to_string()),
            CheckError::Refused(refusal) => NetworkError::Refused(refusal),
        }
    }
}

#[cfg(test)]
mod tests;
