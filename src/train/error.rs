//! Why training stops early.

use super::checkpoint::CheckpointError;
use super::config::ConfigError;
use super::distributed::GroupError;
use super::guard::Instability;
use super::start::StartError;
use crate::data::loader::LoaderError;
use crate::network::NotAnEvaluator;
use crate::torch::{NetworkError, TorchError};
use std::path::PathBuf;

/// Why training stopped.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The network does not evaluate positions.
    #[error(transparent)]
    NotAnEvaluator(#[from] NotAnEvaluator),
    /// The network reads positions in an unknown input format.
    #[error(
        "the network reads positions in input format {0}, which is not known: it cannot be \
         trained or measured here"
    )]
    Format(u32),
    /// The data cannot be loaded.
    #[error(transparent)]
    Loader(#[from] LoaderError),
    /// The teacher cannot be used.
    #[error(transparent)]
    Teacher(#[from] TeacherError),
    /// The initial weights cannot be used.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The processes cannot form a group, or can no longer communicate.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The batch cannot be split evenly among the processes.
    #[error("a batch of {batch} cannot be shared evenly by {size} processes: change `batch`")]
    Uneven {
        /// Number of samples per batch.
        batch: usize,
        /// The number of processes.
        size: usize,
    },
    /// A checkpoint cannot be written or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The checkpoint belongs to a different network.
    #[error(
        "the checkpoint in {0} has a different architecture: train into another folder, or restore the configuration"
    )]
    Architecture(PathBuf),
    /// The steps cannot be traced.
    #[error("cannot trace the training: {0}")]
    Trace(#[source] TorchError),
    /// Threads cannot be started.
    #[error("cannot start the threads that train: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// Another process is training into the same folder.
    #[error(
        "another process is training into {0}: wait for it, or train into another folder with -o"
    )]
    Busy(PathBuf),
    /// The metrics cannot be written.
    #[error("cannot write {path}: {source}")]
    Metrics {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The processes of a run have different configurations.
    #[error("the first process has a different configuration: give all processes the same one")]
    OtherConfiguration,
    /// Rolling back to the last checkpoint did not help.
    #[error(
        "step {step}: {instability}, {times} times from the checkpoint of step {from}: \
         lower schedule.peak, or allow more guard.rollbacks"
    )]
    Unstable {
        /// The step of the last instability.
        step: u64,
        /// The kind of instability.
        instability: Instability,
        /// The number of instabilities since the checkpoint was written.
        times: u32,
        /// The step of the checkpoint.
        from: u64,
    },
}

/// Why a teacher cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TeacherError {
    /// The file cannot be read.
    #[error("cannot read the teacher {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a usable network.
    #[error("cannot learn from {path}: {source}")]
    Network {
        /// The file.
        path: PathBuf,
        /// The network's problem.
        source: NetworkError,
    },
    /// The teacher's input format differs from that of the network being trained.
    #[error(
        "cannot learn from {path}: it reads positions in input format {format}, and the network that is \
         trained in format {expected}"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// The format that the teacher reads.
        format: u32,
        /// The format of the network being trained.
        expected: u32,
    },
    /// libtorch failed to evaluate the teacher.
    #[error("the teacher could not be evaluated: {0}")]
    Torch(#[from] TorchError),
}
