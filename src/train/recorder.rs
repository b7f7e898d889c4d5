//! Writes a run's metrics and checkpoints.
//!
//! The trainer itself never writes to disk, so if there are several processes, only one of them
//! needs a recorder.

use super::checkpoint::{Checkpoint, CheckpointError};
use super::checkpoint_folder::{CHECKPOINTS, Folder, newest};
use super::config::TrainConfig;
use super::error::TrainError;
use super::metrics::Metrics;
use crate::atomic_file;
use serde_json::{Map, Value};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// Name of the file that contains the configuration of a run's last session.
pub(super) const CONFIG: &str = "config.toml";

/// Name of the file that is locked while a process trains into the folder.
const LOCK: &str = ".lock";

/// Writes metrics and checkpoints into a run's folder.
#[derive(Debug)]
pub(super) struct Recorder {
    metrics: Metrics,
    checkpoints: Folder,
    path: PathBuf,
    /// Step of the newest checkpoint.
    newest: Option<u64>,
    /// Number of consecutive failures to write a checkpoint, and the number of failures allowed.
    failures: u32,
    failures_allowed: u32,
    /// The locked file. If the process is killed, the system releases the lock.
    _lock: File,
}

impl Recorder {
    /// Opens the folder of a run at `step`. A checkpoint of that step counts as already written.
    ///
    /// # Errors
    /// [`TrainError::Busy`] if another process trains there,
    /// [`TrainError::Metrics`] if the folder cannot be written to.
    pub fn open(folder: &Path, config: &TrainConfig, step: u64) -> Result<Recorder, TrainError> {
        let unwritable = |source| TrainError::Metrics {
            path: folder.to_owned(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(unwritable)?;
        let lock = File::create(folder.join(LOCK)).map_err(unwritable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(TrainError::Busy(folder.to_owned())),
            // Some network file systems do not support locks.
            Err(TryLockError::Error(error)) => tracing::warn!(
                "cannot lock {}: {error}; see that no other process trains there",
                folder.display()
            ),
        }
        write_config(folder, config).map_err(unwritable)?;
        let path = folder.join(CHECKPOINTS);
        atomic_file::remove_unfinished(&path).map_err(unwritable)?;
        let checkpoints = Folder::new(path.clone(), config.keep.clone());
        Ok(Recorder {
            metrics: Metrics::open(folder, step).map_err(unwritable)?,
            newest: checkpoints.place(step).is_file().then_some(step),
            checkpoints,
            path,
            failures: 0,
            failures_allowed: config.keep.failures,
            _lock: lock,
        })
    }

    /// Appends a line to the metrics.
    pub fn line(&mut self, split: &str, step: u64, fields: Map<String, Value>) {
        self.metrics.write(split, step, fields);
    }

    /// Returns the newest complete checkpoint.
    ///
    /// # Errors
    /// [`CheckpointError`] if the folder has none.
    pub fn newest(&self) -> Result<Checkpoint, CheckpointError> {
        newest(&self.path)?.ok_or_else(|| CheckpointError::None(self.path.clone()))
    }

    /// Writes a checkpoint during the run. As many consecutive failures as the configuration allows
    /// only log a warning.
    ///
    /// # Errors
    /// [`CheckpointError`] if writing has failed more often than that.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        match self.write(checkpoint) {
            Ok(_) => Ok(()),
            Err(error) if self.failures < self.failures_allowed => {
                self.failures += 1;
                let last = match self.newest {
                    Some(step) => format!("the last whole one is of step {step}"),
                    None => "none exists yet".to_owned(),
                };
                tracing::warn!("{error}; training continues without this checkpoint, {last}");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the last checkpoint of a session, unless it already exists.
    ///
    /// # Errors
    /// [`CheckpointError`] if it cannot be written.
    pub fn last(&mut self, checkpoint: &Checkpoint) -> Result<PathBuf, CheckpointError> {
        let step = checkpoint.state.step;
        if self.newest == Some(step) {
            return Ok(self.checkpoints.place(step));
        }
        self.write(checkpoint)
    }

    /// Rewinds the run to an earlier step: replaces that step's checkpoint with `checkpoint`, which
    /// has a new data cursor, and drops the later metrics.
    ///
    /// # Errors
    /// [`TrainError`] if the checkpoint or the metrics cannot be written.
    pub fn rewind(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainError> {
        self.write(checkpoint)?;
        let rewound = self.metrics.rewind(checkpoint.state.step);
        rewound.map_err(|source| TrainError::Metrics {
            path: self.path.clone(),
            source,
        })
    }

    fn write(&mut self, checkpoint: &Checkpoint) -> Result<PathBuf, CheckpointError> {
        let path = self.checkpoints.write(checkpoint)?;
        self.newest = Some(checkpoint.state.step);
        self.failures = 0;
        Ok(path)
    }
}

fn write_config(folder: &Path, config: &TrainConfig) -> std::io::Result<()> {
    let path = folder.join(CONFIG);
    let text = toml::to_string(config).map_err(std::io::Error::other)?;
    if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    atomic_file::write(&path, text)
}
