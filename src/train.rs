//! Making networks: losses, optimizers, schedules, checkpoints and the loop
//! that ties them together.
//!
//! All parameters of a network live in one flat f32 vector, and so do gradient,
//! moments and averages. A step casts the vector to the type that the network
//! computes in, cuts it into the network's tensors, and lets the gradient flow
//! back into the vector: one cast in place of autocast's hundreds, and an
//! optimizer of a dozen operations whatever the network's depth.

mod augment;
mod checkpoint;
mod config;
mod lessons;
mod loss;
mod metrics;
mod optimizer;
mod pattern;
mod plot;
mod schedule;
mod start;
mod teacher;
mod tensors;
mod trainer;

pub use checkpoint::{Checkpoint, CheckpointError, State};
pub use config::{
    AugmentConfig, AverageConfig, ConfigError, DecayRule, DistillationConfig, LossWeights,
    OptimizerConfig, OptimizerKind, Precision, ScheduleConfig, ScheduleShape, TrainConfig,
};
pub use plot::{PlotError, plot};
pub use start::StartError;
pub use teacher::TeacherError;
pub use trainer::{Progress, RunOptions, Summary, TrainError, Trainer};
