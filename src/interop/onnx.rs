//! ONNX, out and in.

mod budget;
mod builder;
mod config;
mod evaluate;
mod family;
mod graph;
mod interface;
mod network;
mod operators;
mod read;
mod schema;
mod summary;
mod tensor;
mod wrap;
mod write;

pub use config::{Attribute, NodeConfig, OnnxConfig, OutputConfig, OutputForm};
pub use evaluate::NodeError;
pub use network::OnnxNetwork;
pub use operators::Inexpressible;
pub use read::read;
pub use summary::OnnxSummary;
pub use tensor::TensorError;
pub use wrap::wrap_in_lc0;
pub use write::write;

use write::PLANES;

use crate::interop::lc0::Lc0Error;
use crate::interop::maia3::Maia3Error;
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
    /// A network of Lc0's family whose file does not fit together, or a weights
    /// file of Lc0's that cannot be read.
    #[error(transparent)]
    Lc0(#[from] Lc0Error),
    /// A network of Maia-3's whose file does not fit together.
    #[error(transparent)]
    Maia3(#[from] Maia3Error),
    /// What a network file says of itself is not of its family.
    #[error("the network's description cannot be read: {0}")]
    Description(#[from] serde_json::Error),
    /// Positions that Lc0 does not encode.
    #[error("the network reads positions in a way that Lc0 does not write them")]
    InputFormat,
    /// An operator that cannot be said in ONNX.
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
    #[error("the file has more parts than any network")]
    TooManyFields,
    /// A graph in which a name is not clear.
    #[error("two nodes of the graph make {0}")]
    MadeTwice(String),
    /// The planes cannot be told from other inputs.
    #[error("the network has {0} inputs; Lc0's have one, the planes")]
    Inputs(usize),
    /// An output that no player can do without.
    #[error(
        "the network has no output for {0}: Lc0 calls them /output/policy, /output/wdl, /output/value and /output/mlh"
    )]
    NoOutput(&'static str),
    /// An output of another shape than Lc0's.
    #[error("the network's output {name} has the shape {found:?} for two positions")]
    Output {
        /// Its name.
        name: String,
        /// Its shape.
        found: Vec<i64>,
    },
    /// A tensor that cannot be read.
    #[error("the tensor {name} cannot be read: {source}")]
    Tensor {
        /// Its name.
        name: String,
        /// Why.
        source: TensorError,
    },
    /// An operator that cannot be run.
    #[error(transparent)]
    Node(#[from] NodeError),
}
