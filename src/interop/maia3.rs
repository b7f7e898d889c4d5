//! Maia-3 checkpoints, as published by their authors (CSSLab/maia3).

mod checkpoint;

pub use checkpoint::{Maia3Summary, read, summary};

use super::pytorch::CheckpointError;
use crate::network::WeightsError;
use crate::network::maia3::Maia3ConfigError;

/// Why a file cannot be used as a Maia-3 network.
#[derive(Debug, thiserror::Error)]
pub enum Maia3Error {
    /// The checkpoint is unreadable.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A parameter is missing.
    #[error("it has no parameter `{0}`: not a Maia-3 checkpoint (truncated?)")]
    Missing(String),
    /// Two parameters have the same name once the prefixes of training wrappers are removed.
    #[error("it has two parameters `{0}`")]
    Twice(String),
    /// The shape of a parameter does not fit the other parameters.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A parameter is not a matrix, but should be.
    #[error("its parameter `{name}` has the shape {found:?} in place of a matrix's")]
    NoMatrix {
        /// The parameter.
        name: String,
        /// The parameter's shape.
        found: Vec<i64>,
    },
    /// A parameter has integer values.
    #[error("its parameter `{0}` does not contain floating-point numbers")]
    Integers(String),
    /// A parameter has NaN or infinite values.
    #[error("its parameter `{0}` holds numbers that are not finite")]
    NotFinite(String),
    /// The structure differs from the published networks.
    #[error("unsupported Maia-3 network: it has {0}")]
    Unsupported(String),
    /// The sizes do not fit together.
    #[error(transparent)]
    Config(#[from] Maia3ConfigError),
    /// The parameters together are larger than the file, so they must share memory.
    #[error("its parameters share memory")]
    Shared,
}
