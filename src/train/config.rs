//! The configuration of a training run, a TOML file.

mod augment;
mod average;
mod changes;
mod check;
mod diffusion;
mod distillation;
mod guard;
mod keep;
mod loss;
mod nearest;
mod optimizer;
mod overrides;
mod read;
mod schedule;
mod task;
mod unroll;

pub use augment::AugmentConfig;
pub use average::AverageConfig;
pub use check::ConfigError;
pub use diffusion::DiffusionTraining;
pub use distillation::DistillationConfig;
pub use guard::GuardConfig;
pub use keep::KeepConfig;
pub use loss::LossWeights;
pub use optimizer::{DecayRule, OptimizerConfig, OptimizerKind, RateRule};
pub use overrides::{Override, OverrideError};
pub(super) use read::parse;
pub use schedule::{ScheduleConfig, ScheduleShape};
pub(super) use task::Task;
pub use unroll::UnrollConfig;

use crate::backend::CodePolicy;
use crate::data::loader::Sampling;
use crate::network::chessformer::ModelConfig;
use crate::network::{ArchitectureConfig, ArchitectureError};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tch::Kind;

/// The configuration of a training run.
///
/// ```
/// use tessera::train::TrainConfig;
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("small.toml");
/// std::fs::write(&file, r#"
/// name = "small"
/// preset = "cf-1m-gab"
/// steps = 1000
/// batch = 256
/// [data]
/// shards = [{ path = "games.shard" }]
/// "#)?;
/// let config = TrainConfig::read_with(&file, &["optimizer.beta1=0.95".parse()?])?;
/// assert_eq!(config.architecture()?.family(), "chessformer");
/// assert!(TrainConfig::read_with(&file, &["batch=0".parse()?]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// The run's name, and its network's unless the export sets another.
    pub name: String,
    /// Name of an architecture; `model` gives one in full instead.
    pub preset: Option<String>,
    /// Architecture in full.
    pub model: Option<ModelConfig>,
    /// Architecture of any family. If a configuration specifies no architecture, it uses that of
    /// `init`.
    pub network: Option<ArchitectureConfig>,
    /// Number of steps.
    pub steps: u64,
    /// Samples in each step.
    pub batch: usize,
    /// Number of micro-batches of a batch (gradient accumulation): less memory, and
    /// the same gradient.
    #[serde(default = "default_accumulate")]
    pub accumulate: usize,
    /// Seed of the initial weights.
    #[serde(default)]
    pub seed: i64,
    /// Source of the initial weights: an exported network (.pt), a checkpoint, or a
    /// run's folder for its newest one. A smaller network is grown: see
    /// [`crate::network::chessformer::grow`]. Without one, or with an empty path, they are
    /// random.
    pub init: Option<PathBuf>,
    /// The dtype that the network computes in; parameters and optimizer stay f32. The flat
    /// parameter vector is cast once per step. Softmax and losses are computed in f32, as under
    /// autocast.
    #[serde(default)]
    pub precision: Precision,
    /// The average of the weights, which is validated and exported.
    #[serde(default)]
    pub average: AverageConfig,
    /// Steps between metrics lines.
    #[serde(default = "default_log_every")]
    pub log_every: u64,
    /// Steps between validations.
    #[serde(default = "default_validate_every")]
    pub validate_every: u64,
    /// Number of samples per validation.
    #[serde(default = "default_validation_samples")]
    pub validation_samples: usize,
    /// Steps between checkpoints.
    #[serde(default = "default_checkpoint_every")]
    pub checkpoint_every: u64,
    /// The checkpoints to keep.
    #[serde(default)]
    pub keep: KeepConfig,
    /// When the run rolls back to a checkpoint.
    #[serde(default)]
    pub guard: GuardConfig,
    /// The training data.
    pub data: Sampling,
    /// Data augmentation.
    #[serde(default)]
    pub augment: AugmentConfig,
    /// A teacher network.
    pub distillation: Option<DistillationConfig>,
    /// Parameters to freeze: name patterns in which `*` matches any text and `?` any character,
    /// as in `embedding.*`.
    #[serde(default)]
    pub frozen: Vec<String>,
    /// Training settings of a future denoiser.
    #[serde(default)]
    pub diffusion: DiffusionTraining,
    /// The optimizer.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// The learning-rate schedule.
    #[serde(default)]
    pub schedule: ScheduleConfig,
    /// The weight of each loss.
    #[serde(default)]
    pub loss: LossWeights,
    /// Settings for unrolling world models in training.
    #[serde(default, skip_serializing_if = "UnrollConfig::is_default")]
    pub unroll: UnrollConfig,
    /// The policy for code in the networks that it names. Files cannot set it, or anyone's file
    /// could run code.
    #[serde(skip)]
    pub code: CodePolicy,
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

/// The dtype that a network computes in during training.
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
    /// Returns libtorch's name of the dtype.
    pub(super) fn kind(self) -> Kind {
        match self {
            Precision::F32 => Kind::Float,
            Precision::Bf16 => Kind::BFloat16,
        }
    }
}

impl TrainConfig {
    /// Returns the network's architecture.
    ///
    /// # Errors
    /// [`ConfigError`] if several or none of `preset`, `model` and `network` are set, or the
    /// preset is unknown.
    pub fn architecture(&self) -> Result<ArchitectureConfig, ConfigError> {
        let chessformer = |model| ArchitectureConfig::Chessformer { model };
        match (&self.preset, &self.model, &self.network) {
            (Some(preset), None, None) => {
                let model = ModelConfig::preset(preset).map_err(ArchitectureError::from)?;
                Ok(chessformer(model))
            }
            (None, Some(model), None) => Ok(chessformer(model.clone())),
            (None, None, Some(network)) => Ok(network.clone()),
            _ => Err(ConfigError::Architecture),
        }
    }

    /// Returns the same run with a network of this architecture.
    #[must_use]
    pub fn with_architecture(self, architecture: ArchitectureConfig) -> TrainConfig {
        let (model, network) = match architecture {
            ArchitectureConfig::Chessformer { model } => (Some(model), None),
            other => (None, Some(other)),
        };
        TrainConfig {
            preset: None,
            model,
            network,
            ..self
        }
    }
}
