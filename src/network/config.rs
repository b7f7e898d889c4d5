//! Architecture configurations of all families.

pub mod chessformer;
pub mod diffusion;
pub mod gpt;
pub mod lc0;
pub mod lc0_heads;
pub mod maia3;
#[cfg(test)]
#[path = "config/tests/toy.rs"]
pub mod toy;
pub mod world;

use chessformer::ModelConfig;
use diffusion::DiffusionConfig;
use gpt::GptConfig;
use lc0::Lc0Config;
use lc0_heads::HeadChoice;
use maia3::Maia3Config;
use serde::{Deserialize, Serialize};
use world::WorldConfig;

/// An architecture, as network files and configuration files state it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "lowercase")]
pub enum ArchitectureConfig {
    /// [`Chessformer`](super::Chessformer).
    Chessformer {
        /// The network's sizes.
        model: ModelConfig,
    },
    /// [`Lc0`](super::Lc0).
    Lc0 {
        /// The network's parts and their sizes.
        model: Lc0Config,
        /// The heads to play with.
        #[serde(flatten)]
        heads: HeadChoice,
    },
    /// [`Maia3`](super::Maia3).
    Maia3 {
        /// The network's sizes.
        model: Maia3Config,
    },
    /// [`Gpt`](super::Gpt).
    Gpt {
        /// The network's sizes.
        model: GptConfig,
    },
    /// [`Diffusion`](super::Diffusion).
    Diffusion {
        /// The network's sizes.
        model: DiffusionConfig,
    },
    /// [`WorldModel`](super::WorldModel).
    World {
        /// The network's sizes.
        model: WorldConfig,
    },
    /// A family that exists only in tests.
    #[cfg(test)]
    Toy {
        /// The network's sizes.
        model: toy::ToyConfig,
    },
}

impl ArchitectureConfig {
    /// Returns the name of the family, as in network files.
    pub fn family(&self) -> &'static str {
        match self {
            ArchitectureConfig::Chessformer { .. } => "chessformer",
            ArchitectureConfig::Lc0 { .. } => "lc0",
            ArchitectureConfig::Maia3 { .. } => "maia3",
            ArchitectureConfig::Gpt { .. } => "gpt",
            ArchitectureConfig::Diffusion { .. } => "diffusion",
            ArchitectureConfig::World { .. } => "world",
            #[cfg(test)]
            ArchitectureConfig::Toy { .. } => "toy",
        }
    }

    /// Returns the number of layers that have their own tensors.
    pub(super) fn layers(&self) -> i64 {
        match self {
            ArchitectureConfig::Chessformer { model } => model.layers,
            ArchitectureConfig::Lc0 { model, .. } => model.layers(),
            ArchitectureConfig::Maia3 { model } => model.layers,
            ArchitectureConfig::Gpt { model } => model.layers,
            ArchitectureConfig::Diffusion { model } => model.trunk.layers,
            ArchitectureConfig::World { model } => model.layers(),
            #[cfg(test)]
            ArchitectureConfig::Toy { .. } => 1,
        }
    }
}
