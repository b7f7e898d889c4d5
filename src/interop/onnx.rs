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
    /// An unreadable Lc0 weights file.
    #[error(transparent)]
    Lc0(#[from] Lc0Error),
    /// An input encoding that Lc0 lacks.
    #[error("the network reads positions in a way that Lc0 does not write them")]
    InputFormat,
    /// An operator without an ONNX counterpart.
    #[error(transparent)]
    Inexpressible(#[from] Inexpressible),
    /// libtorch refused.
    #[error("libtorch could not follow the network: {0}")]
    Torch(String),
    /// More than protobuf can store.
    #[error("the network takes {0} bytes, more than an ONNX file can hold: fp16 takes half")]
    TooLarge(usize),
    /// Not protobuf.
    #[error("not an ONNX file, or a damaged one: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// A protobuf of something else.
    #[error("not an ONNX file: it has no graph")]
    NoModel,
    /// A flood of messages.
    #[error("the file has too many parts")]
    TooManyFields,
    /// Exported by this program.
    #[error(
        "this ONNX was exported by Tessera, which does not read it back: use the network file (.pt) that it came from"
    )]
    Own,
    /// A graph of another program, or of another version of Lc0's converter.
    #[error("not ONNX as Lc0's leela2onnx writes it, which alone is read: {0}")]
    NotLc0s(String),
    /// A tensor that cannot be read.
    #[error("the tensor {name} cannot be read: {source}")]
    Tensor {
        /// Its name.
        name: String,
        /// Why.
        source: TensorError,
    },
}
