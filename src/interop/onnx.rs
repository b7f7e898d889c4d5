//! Reads and writes ONNX.

mod builder;
mod graph;
mod leela2onnx;
mod operators;
mod read;
mod schema;
mod tensor;
mod wrap;
mod write;

pub use operators::Inexpressible;
pub use read::{read, summary};
pub use tensor::TensorError;
pub use wrap::wrap_in_lc0;
pub use write::write;

use crate::interop::lc0::Lc0Error;

/// Why a network cannot be written as ONNX, or read from it.
#[derive(Debug, thiserror::Error)]
pub enum OnnxError {
    /// The Lc0 weights file is unreadable.
    #[error(transparent)]
    Lc0(#[from] Lc0Error),
    /// Lc0 does not support the network's input encoding.
    #[error("the network reads positions in a format that Lc0 does not write")]
    InputFormat,
    /// An operator has no ONNX counterpart.
    #[error(transparent)]
    Inexpressible(#[from] Inexpressible),
    /// libtorch failed.
    #[error("libtorch could not trace the network: {0}")]
    Torch(String),
    /// The model is larger than protobuf can store.
    #[error("the network takes {0} bytes, more than an ONNX file can hold: fp16 takes half")]
    TooLarge(usize),
    /// The file is not protobuf.
    #[error("not an ONNX file, or a damaged one: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// The protobuf is not an ONNX model.
    #[error("not an ONNX file: it has no graph")]
    NoModel,
    /// The file contains more message fields than any network.
    #[error("the file has too many parts")]
    TooManyFields,
    /// The file was exported by this program.
    #[error(
        "this ONNX was exported by Tessera, which does not read it back: use the network file (.pt) that it came from"
    )]
    Own,
    /// The graph was written by another program or by another version of Lc0's converter.
    #[error("not ONNX as written by Lc0's leela2onnx, which alone is supported: {0}")]
    NotLc0s(String),
    /// A tensor cannot be read.
    #[error("the tensor {name} cannot be read: {source}")]
    Tensor {
        /// The tensor's name.
        name: String,
        /// The reason.
        source: TensorError,
    },
}
