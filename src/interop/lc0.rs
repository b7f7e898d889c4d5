//! Lc0's own network files: residual towers with squeeze and excitation,
//! attention bodies from T1 to BT4, their heads, and our own Chessformers
//! written so that Lc0 plays them.
//!
//! Layouts and semantics are those that Lc0 0.33 evaluates, in its BLAS backend
//! and its converter to ONNX; the schema is LeelaChessZero/lczero-common's.
//!
//! A file becomes an [`Lc0Network`]: an [`Lc0Config`] and named tensors, from
//! which the same file can be made again.

mod choice;
mod config;
pub(crate) mod container;
mod fields;
mod fold;
mod format;
mod forward;
mod from_chessformer;
mod infer;
mod layer;
mod network;
pub(crate) mod schema;
mod size;
pub(crate) mod summary;

pub use choice::HeadChoice;
pub use config::{
    Activation, AttentionBody, EncoderConfig, Lc0Config, MovesLeftConfig, PolicyConfig, PolicyHead,
    PolicyHeadConfig, SmolgenConfig, SquareEmbedding, Tower, ValueHead, ValueHeadConfig,
};
pub use container::is_weights_file;
pub(super) use forward::{READ, planes};
pub use layer::Lc0Encoding;
pub use network::{Lc0Network, read, write};
pub use size::Lc0Size;
pub use summary::{Lc0Summary, summary};

/// Why a network of Lc0's cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Lc0Error {
    /// The compressed data is damaged or ends early.
    #[error("the compressed file is damaged: {0}")]
    Gzip(std::io::Error),
    /// The file is a bomb, or no network.
    #[error("the file inflates to more than {bound} bytes, which no network does")]
    TooLarge {
        /// Bytes after which reading was given up.
        bound: u64,
    },
    /// The file does not begin as Lc0's do.
    #[error("this is no weights file of Lc0's")]
    Magic,
    /// The protobuf is damaged.
    #[error("the weights file is damaged: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// The protobuf ends early.
    #[error("the weights file is damaged: it ends early")]
    Truncated,
    /// A flood of empty messages.
    #[error("the weights file has more layers than any network")]
    TooManyLayers,
    /// The file holds a model in ONNX instead of weights.
    #[error("the weights file holds an ONNX model, no weights of Lc0's own")]
    Onnx,
    /// The file has neither weights nor a model.
    #[error("the weights file holds no weights")]
    Empty,
    /// A tensor that the network cannot do without.
    #[error("the weights file lacks `{0}`")]
    Missing(String),
    /// A tensor whose size does not fit the others.
    #[error("`{name}` holds {found} numbers, not {shape:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// How many numbers it holds.
        found: i64,
        /// The shape that the other tensors ask for.
        shape: Vec<i64>,
    },
    /// A tensor with numbers that are none.
    #[error("`{0}` holds numbers that are not finite")]
    NotFinite(String),
    /// Something that Lc0 has, or will have, and we do not evaluate.
    #[error("Lc0 networks with {0} are not supported")]
    Unsupported(String),
    /// A TorchScript file describes its network in a way that none is.
    #[error("the network's description cannot be read: {0}")]
    Description(String),
    /// A head that the network does not have.
    #[error("the network has no {kind} head `{name}`; it has: {known}")]
    NoHead {
        /// `policy` or `value`.
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Something that Lc0's format has no fields for.
    #[error("Lc0's format cannot express {0}")]
    Inexpressible(String),
}
