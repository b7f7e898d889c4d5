//! The initial weights of a run: random, or from another network.

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
    /// The file is not a network.
    #[error("cannot start from {path}: {source}")]
    Network {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: NetworkError,
    },
    /// The network is not a Chessformer.
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
    /// The checkpoint's configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The networks do not match.
    #[error("cannot start from {path}: {source}")]
    Grow {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: GrowError,
    },
}

/// The initial weights.
pub(super) struct Start {
    /// f32 `[parameters]` on the CPU.
    pub weights: Tensor,
    /// Samples that they have seen, as far as is known.
    pub samples: u64,
}

/// A network to start from.
struct Trained {
    config: ModelConfig,
    /// By name, on the CPU.
    tensors: Vec<(String, Tensor)>,
    samples: u64,
}

/// The initial weights of a run of `model`: those that the configuration names, with
/// random values for parameters that they lack, or all random.
///
/// # Errors
/// [`StartError`] if the configuration names something that cannot be used.
pub(super) fn first_weights(
    config: &TrainConfig,
    model: &Chessformer,
) -> Result<Start, StartError> {
    tch::manual_seed(config.seed);
    let fresh = model.initial_weights();
    let Some(path) = &config.init else {
        return Ok(Start {
            weights: fresh,
            samples: 0,
        });
    };
    let is_network = path.extension().is_some_and(|extension| extension == "pt");
    let trained = if is_network {
        network(path)?
    } else {
        checkpoint(path)?
    };
    let _guard = tch::no_grad_guard();
    let weights = grow(&trained.config, &trained.tensors, model, &fresh);
    Ok(Start {
        weights: weights.map_err(|source| StartError::Grow {
            path: path.clone(),
            source,
        })?,
        samples: trained.samples,
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
    let (tensors, metadata) = open().map_err(|source| StartError::Network {
        path: path.to_owned(),
        source,
    })?;
    let model = metadata.architecture.get("model").cloned();
    let model = serde_json::from_value(model.unwrap_or_default());
    let config = model.map_err(|error| StartError::Foreign {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Trained {
        config,
        tensors,
        samples: metadata.training["samples"].as_u64().unwrap_or(0),
    })
}

/// The averaged weights of a checkpoint.
fn checkpoint(path: &Path) -> Result<Trained, StartError> {
    let checkpoint = Checkpoint::read(path)?;
    let state = &checkpoint.state;
    let config = state.config.architecture()?;
    let model = Chessformer::new(&config, Device::Cpu).map_err(ConfigError::from)?;
    let weights = Weights::from_flat(&checkpoint.average, model.parameters());
    let names = model
        .parameters()
        .iter()
        .map(|parameter| parameter.name.clone());
    let tensors = weights.tensors().iter().map(Tensor::shallow_clone);
    Ok(Trained {
        config,
        tensors: names.zip(tensors).collect(),
        samples: state.earlier_samples + state.samples,
    })
}
