//! The families, each in one place: as files and configurations state them, and from
//! there to their structure.

use super::architecture::Architecture;
use super::chessformer::config::ModelConfig;
use super::chessformer::{self, Chessformer};
use super::diffusion::{Diffusion, DiffusionConfig, DiffusionConfigError};
use super::gpt::{Gpt, GptConfig, GptConfigError};
use super::graph::config::GraphConfig;
use super::lc0::choice::HeadChoice;
use super::lc0::config::Lc0Config;
use super::lc0::{Lc0, Lc0ConfigError};
use super::maia3::config::Maia3Config;
use super::maia3::{Maia3, Maia3ConfigError};
use super::world::{World, WorldConfig, WorldConfigError};
use serde::{Deserialize, Serialize};
use tch::Device;

/// An architecture as files and configurations state it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "lowercase")]
pub enum ArchitectureConfig {
    /// [`Chessformer`](super::Chessformer).
    Chessformer {
        /// Its sizes.
        model: ModelConfig,
    },
    /// [`Lc0`](super::Lc0).
    Lc0 {
        /// Its parts and their sizes.
        model: Lc0Config,
        /// The heads that are played.
        #[serde(flatten)]
        heads: HeadChoice,
    },
    /// [`Maia3`](super::Maia3).
    Maia3 {
        /// Its sizes.
        model: Maia3Config,
    },
    /// [`Gpt`](super::Gpt).
    Gpt {
        /// Its sizes.
        model: GptConfig,
    },
    /// [`Diffusion`](super::Diffusion).
    Diffusion {
        /// Its sizes.
        model: DiffusionConfig,
    },
    /// [`World`](super::World).
    World {
        /// Its sizes.
        model: WorldConfig,
    },
    /// [`Graph`](super::Graph).
    Onnx {
        /// Its operators.
        model: GraphConfig,
    },
    /// The family of a test.
    #[cfg(test)]
    Toy {
        /// Its sizes.
        model: super::toy::ToyConfig,
    },
}

impl ArchitectureConfig {
    /// The name of the family, as network files state it.
    #[must_use]
    pub fn family(&self) -> &'static str {
        match self {
            ArchitectureConfig::Chessformer { .. } => "chessformer",
            ArchitectureConfig::Lc0 { .. } => "lc0",
            ArchitectureConfig::Maia3 { .. } => "maia3",
            ArchitectureConfig::Gpt { .. } => "gpt",
            ArchitectureConfig::Diffusion { .. } => "diffusion",
            ArchitectureConfig::World { .. } => "world",
            ArchitectureConfig::Onnx { .. } => "onnx",
            #[cfg(test)]
            ArchitectureConfig::Toy { .. } => "toy",
        }
    }

    /// How many layers it has: each brings tensors of its own.
    pub(super) fn layers(&self) -> i64 {
        match self {
            ArchitectureConfig::Chessformer { model } => model.layers,
            ArchitectureConfig::Lc0 { model, .. } => model.layers(),
            ArchitectureConfig::Maia3 { model } => model.layers,
            ArchitectureConfig::Gpt { model } => model.layers,
            ArchitectureConfig::Diffusion { model } => model.trunk.layers,
            ArchitectureConfig::World { model } => model.layers(),
            ArchitectureConfig::Onnx { .. } => 0,
            #[cfg(test)]
            ArchitectureConfig::Toy { .. } => 1,
        }
    }

    /// Builds the structure, for weights on `device`.
    ///
    /// # Errors
    /// [`ArchitectureError`] if the sizes do not fit each other, or it is a graph.
    pub fn build(&self, device: Device) -> Result<Box<dyn Architecture>, ArchitectureError> {
        Ok(match self {
            ArchitectureConfig::Chessformer { model } => Box::new(Chessformer::new(model, device)?),
            ArchitectureConfig::Lc0 { model, heads } => Box::new(Lc0::new(model, *heads, device)?),
            ArchitectureConfig::Maia3 { model } => Box::new(Maia3::new(model, device)?),
            ArchitectureConfig::Gpt { model } => Box::new(Gpt::new(model, device)?),
            ArchitectureConfig::Diffusion { model } => Box::new(Diffusion::new(model, device)?),
            ArchitectureConfig::World { model } => Box::new(World::new(model, device)?),
            ArchitectureConfig::Onnx { .. } => return Err(ArchitectureError::Graph),
            #[cfg(test)]
            ArchitectureConfig::Toy { model } => Box::new(super::toy::Toy::new(model, device)),
        })
    }
}

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
    /// The sizes of a GPT do not fit each other.
    #[error(transparent)]
    Gpt(#[from] GptConfigError),
    /// The sizes of a denoiser of futures do not fit each other.
    #[error(transparent)]
    Diffusion(#[from] DiffusionConfigError),
    /// The sizes of a world model do not fit each other.
    #[error(transparent)]
    World(#[from] WorldConfigError),
    /// A graph is more than its configuration.
    #[error(
        "it is an ONNX graph of no family known here: such networks can be played, but not trained"
    )]
    Graph,
}
