//! Lc0 network files: residual towers with squeeze and excitation, attention bodies from T1 to BT4,
//! the heads of both, and our own Chessformers after conversion.
//!
//! Layouts and semantics follow the BLAS backend and the ONNX converter of Lc0 0.33. The schema is
//! from LeelaChessZero/lczero-common.
//!
//! A file is read as a [`Network`](crate::network::Network) of the [`Lc0`](crate::network::Lc0)
//! family. Writing that network reproduces the file.

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

/// Major and minor version of the newest supported Lc0.
const NEWEST_LC0: (u32, u32) = (0, 33);

/// Why an Lc0 network cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Lc0Error {
    /// The compressed data is damaged or truncated.
    #[error("the compressed file is damaged: {0}")]
    Gzip(std::io::Error),
    /// The file is too large for a network, and may be a decompression bomb.
    #[error("the file inflates to more than {bound} bytes")]
    TooLarge {
        /// Number of bytes after which reading stopped.
        bound: u64,
    },
    /// The file does not begin like an Lc0 file.
    #[error("not an Lc0 weights file")]
    Magic,
    /// The protobuf is damaged.
    #[error("the weights file is damaged: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// The protobuf is truncated.
    #[error("the weights file is damaged: it ends early")]
    Truncated,
    /// The file contains more messages than any network.
    #[error("the weights file has too many layers")]
    TooManyLayers,
    /// The file contains an ONNX model instead of weights.
    #[error("the weights file contains an ONNX model instead of Lc0's own weights")]
    Onnx,
    /// The file contains neither weights nor a model.
    #[error("the weights file holds no weights")]
    Empty,
    /// A required tensor is missing.
    #[error("the weights file lacks `{0}`")]
    Missing(String),
    /// The size of a tensor does not match the other tensors.
    #[error("`{name}` holds {found} numbers, not {shape:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// The tensor's number of elements.
        found: i64,
        /// The shape that the other tensors require.
        shape: Vec<i64>,
    },
    /// A tensor has NaN or infinite values.
    #[error("`{0}` holds numbers that are not finite")]
    NotFinite(String),
    /// The file requires a newer Lc0 than the newest supported one.
    #[error(
        "the weights file requires Lc0 {asked} or newer; files for Lc0 up to {}.{} are supported",
        newest.0,
        newest.1
    )]
    TooNew {
        /// The oldest Lc0 that can read the file, as the file states.
        asked: String,
        /// Major and minor version of the newest Lc0 supported.
        newest: (u32, u32),
    },
    /// The network uses a current or future Lc0 feature that is not supported here.
    #[error("Lc0 networks with {0} are not supported")]
    Unsupported(String),
    /// The sizes of the network's parts do not match, or a head is missing.
    #[error(transparent)]
    Config(#[from] Lc0ConfigError),
    /// The tensors do not match the architecture.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// Lc0's format has no fields for this part of the network.
    #[error("Lc0's format cannot express {0}")]
    Inexpressible(String),
}
