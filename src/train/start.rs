//! Provides the initial weights of a run, either random or taken from another network.

use super::checkpoint::{Checkpoint, CheckpointError};
use super::config::{ConfigError, TrainConfig};
use crate::backend::{CodePolicy, shipped};
use crate::network::chessformer::grow;
use crate::network::gpt::GptConfig;
use crate::network::{
    self, Architecture, ArchitectureConfig, ArchitectureError, Chessformer, Parameter, Weights,
    WorldModel, world,
};
use std::any::Any;
use std::error::Error;
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
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a network, or cannot be grown to the run's architecture.
    #[error("cannot start from {path}: {source}")]
    Unusable {
        /// The file or folder.
        path: PathBuf,
        /// The network's problem.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The network has a different architecture, and its family does not support growing.
    #[error(
        "cannot start from {path}: it is another network of the family {family}, and only \
         Chessformers grow. Leave [model] out to continue with it unchanged"
    )]
    Foreign {
        /// The network to start from.
        path: PathBuf,
        /// The network's family.
        family: &'static str,
    },
    /// The checkpoint cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The checkpoint's configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl StartError {
    fn unusable<E: Into<Box<dyn Error + Send + Sync>>>(
        path: &Path,
    ) -> impl FnOnce(E) -> StartError + '_ {
        move |source| StartError::Unusable {
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// The initial weights of a run.
pub(super) struct Start {
    /// The weights, f32 `[parameters]` on the CPU.
    pub weights: Tensor,
    /// Number of samples that these weights have been trained on, or 0 if unknown.
    pub samples: u64,
}

/// A network to start from.
struct Trained {
    config: ArchitectureConfig,
    /// The network's tensors by name, on the CPU.
    tensors: Vec<(String, Tensor)>,
    samples: u64,
}

/// Returns the initial weights for a run of `model`. If the configuration sets `init`, they are
/// loaded from there, with random values for missing parameters; otherwise, all are random.
///
/// # Errors
/// [`StartError`] if the weights at `init` cannot be used.
pub(super) fn first_weights(
    config: &TrainConfig,
    model: &dyn Architecture,
) -> Result<Start, StartError> {
    tch::manual_seed(config.seed);
    let fresh = model.initial_weights();
    let Some(init) = &config.init else {
        return Ok(Start {
            weights: fresh,
            samples: 0,
        });
    };
    let path = &shipped::file(init);
    let is_network = path.extension().is_some_and(|extension| extension == "pt");
    let trained = if is_network {
        network(path, config.code)?
    } else {
        checkpoint(path)?
    };
    let _guard = tch::no_grad_guard();
    Ok(Start {
        samples: trained.samples,
        weights: take_over(trained, model, &fresh, path)?,
    })
}

/// Returns a trained network's weights, converted to the architecture of `model`.
fn take_over(
    trained: Trained,
    model: &dyn Architecture,
    fresh: &Tensor,
    path: &Path,
) -> Result<Tensor, StartError> {
    let parameters = model.parameters();
    match (trained.config, model.config()) {
        (
            ArchitectureConfig::Chessformer { model: from },
            ArchitectureConfig::Chessformer { model: to },
        ) => {
            let fresh = Weights::from_flat(fresh, parameters);
            grow(&from, &trained.tensors, &to, &fresh, parameters)
                .map_err(StartError::unusable(path))
        }
        // A future denoiser can be grown from a Chessformer.
        (
            ArchitectureConfig::Chessformer { model: from },
            ArchitectureConfig::Diffusion { model: to },
        ) => {
            let trunk = Chessformer::new(&to.trunk, Device::Cpu)
                .map_err(|error| ConfigError::from(ArchitectureError::from(error)))?;
            let parameters = trunk.parameters();
            let count = parameters.iter().map(Parameter::count).sum();
            let own = Weights::from_flat(&fresh.narrow(0, 0, count), parameters);
            let trunk = grow(&from, &trained.tensors, &to.trunk, &own, parameters)
                .map_err(StartError::unusable(path))?;
            let rest = fresh.narrow(0, count, fresh.size()[0] - count);
            Ok(Tensor::cat(&[trunk, rest], 0))
        }
        (ArchitectureConfig::Chessformer { model: from }, ArchitectureConfig::World { .. }) => {
            let fresh = Weights::from_flat(fresh, parameters);
            let model: &dyn Any = model;
            let to = model.downcast_ref::<WorldModel>().expect("of this family");
            world::grow(&from, &trained.tensors, to, &fresh).map_err(StartError::unusable(path))
        }
        // A board head may be added to a GPT between runs.
        (ArchitectureConfig::Gpt { model: from }, ArchitectureConfig::Gpt { model: to })
            if from
                == (GptConfig {
                    board: from.board,
                    ..to.clone()
                }) =>
        {
            let names = parameters.iter().map(|parameter| parameter.name.clone());
            let fresh = Weights::from_flat(fresh, parameters);
            let fresh = fresh.tensors().iter().map(Tensor::shallow_clone);
            flat(parameters, names.zip(fresh).chain(trained.tensors), path)
        }
        (from, to) if from == to => flat(parameters, trained.tensors, path),
        (from, _) => Err(StartError::Foreign {
            path: path.to_owned(),
            family: from.family(),
        }),
    }
}

/// Returns all weights of `parameters`, concatenated. If several tensors have the same name, the
/// last one counts.
fn flat(
    parameters: &[Parameter],
    tensors: impl IntoIterator<Item = (String, Tensor)>,
    path: &Path,
) -> Result<Tensor, StartError> {
    let weights = Weights::take(parameters, tensors).map_err(StartError::unusable(path))?;
    let flat = weights.tensors().iter().map(|it| it.reshape([-1]));
    Ok(Tensor::cat(&flat.collect::<Vec<_>>(), 0))
}

/// Loads an exported network.
fn network(path: &Path, policy: CodePolicy) -> Result<Trained, StartError> {
    let file = std::fs::read(path).map_err(|source| StartError::Read {
        path: path.to_owned(),
        source,
    })?;
    let network = network::open_any(&file, policy).map_err(StartError::unusable(path))?;
    Ok(Trained {
        config: network.architecture.config(),
        tensors: network.parameters(),
        samples: network.about.training["samples"].as_u64().unwrap_or(0),
    })
}

/// Loads the averaged weights of a checkpoint.
fn checkpoint(path: &Path) -> Result<Trained, StartError> {
    let checkpoint = Checkpoint::read(path)?;
    let state = &checkpoint.state;
    let config = state.config.architecture()?;
    let model = config.build(Device::Cpu).map_err(ConfigError::from)?;
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
