//! Lc0 network files: residual towers with squeeze and excitation, attention bodies from T1 to
//! BT4, their heads, and our own Chessformers converted for Lc0.
//!
//! Layouts and semantics are those that Lc0 0.33 evaluates, in its BLAS backend and its converter
//! to ONNX; the schema is LeelaChessZero/lczero-common's.
//!
//! A file becomes a [`Network`](crate::network::Network) of the family
//! [`Lc0`](crate::network::Lc0), from which the same file can be written again.

pub(crate) mod container;
mod file;
mod fold;
pub(super) mod format;
mod from_chessformer;
mod heads;
pub(super) mod infer;
mod layer;
pub(crate) mod schema;
pub(super) mod sizes;
pub(crate) mod summary;
mod tensors;

pub use container::is_weights_file;
pub use file::{read, write};
pub use from_chessformer::for_lc0;
pub use layer::Lc0Encoding;
pub use summary::{Lc0Summary, summary};

use crate::network::WeightsError;
use crate::network::lc0::Lc0ConfigError;

/// Major and minor version of the newest Lc0 whose files are read.
const NEWEST_LC0: (u32, u32) = (0, 33);

/// Why an Lc0 network cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Lc0Error {
    /// The compressed data is damaged or ends early.
    #[error("the compressed file is damaged: {0}")]
    Gzip(std::io::Error),
    /// The file is a decompression bomb, or not a network.
    #[error("the file inflates to more than {bound} bytes")]
    TooLarge {
        /// Bytes after which reading stopped.
        bound: u64,
    },
    /// The file does not begin like an Lc0 file.
    #[error("not an Lc0 weights file")]
    Magic,
    /// The protobuf is damaged.
    #[error("the weights file is damaged: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// The protobuf ends early.
    #[error("the weights file is damaged: it ends early")]
    Truncated,
    /// A flood of empty messages.
    #[error("the weights file has too many layers")]
    TooManyLayers,
    /// The file contains an ONNX model instead of weights.
    #[error("the weights file holds an ONNX model, no weights of Lc0's own")]
    Onnx,
    /// The file contains neither weights nor a model.
    #[error("the weights file holds no weights")]
    Empty,
    /// A required tensor is missing.
    #[error("the weights file lacks `{0}`")]
    Missing(String),
    /// A tensor whose size does not fit the others.
    #[error("`{name}` holds {found} numbers, not {shape:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// The number of elements.
        found: i64,
        /// The shape that the other tensors require.
        shape: Vec<i64>,
    },
    /// A tensor with NaN or infinite values.
    #[error("`{0}` holds numbers that are not finite")]
    NotFinite(String),
    /// The file requires a later Lc0 than the newest one known here.
    #[error(
        "the weights file requires Lc0 {asked} or newer; files for Lc0 up to {}.{} are supported",
        newest.0,
        newest.1
    )]
    TooNew {
        /// The oldest Lc0 that reads it, as the file states.
        asked: String,
        /// Major and minor version of the newest Lc0 supported.
        newest: (u32, u32),
    },
    /// A present or future feature of Lc0 that we do not evaluate.
    #[error("Lc0 networks with {0} are not supported")]
    Unsupported(String),
    /// Parts that do not fit together, or a missing head.
    #[error(transparent)]
    Config(#[from] Lc0ConfigError),
    /// A network whose tensors do not match its architecture.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A part that Lc0's format has no fields for.
    #[error("Lc0's format cannot express {0}")]
    Inexpressible(String),
}
