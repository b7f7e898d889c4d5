//! Training: objectives, optimizers, schedules, checkpoints and the training loop.
//!
//! The objective of a network family defines the examples sampled from games, and the names and
//! values of the terms (losses and accuracies) measured on them. All families share the rest of
//! training. To add a family, write an [`Architecture`](crate::network::Architecture) with its
//! entries in `network/config.rs` and `network/family.rs`,
//! [`Examples`](crate::data::examples::Examples), an objective, a line in `config/task.rs` that
//! selects the task, and a line in `trainer/task.rs`.
//!
//! All parameters of a network are stored in one flat f32 vector. The gradient, the optimizer's
//! moments and the averaged weights are vectors of the same length. A step casts the parameter
//! vector to the network's dtype and splits it into the network's tensors; backward accumulates
//! their gradients in the gradient vector. This needs one cast instead of the hundreds that
//! autocast makes, and an optimizer step takes a dozen operations, however deep the network is.

mod ablation;
mod checkpoint;
mod checkpoint_folder;
mod config;
mod config_file;
mod distributed;
mod error;
mod guard;
mod harmony;
mod history;
mod learner;
mod losses;
mod metrics;
mod objective;
mod optimizer;
mod outcome;
mod parts;
mod prepared_batch;
mod recorder;
mod report;
mod schedule;
mod start;
mod stopwatch;
mod threads;
#[cfg(test)]
mod toy_tests;
mod trainer;
mod window;

pub use ablation::{Ablation, AblationError, Row, Variant, table};
pub use checkpoint::{Checkpoint, CheckpointError, State};
pub use config::{
    AugmentConfig, AverageConfig, ConfigError, DecayRule, DiffusionTraining, DistillationConfig,
    GuardConfig, Interval, KeepConfig, LossWeights, OptimizerConfig, OptimizerKind, Override,
    OverrideError, Precision, RateRule, ScheduleConfig, ScheduleShape, TrainConfig,
};
pub use distributed::{GroupError, Launch, LaunchError, World};
pub use error::{TeacherError, TrainError};
pub use guard::Instability;
pub use history::{History, HistoryError};
pub use report::{report, write_report};
pub use start::StartError;
pub use trainer::{Evaluation, Measurements, Progress, RunOptions, Summary, Trainer};

#[cfg(test)]
mod tests {
    use super::{TrainConfig, Trainer};
    use tch::Device;

    /// Returns a trainer for a network with a few thousand parameters, without data.
    pub(super) fn tiny() -> Trainer {
        let config: TrainConfig = toml::from_str(
            r#"
name = "tiny"
steps = 10
batch = 8
[model]
layers = 1
width = 8
heads = 2
feed_forward = 8
position = { kind = "absolute" }
[data]
"#,
        )
        .unwrap();
        Trainer::new(&config, Device::Cpu).unwrap()
    }
}
