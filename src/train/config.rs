//! What a training run is told, as its TOML file states it.

mod augment;
mod average;
mod check;
mod distillation;
mod guard;
mod keep;
mod loss;
mod nearest;
mod optimizer;
mod overrides;
mod schedule;

pub use augment::AugmentConfig;
pub use average::AverageConfig;
pub use check::ConfigError;
pub use distillation::DistillationConfig;
pub use guard::GuardConfig;
pub use keep::KeepConfig;
pub use loss::LossWeights;
pub use optimizer::{DecayRule, OptimizerConfig, OptimizerKind};
pub use overrides::{Override, OverrideError};
pub use schedule::{ScheduleConfig, ScheduleShape};

use crate::data::loader::Sampling;
use crate::model::ModelConfig;
use check::refuse_infinite;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tch::Kind;

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
    /// Pieces into which a batch is cut, one after another through the network:
    /// less memory, and the same gradient.
    #[serde(default = "default_accumulate")]
    pub accumulate: usize,
    /// Seed of the first weights.
    #[serde(default)]
    pub seed: i64,
    /// Where the first weights come from, if not from the seed: an exported
    /// network (.pt), a checkpoint, or a run's folder for its newest one. A
    /// smaller network is grown: see [`crate::model::grow`].
    pub init: Option<PathBuf>,
    /// The type the network computes in; parameters and optimizer stay f32. The
    /// flat vector of parameters is cast once a step; what autocast would keep
    /// in f32 besides, softmax and losses, is computed from outputs cast back.
    #[serde(default)]
    pub precision: Precision,
    /// The average of the weights, which is what is validated and exported.
    #[serde(default)]
    pub average: AverageConfig,
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
    /// How samples are varied.
    #[serde(default)]
    pub augment: AugmentConfig,
    /// A network to learn from besides the data.
    pub distillation: Option<DistillationConfig>,
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

fn default_accumulate() -> usize {
    1
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

impl Precision {
    /// libtorch's name of the type.
    pub(super) fn kind(self) -> Kind {
        match self {
            Precision::F32 => Kind::Float,
            Precision::Bf16 => Kind::BFloat16,
        }
    }
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
        refuse_infinite(&table)?;
        let read: Result<TrainConfig, _> = serde_path_to_error::deserialize(table);
        let config = read.map_err(|error| ConfigError::Key {
            key: error.path().to_string(),
            reason: error.inner().message().to_owned(),
        })?;
        config.check()?;
        Ok(config)
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
    let syntax = |source| ConfigError::Syntax {
        path: path.to_owned(),
        source: Box::new(source),
    };
    refuse_infinite(&text.parse().map_err(syntax)?)?;
    toml::from_str(&text).map_err(syntax)
}
