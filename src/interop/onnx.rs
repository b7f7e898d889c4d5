//! ONNX, out and in.

mod builder;
mod graph;
mod operators;
mod schema;
mod write;

pub use operators::Inexpressible;
pub use write::write;

use crate::model::RestoreError;
use crate::nn::torch::NetworkError;

/// Why a network could not be said in ONNX, or read from it.
#[derive(Debug, thiserror::Error)]
pub enum OnnxError {
    /// The network file cannot be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The network cannot be taken out of its file.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// A family of networks that cannot be said in ONNX.
    #[error("networks of the family `{0}` cannot be written as ONNX")]
    Family(String),
    /// An operator that cannot be said in ONNX.
    #[error(transparent)]
    Inexpressible(#[from] Inexpressible),
    /// libtorch refused.
    #[error("libtorch could not follow the network: {0}")]
    Torch(String),
    /// More than protobuf can hold.
    #[error("the network takes {0} bytes, more than an ONNX file can hold: fp16 takes half")]
    TooLarge(usize),
}
