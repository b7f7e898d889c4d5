//! From what files and configurations state of an architecture to its structure.

use super::architecture::{Architecture, ArchitectureConfig};
use super::chessformer::{self, Chessformer};
use super::lc0::{Lc0, Lc0ConfigError};
use super::maia3::{Maia3, Maia3ConfigError};
use tch::Device;

/// Why an architecture cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ArchitectureError {
    /// A Chessformer's sizes do not fit each other.
    #[error(transparent)]
    Chessformer(#[from] chessformer::ConfigError),
    /// The parts of a network of Lc0's do not fit each other.
    #[error(transparent)]
    Lc0(#[from] Lc0ConfigError),
    /// The sizes of a Maia-3 network do not fit each other.
    #[error(transparent)]
    Maia3(#[from] Maia3ConfigError),
    /// A graph is more than its configuration.
    #[error(
        "it is an ONNX graph of no family known here: such networks can be played, but not trained"
    )]
    Graph,
}

impl ArchitectureConfig {
    /// Builds the structure, for weights on `device`.
    ///
    /// # Errors
    /// [`ArchitectureError`] if the sizes do not fit each other, or it is a graph.
    pub fn build(&self, device: Device) -> Result<Box<dyn Architecture>, ArchitectureError> {
        Ok(match self {
            ArchitectureConfig::Chessformer { model } => Box::new(Chessformer::new(model, device)?),
            ArchitectureConfig::Lc0 { model, heads } => Box::new(Lc0::new(model, *heads, device)?),
            ArchitectureConfig::Maia3 { model } => Box::new(Maia3::new(model, device)?),
            ArchitectureConfig::Onnx { .. } => return Err(ArchitectureError::Graph),
        })
    }
}
