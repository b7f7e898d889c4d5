//! Maia-3: networks that choose moves as people of a given rating do.
//!
//! They are Chessformers of the Computational Social Science Lab in Toronto
//! (Monroe, Eilender, Chalmers, Tang and Anderson, "Chessformer: A Unified
//! Architecture for Chess Modeling", 2026), published as PyTorch checkpoints of
//! about 3, 5, 23 and 79 million parameters. What a checkpoint holds and how it
//! is evaluated follows the program published with them (CSSLab/maia3).
//!
//! They read the last eight positions, each from the view of its own mover, and
//! the ratings of both players. Castling rights, en passant, repetitions and
//! the 50-move rule are unknown to them.
//!
//! Their third head, besides the moves and the result, guesses how long a person
//! would think about the position (in units of 100 s). A search has no use for
//! that: the head's parameters are kept, so that nothing of a checkpoint is
//! lost, but it is not evaluated.

mod checkpoint;
mod config;
mod forward;
mod network;
mod policy;

pub use checkpoint::{Maia3Summary, read, summary};
pub use config::{GabConfig, Maia3Config, Maia3ConfigError, PRESETS};
pub use network::Maia3Network;

use super::pytorch::CheckpointError;

/// Why a file cannot be used as a Maia-3 network.
#[derive(Debug, thiserror::Error)]
pub enum Maia3Error {
    /// It is no checkpoint that can be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A parameter is not there.
    #[error("it has no parameter `{0}`: it is no Maia-3 checkpoint, or not all of one")]
    Missing(String),
    /// Two parameters have one name, once the wrappers of training are taken off.
    #[error("it has two parameters `{0}`")]
    Twice(String),
    /// A parameter has another shape than the other parameters demand.
    #[error("its parameter `{name}` has the shape {found:?} in place of {expected:?}")]
    Shape {
        /// The parameter.
        name: String,
        /// Its shape.
        found: Vec<i64>,
        /// The shape that fits the others.
        expected: Vec<i64>,
    },
    /// A parameter whose shape should be a matrix's.
    #[error("its parameter `{name}` has the shape {found:?} in place of a matrix's")]
    NoMatrix {
        /// The parameter.
        name: String,
        /// Its shape.
        found: Vec<i64>,
    },
    /// A parameter is of whole numbers.
    #[error("its parameter `{0}` is not of floating-point numbers")]
    Integers(String),
    /// A parameter holds numbers that are none.
    #[error("its parameter `{0}` holds numbers that are not finite")]
    NotFinite(String),
    /// Built otherwise than the published networks.
    #[error("it has {0}, which no published Maia-3 network has and this program cannot evaluate")]
    Unsupported(String),
    /// The sizes do not fit each other.
    #[error(transparent)]
    Config(#[from] Maia3ConfigError),
    /// A TorchScript file of another family.
    #[error("it is a network of the family {0}, not of Maia-3's")]
    Family(String),
    /// A TorchScript file describes its network in a way that none is.
    #[error("its description cannot be read: {0}")]
    Description(String),
    /// More parameters than the file has room for: they are one another's.
    #[error("its parameters share their memory as no network's do")]
    Shared,
}
