//! Making networks: losses, optimizers, schedules, checkpoints and the loop
//! that ties them together.
//!
//! All parameters of a network live in one flat f32 vector, and so do gradient,
//! moments and averages. A step casts the vector to the type that the network
//! computes in, cuts it into the network's tensors, and lets the gradient flow
//! back into the vector: one cast in place of autocast's hundreds, and an
//! optimizer of a dozen operations whatever the network's depth.

mod checkpoint;
mod config;
mod distributed;
mod loss;
mod metrics;
mod optimizer;
mod plot;
mod schedule;
mod tensors;
mod trainer;

pub use checkpoint::{Checkpoint, CheckpointError, State};
pub use config::{
    ConfigError, LossWeights, OptimizerConfig, OptimizerKind, Precision, ScheduleConfig,
    ScheduleShape, TrainConfig,
};
pub use distributed::{GroupError, Launch, LaunchError, World};
pub use plot::{PlotError, plot};
pub use trainer::{Progress, RunOptions, Summary, TrainError, Trainer};
