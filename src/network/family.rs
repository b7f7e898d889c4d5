//! Builds network structures from the architectures in files and configurations.

use super::architecture::Architecture;
use super::chessformer::{Chessformer, ConfigError};
use super::config::ArchitectureConfig;
use super::diffusion::{Diffusion, DiffusionConfigError};
use super::gpt::{Gpt, GptConfigError};
use super::lc0::{Lc0, Lc0ConfigError};
use super::maia3::{Maia3, Maia3ConfigError};
use super::world::{WorldConfigError, WorldModel};
use tch::Device;

impl ArchitectureConfig {
    /// Builds the structure of a network with this architecture, for weights on `device`.
    ///
    /// # Errors
    /// [`ArchitectureError`] if the sizes do not fit each other.
    pub fn build(&self, device: Device) -> Result<Box<dyn Architecture>, ArchitectureError> {
        Ok(match self {
            ArchitectureConfig::Chessformer { model } => Box::new(Chessformer::new(model, device)?),
            ArchitectureConfig::Lc0 { model, heads } => Box::new(Lc0::new(model, *heads, device)?),
            ArchitectureConfig::Maia3 { model } => Box::new(Maia3::new(model, device)?),
            ArchitectureConfig::Gpt { model } => Box::new(Gpt::new(model, device)?),
            ArchitectureConfig::Diffusion { model } => Box::new(Diffusion::new(model, device)?),
            ArchitectureConfig::World { model } => Box::new(WorldModel::new(model, device)?),
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
    Chessformer(#[from] ConfigError),
    /// The parts of an Lc0 network do not fit each other.
    #[error(transparent)]
    Lc0(#[from] Lc0ConfigError),
    /// The sizes of a Maia-3 network do not fit each other.
    #[error(transparent)]
    Maia3(#[from] Maia3ConfigError),
    /// The sizes of a GPT do not fit each other.
    #[error(transparent)]
    Gpt(#[from] GptConfigError),
    /// The sizes of a future denoiser do not fit each other.
    #[error(transparent)]
    Diffusion(#[from] DiffusionConfigError),
    /// The sizes of a world model do not fit each other.
    #[error(transparent)]
    World(#[from] WorldConfigError),
}
