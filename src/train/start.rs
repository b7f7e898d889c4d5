//! Where a run's first weights come from.

use super::checkpoint::{Checkpoint, CheckpointError};
use super::config::{ConfigError, TrainConfig};
use crate::model::{Chessformer, GrowError, ModelConfig, Weights, grow};
use crate::nn::torch::{self, NetworkError};
use std::path::{Path, PathBuf};
use tch::{Device, Tensor};

/// Why a run cannot start from other weights.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no network.
    #[error("cannot start from {path}: {source}")]
    Network {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: NetworkError,
    },
    /// The network is none of the trainer's.
    #[error("cannot start from {path}: its metadata describe no Chessformer ({reason})")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The checkpoint cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The checkpoint's configuration does not fit together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The networks do not fit each other.
    #[error("cannot start from {path}: {source}")]
    Grow {
        /// What was to be started from.
        path: PathBuf,
        /// Why not.
        source: GrowError,
    },
}

/// A network's architecture and its tensors by name, on the CPU.
type Trained = (ModelConfig, Vec<(String, Tensor)>);

/// The first weights of a run of `model`, f32 `[parameters]` on the CPU: those
/// that the configuration names, with random ones where they have none, or
/// random ones altogether.
///
/// # Errors
/// [`StartError`] if the configuration names something that cannot be used.
pub(super) fn first_weights(
    config: &TrainConfig,
    model: &Chessformer,
) -> Result<Tensor, StartError> {
    tch::manual_seed(config.seed);
    let fresh = model.initial_weights();
    let Some(path) = &config.init else {
        return Ok(fresh);
    };
    let is_network = path.extension().is_some_and(|extension| extension == "pt");
    let (from, named) = if is_network {
        network(path)?
    } else {
        checkpoint(path)?
    };
    let _guard = tch::no_grad_guard();
    grow(&from, &named, model, &fresh).map_err(|source| StartError::Grow {
        path: path.clone(),
        source,
    })
}

/// An exported network.
fn network(path: &Path) -> Result<Trained, StartError> {
    let file = std::fs::read(path).map_err(|source| StartError::Read {
        path: path.to_owned(),
        source,
    })?;
    let open = || {
        let (module, metadata) = torch::open(&file)?;
        Ok((module.tensors()?, metadata))
    };
    let (named, metadata) = open().map_err(|source| StartError::Network {
        path: path.to_owned(),
        source,
    })?;
    let model = metadata.architecture.get("model").cloned();
    let model = serde_json::from_value(model.unwrap_or_default());
    let config = model.map_err(|error| StartError::Foreign {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    Ok((config, named))
}

/// The averaged weights of a checkpoint.
fn checkpoint(path: &Path) -> Result<Trained, StartError> {
    let checkpoint = Checkpoint::read(path)?;
    let config = checkpoint.state.config.architecture()?;
    let model = Chessformer::new(&config, Device::Cpu).map_err(ConfigError::from)?;
    let weights = Weights::from_flat(&checkpoint.average, model.parameters());
    let names = model
        .parameters()
        .iter()
        .map(|parameter| parameter.name.clone());
    let tensors = weights.tensors().iter().map(Tensor::shallow_clone);
    Ok((config, names.zip(tensors).collect()))
}
