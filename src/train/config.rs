//! What a training run is told, as its TOML file states it.

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
    /// Where the samples come from.
    pub data: Sampling,
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

/// How gradients become steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Adam with Nesterov momentum (Dozat 2016), as PyTorch computes it: the
    /// paper's.
    #[default]
    Nadam,
    /// Orthogonalised momentum (Jordan et al. 2024) for the matrices of the
    /// encoder and the policy, NAdam for the rest; matrices' steps are scaled to
    /// Adam's size (Liu et al. 2025), so that one learning rate serves both.
    Muon,
}

/// The optimizer's settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerConfig {
    /// Which.
    pub kind: OptimizerKind,
    /// Decay of the gradient's average.
    pub beta1: f64,
    /// Decay of the squared gradient's average.
    pub beta2: f64,
    /// Added to the root of the squared gradient's average.
    pub epsilon: f64,
    /// Decay of Muon's momentum.
    pub muon_momentum: f64,
    /// Share of each matrix (not of biases, norms and position tables) taken
    /// away a step, times the learning rate.
    pub weight_decay: f64,
    /// Gradients longer than this are scaled down to it; 0 leaves them.
    pub clip_norm: f64,
}

impl Default for OptimizerConfig {
    fn default() -> OptimizerConfig {
        OptimizerConfig {
            kind: OptimizerKind::Nadam,
            beta1: 0.9,
            beta2: 0.98,
            epsilon: 1e-7,
            muon_momentum: 0.95,
            weight_decay: 0.0,
            clip_norm: 10.0,
        }
    }
}

/// How the learning rate moves after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ScheduleShape {
    /// Stays, then falls to zero in a straight line over the last part of the
    /// run (warm-up, stable, decay).
    Stable {
        /// The last part's share of all steps, in 0…1.
        decay: f64,
    },
    /// Falls along half a cosine.
    Cosine {
        /// Share of the peak that is left at the end.
        last: f64,
    },
    /// Falls in steps, as in the paper.
    Stepped {
        /// Each step and the share of the peak that holds from there on.
        drops: Vec<(u64, f64)>,
    },
}

/// How the learning rate moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScheduleConfig {
    /// The highest learning rate.
    pub peak: f64,
    /// Steps in which the rate climbs to it from zero.
    pub warmup: u64,
    /// What follows.
    pub shape: ScheduleShape,
}

impl Default for ScheduleConfig {
    fn default() -> ScheduleConfig {
        ScheduleConfig {
            peak: 5e-4,
            warmup: 1000,
            shape: ScheduleShape::Stable { decay: 0.2 },
        }
    }
}

/// What each loss weighs; the paper's appendix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LossWeights {
    /// Cross-entropy of the policy.
    pub policy: f64,
    /// Cross-entropy of the softened policy.
    pub policy_soft: f64,
    /// Cross-entropy of win, draw and loss.
    pub result: f64,
    /// Squared error of q.
    pub q: f64,
    /// Cross-entropy of q's bucket.
    pub q_categorical: f64,
    /// Squared error of q's expected error.
    pub q_error: f64,
    /// Squared error of the short-term value.
    pub short_term: f64,
    /// Cross-entropy of the short-term value's bucket.
    pub short_term_categorical: f64,
    /// Squared error of the short-term value's expected error.
    pub short_term_error: f64,
    /// Huber loss of the moves left (Lc0's head).
    pub moves_left: f64,
}

impl Default for LossWeights {
    fn default() -> LossWeights {
        LossWeights {
            policy: 1.0,
            policy_soft: 8.0,
            result: 1.0,
            q: 1.0,
            q_categorical: 0.1,
            q_error: 1.0,
            short_term: 1.0,
            short_term_categorical: 0.1,
            short_term_error: 1.0,
            moves_left: 1.0,
        }
    }
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
    #[error("{path}: {source}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        source: Box<toml::de::Error>,
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
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        let config: TrainConfig = toml::from_str(&text).map_err(|source| ConfigError::Syntax {
            path: path.to_owned(),
            source: Box::new(source),
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
