//! ONNX, out and in.

mod builder;
mod graph;
mod interface;
mod leela2onnx;
mod operators;
mod read;
mod schema;
mod tensor;
mod wrap;
mod write;

pub use operators::Inexpressible;
pub use read::{OnnxSummary, read, summary};
pub use tensor::TensorError;
pub use wrap::wrap_in_lc0;
pub use write::write;

use crate::interop::lc0::Lc0Error;
use crate::network::graph::GraphError;

/// Why a network cannot be written as ONNX, or read from it.
#[derive(Debug, thiserror::Error)]
pub enum OnnxError {
    /// A weights file of Lc0's that cannot be read.
    #[error(transparent)]
    Lc0(#[from] Lc0Error),
    /// Positions that Lc0 does not encode.
    #[error("the network reads positions in a way that Lc0 does not write them")]
    InputFormat,
    /// An operator that ONNX has no counterpart of.
    #[error(transparent)]
    Inexpressible(#[from] Inexpressible),
    /// libtorch refused.
    #[error("libtorch could not follow the network: {0}")]
    Torch(String),
    /// More than protobuf can hold.
    #[error("the network takes {0} bytes, more than an ONNX file can hold: fp16 takes half")]
    TooLarge(usize),
    /// Not protobuf.
    #[error("this is no ONNX file, or a damaged one: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// Protobuf of something else.
    #[error("this is no ONNX file: it holds no graph")]
    NoModel,
    /// Operators of another version than those known here.
    #[error("version {0} of ONNX's operators is not supported; 7 to 24 are")]
    OperatorSet(i64),
    /// A flood of messages.
    #[error("the file has too many parts")]
    TooManyFields,
    /// A graph in which a name is not clear.
    #[error("two nodes of the graph make {0}")]
    MadeTwice(String),
    /// The planes cannot be told from other inputs.
    #[error("the network has {0} inputs; Lc0's have one, the planes")]
    Inputs(usize),
    /// Outputs that no player can do without.
    #[error(
        "the network has no output for {missing}, its outputs are {found}: Lc0 calls them /output/policy, /output/wdl, /output/value and /output/mlh"
    )]
    NoOutput {
        /// What they would say.
        missing: &'static str,
        /// The names of those that are there.
        found: String,
    },
    /// A tensor that cannot be read.
    #[error("the tensor {name} cannot be read: {source}")]
    Tensor {
        /// Its name.
        name: String,
        /// Why.
        source: TensorError,
    },
    /// A graph that cannot be run.
    #[error(transparent)]
    Graph(#[from] GraphError),
}
