//! The configuration of a training run, read from a TOML file.

mod augment;
mod average;
mod changes;
mod check;
mod diffusion;
mod distillation;
mod guard;
mod interval;
mod keep;
mod loss;
mod nearest;
mod optimizer;
mod overrides;
mod schedule;
mod task;
mod unroll;

pub use augment::AugmentConfig;
pub use average::AverageConfig;
pub use check::ConfigError;
pub(super) use check::refuse_infinite;
pub use diffusion::DiffusionTraining;
pub use distillation::DistillationConfig;
pub use guard::GuardConfig;
pub use interval::Interval;
pub use keep::KeepConfig;
pub use loss::LossWeights;
pub use optimizer::{DecayRule, OptimizerConfig, OptimizerKind, RateRule};
pub use overrides::{Override, OverrideError};
pub use schedule::{ScheduleConfig, ScheduleShape};
pub(super) use task::Task;
pub use unroll::UnrollConfig;

use crate::backend::CodePolicy;
use crate::data::loader::Sampling;
use crate::network::chessformer::ModelConfig;
use crate::network::{ArchitectureConfig, ArchitectureError};
use crate::serde_default::number;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
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
    /// The name of the run, and of its network unless a different name is given on export.
    pub name: String,
    /// The name of a predefined architecture; use `model` to specify one in full instead.
    pub preset: Option<String>,
    /// A Chessformer architecture, specified in full.
    pub model: Option<ModelConfig>,
    /// An architecture of any family. If none of `preset`, `model` and `network` is set, the run
    /// uses the architecture of `init`.
    pub network: Option<ArchitectureConfig>,
    /// Number of steps.
    pub steps: u64,
    /// Number of samples per step.
    pub batch: usize,
    /// Number of micro-batches per batch (gradient accumulation). More micro-batches need less
    /// memory, and the gradient is the same.
    #[serde(default = "number::<1, _>")]
    pub accumulate: usize,
    /// Seed of the initial weights.
    #[serde(default)]
    pub seed: i64,
    /// Source of the initial weights: an exported network (.pt), the name of a shipped network, a
    /// checkpoint, or the folder of a run, whose newest checkpoint is used. A network smaller than
    /// the run's architecture is grown, see [`crate::network::chessformer::grow`]. If unset or
    /// empty, the initial weights are random.
    pub init: Option<PathBuf>,
    /// The dtype in which the network computes. The parameters and the optimizer stay in f32, and
    /// the flat parameter vector is cast once per step. Softmax and losses are computed in f32, as
    /// with PyTorch's autocast.
    #[serde(default)]
    pub precision: Precision,
    /// How the weights are averaged. Validations and exports use the average.
    #[serde(default)]
    pub average: AverageConfig,
    /// Number of steps between metrics lines.
    #[serde(default = "number::<50, _>")]
    pub log_every: u64,
    /// Number of steps between validations.
    #[serde(default = "number::<1000, _>")]
    pub validate_every: u64,
    /// Number of samples per validation.
    #[serde(default = "number::<16_384, _>")]
    pub validation_samples: usize,
    /// Interval between checkpoints: a time such as `"5m"`, or a number of steps.
    #[serde(default = "default_checkpoint_every")]
    pub checkpoint_every: Interval,
    /// Which checkpoints to keep.
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
    /// A teacher network to learn from.
    pub distillation: Option<DistillationConfig>,
    /// Parameters to freeze, given by patterns of their names in which `*` matches any text and `?`
    /// any character, as in `embedding.*`.
    #[serde(default)]
    pub frozen: Vec<String>,
    /// Settings for training future denoisers.
    #[serde(default)]
    pub diffusion: DiffusionTraining,
    /// The optimizer.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// The learning-rate schedule.
    #[serde(default)]
    pub schedule: ScheduleConfig,
    /// The weight of each loss in the total.
    #[serde(default)]
    pub loss: LossWeights,
    /// Settings for unrolling world models in training.
    #[serde(default, skip_serializing_if = "UnrollConfig::is_default")]
    pub unroll: UnrollConfig,
    /// The policy for code in the network files that the configuration names. A configuration file
    /// cannot set it; otherwise, a downloaded configuration could permit arbitrary code.
    #[serde(skip)]
    pub code: CodePolicy,
}

fn default_checkpoint_every() -> Interval {
    Interval::Time(Duration::from_secs(5 * 60))
}

/// The dtype in which a network computes during training.
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
    /// Returns libtorch's name for the dtype.
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
    /// # Errors [`ConfigError`] unless exactly one of `preset`, `model` and `network` is set, or if
    /// the preset is unknown.
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

    /// Returns the configuration of the same run with a network of this architecture.
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
