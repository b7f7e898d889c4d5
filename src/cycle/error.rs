//! Why a worker of the loop stops.

use crate::backend::BackendError;
use crate::data::replay::ReplayError;
use crate::data::shard::ShardError;
use crate::inference::LoadError;
use crate::openings::OpeningsError;
use crate::selfplay::{SearchOptionError, SelfPlayError};
use crate::store::{Name, StoreError};
use crate::torch::ScriptError;
use crate::train::{CheckpointError, ConfigError, HistoryError, TrainError};
use std::io;
use std::path::PathBuf;

/// Why a loop's configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum CycleConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not valid TOML, or has an invalid key.
    #[error("{}: {}", path.display(), .source.to_string().trim_end())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The problem and its location.
        source: Box<toml::de::Error>,
    },
    /// A value is out of its range.
    #[error("`{key}` must be {expected}")]
    Range {
        /// The key.
        key: &'static str,
        /// The constraint.
        expected: &'static str,
    },
    /// The table for a kind of worker is missing.
    #[error("the configuration has no table [{0}]: add it, or do not start this worker")]
    NoTable(&'static str),
    /// A search option is invalid.
    #[error("`search.options`: {0}")]
    Option(#[from] SearchOptionError),
    /// The tablebases are missing.
    #[error("`actors.tablebase`: {0}")]
    Tablebase(String),
}

/// Why a worker of the loop stopped.
#[derive(Debug, thiserror::Error)]
pub enum CycleError {
    /// The loop's configuration is invalid.
    #[error(transparent)]
    Config(#[from] CycleConfigError),
    /// The training configuration is invalid.
    #[error("training: {0}")]
    Training(#[from] ConfigError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A name reserved for this worker is taken by another worker's data.
    #[error("{0} is taken: two workers have the same name")]
    Taken(Name),
    /// A file that a manifest names is missing or corrupt.
    #[error("{name} is {what}: the store is damaged, or was copied incompletely")]
    Missing {
        /// The name.
        name: Name,
        /// The problem.
        what: &'static str,
    },
    /// The learner cannot resume from the newest generation.
    #[error(
        "generation {number} was not trained by the run in {}, and the store holds no checkpoint \
         to resume from",
        folder.display()
    )]
    NoCheckpoint {
        /// The generation.
        number: u64,
        /// The folder of the run.
        folder: PathBuf,
    },
    /// The store no longer contains a generation that the learner has found in it.
    #[error(
        "{} no longer contains generation {number}: the store was moved, deleted or replaced; \
         restore it, or choose another store for a new loop",
        store.display()
    )]
    StoreLost {
        /// The store.
        store: PathBuf,
        /// The generation's number.
        number: u64,
    },
    /// A network cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The inputs of a new network differ from those of the previous network.
    #[error("the network of generation {0} reads different inputs from the previous one")]
    Inputs(u64),
    /// The network failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A game failed.
    #[error(transparent)]
    SelfPlay(#[from] SelfPlayError),
    /// An opening cannot be read.
    #[error(transparent)]
    Openings(#[from] OpeningsError),
    /// A shard cannot be read or written.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A shard's game cannot be replayed.
    #[error("cannot replay a game that is to be searched again: {0}")]
    Replay(#[from] ReplayError),
    /// Training failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A checkpoint cannot be read or written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The network cannot be written.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The run's metrics cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The system reported an error.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There are no games to reanalyse.
    #[error(
        "there is nothing to search again: name shards in `reanalysers.games`, or set \
         `reanalysers.own` above 0"
    )]
    NothingToReanalyse,
}

impl CycleError {
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> CycleError {
        let path = path.into();
        move |source| CycleError::Io { path, source }
    }
}
