//! What a training run is told, as its TOML file states it.

mod guard;
mod keep;
mod loss;
mod nearest;
mod optimizer;
mod overrides;
mod schedule;

pub use guard::GuardConfig;
pub use keep::KeepConfig;
pub use loss::LossWeights;
pub use optimizer::{DecayRule, OptimizerConfig, OptimizerKind};
pub use overrides::{Override, OverrideError};
pub use schedule::{ScheduleConfig, ScheduleShape};

use crate::data::loader::Sampling;
use crate::model::{self, ModelConfig};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A training run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// The run's name; its network's too, unless the export says otherwise.
    pub name: String,
    /// Architecture by name; `model` spells one out instead.
    pub preset: Option<String>,
    /// Architecture in full.
    pub model: Option<ModelConfig>,
    /// Steps to train.
    pub steps: u64,
    /// Samples a step.
    pub batch: usize,
    /// Seed of the first weights.
    #[serde(default)]
    pub seed: i64,
    /// The type the network computes in; parameters and optimizer stay f32.
    #[serde(default)]
    pub precision: Precision,
    /// Decay a step of the exponential average of the weights, which is what
    /// is validated and exported.
    #[serde(default = "default_average_decay")]
    pub average_decay: f64,
    /// Steps between lines of the metrics.
    #[serde(default = "default_log_every")]
    pub log_every: u64,
    /// Steps between validations.
    #[serde(default = "default_validate_every")]
    pub validate_every: u64,
    /// Samples a validation looks at.
    #[serde(default = "default_validation_samples")]
    pub validation_samples: usize,
    /// Steps between checkpoints.
    #[serde(default = "default_checkpoint_every")]
    pub checkpoint_every: u64,
    /// Which checkpoints stay.
    #[serde(default)]
    pub keep: KeepConfig,
    /// When the run goes back to a checkpoint.
    #[serde(default)]
    pub guard: GuardConfig,
    /// Where the samples come from.
    pub data: Sampling,
    /// Parameters that stay as they are: patterns of names, in which `*` stands
    /// for any text, as in `embedding.*`.
    #[serde(default)]
    pub frozen: Vec<String>,
    /// How gradients become steps.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// How the learning rate moves.
    #[serde(default)]
    pub schedule: ScheduleConfig,
    /// What each loss weighs.
    #[serde(default)]
    pub loss: LossWeights,
}

fn default_average_decay() -> f64 {
    0.999
}

fn default_log_every() -> u64 {
    50
}

fn default_validate_every() -> u64 {
    1000
}

fn default_validation_samples() -> usize {
    16_384
}

fn default_checkpoint_every() -> u64 {
    1000
}

/// The type a network computes in while it trains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32-bit floating point.
    #[default]
    F32,
    /// bfloat16.
    Bf16,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not what a run is configured by.
    #[error("{path}: {}{}", .source.to_string().trim_end(), nearest::hint(.source.message()))]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        source: Box<toml::de::Error>,
    },
    /// A key cannot be set as the command line asks.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// The file together with what the command line sets is not what a run is
    /// configured by.
    #[error("{key}: {reason}{}", nearest::hint(.reason))]
    Key {
        /// Where it shows.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// Neither or both of `preset` and `model` are there.
    #[error("a run needs either `preset = \"cf-6m-gab\"` or a [model] table, and not both")]
    Architecture,
    /// The architecture does not fit together.
    #[error(transparent)]
    Model(#[from] model::ConfigError),
    /// A number must be at least 1.
    #[error("`{0}` must be at least 1")]
    Zero(&'static str),
}

impl TrainConfig {
    /// Reads a configuration file. Relative paths of its data are relative to
    /// the folder that the program runs in.
    ///
    /// # Errors
    /// [`ConfigError`], naming the file, the line and the field.
    pub fn read(path: &Path) -> Result<TrainConfig, ConfigError> {
        let config: TrainConfig = parse(path)?;
        config.check()?;
        Ok(config)
    }

    /// Reads a configuration file as [`TrainConfig::read`] does, with some keys
    /// set otherwise.
    ///
    /// # Errors
    /// [`ConfigError`], naming the key.
    pub fn read_with(path: &Path, overrides: &[Override]) -> Result<TrainConfig, ConfigError> {
        if overrides.is_empty() {
            // Straight from the file, errors know their line.
            return TrainConfig::read(path);
        }
        TrainConfig::from_table(parse(path)?, overrides)
    }

    /// A configuration of a table with some keys set otherwise.
    ///
    /// # Errors
    /// [`ConfigError`], naming the key.
    pub fn from_table(
        mut table: toml::Table,
        overrides: &[Override],
    ) -> Result<TrainConfig, ConfigError> {
        for set in overrides {
            set.apply(&mut table)?;
        }
        let read: Result<TrainConfig, _> = serde_path_to_error::deserialize(table);
        let config = read.map_err(|error| ConfigError::Key {
            key: error.path().to_string(),
            reason: error.inner().message().to_owned(),
        })?;
        config.check()?;
        Ok(config)
    }

    /// Checks what the types do not.
    ///
    /// # Errors
    /// [`ConfigError`], naming the field.
    pub fn check(&self) -> Result<(), ConfigError> {
        let counts = [
            ("steps", self.steps),
            ("batch", self.batch as u64),
            ("log_every", self.log_every),
            ("validate_every", self.validate_every),
            ("validation_samples", self.validation_samples as u64),
            ("checkpoint_every", self.checkpoint_every),
            ("keep.newest", self.keep.newest as u64),
        ];
        if let Some((name, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err(ConfigError::Zero(name));
        }
        self.architecture()?.check()?;
        Ok(())
    }

    /// The network's architecture.
    ///
    /// # Errors
    /// [`ConfigError`] if none or two are named, or the preset is unknown.
    pub fn architecture(&self) -> Result<ModelConfig, ConfigError> {
        match (&self.preset, &self.model) {
            (Some(preset), None) => Ok(ModelConfig::preset(preset)?),
            (None, Some(model)) => Ok(model.clone()),
            _ => Err(ConfigError::Architecture),
        }
    }
}

/// Reads a TOML file.
pub(super) fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|source| ConfigError::Syntax {
        path: path.to_owned(),
        source: Box::new(source),
    })
}
