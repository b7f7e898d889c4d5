//! All that a run needs to go on as if nothing had happened, in one file.
//!
//! A checkpoint is a safetensors file: the parameters and their average as flat
//! f32 vectors, whatever tensors the optimizer remembers, and the [`State`] as
//! JSON in a vector of bytes. It is written under another name, synced and renamed, so that a
//! run killed at any instant finds its last whole checkpoint.

use super::config::TrainConfig;
use super::optimizer::Memory;
use crate::data::loader::Position;
use crate::files;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tch::{Device, Kind, Tensor};

/// Checkpoints that are kept; older ones are removed.
const KEPT: usize = 2;

const EXTENSION: &str = "safetensors";
const PREFIX: &str = "step-";

/// What the names of the optimizer's tensors begin with.
const MEMORY: &str = "optimizer.";

/// What a checkpoint holds besides vectors.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The run's configuration as it stood.
    pub config: TrainConfig,
    /// Steps taken.
    pub step: u64,
    /// Samples seen.
    pub samples: u64,
    /// Seconds spent in training, interruptions left out.
    pub seconds: f64,
    /// Where the next batch begins.
    pub position: Position,
    /// Steps the optimizer has taken.
    pub optimizer_steps: u64,
}

/// A training run at rest.
#[derive(Debug)]
pub struct Checkpoint {
    /// What the vectors belong to.
    pub state: State,
    /// The parameters, f32 `[parameters]`.
    pub parameters: Tensor,
    /// Their exponential average, f32 `[parameters]`.
    pub average: Tensor,
    /// What the optimizer remembers.
    pub(super) memory: Memory,
}

/// Why a checkpoint cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file system refused.
    #[error("cannot {action} {path}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is no whole checkpoint.
    #[error("{path} is not a whole checkpoint: {reason}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is missing or wrong.
        reason: String,
    },
    /// There is no checkpoint in the folder.
    #[error("{0} holds no checkpoint")]
    None(PathBuf),
}

impl Checkpoint {
    /// Writes the checkpoint into `folder`, named by its step, and removes old
    /// ones.
    ///
    /// # Errors
    /// [`CheckpointError::System`] if the disk is full or the like; older
    /// checkpoints are then untouched.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, CheckpointError> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| CheckpointError::System {
                action,
                path,
                source,
            }
        };
        std::fs::create_dir_all(folder).map_err(failed("create", folder))?;
        let path = folder.join(format!("{PREFIX}{:09}.{EXTENSION}", self.state.step));
        let json = serde_json::to_vec(&self.state).expect("plain data");
        let state = Tensor::from_slice(&json);
        let own = [
            ("state".to_owned(), &state),
            ("parameters".to_owned(), &self.parameters),
            ("average".to_owned(), &self.average),
        ];
        let memory = self.memory.iter();
        let memory = memory.map(|(name, tensor)| (format!("{MEMORY}{name}"), tensor));
        let tensors: Vec<_> = own
            .into_iter()
            .chain(memory)
            .map(|(name, tensor)| (name, tensor.to_device(Device::Cpu)))
            .collect();
        let unfinished = files::unfinished(&path).map_err(failed("write", &path))?;
        Tensor::write_safetensors(&tensors, unfinished.path())
            .map_err(std::io::Error::other)
            .map_err(failed("write", &path))?;
        // safetensors wrote through a handle of its own; this one syncs the file.
        unfinished
            .as_file()
            .sync_all()
            .map_err(failed("write", &path))?;
        unfinished
            .persist(&path)
            .map_err(|error| failed("write", &path)(error.error))?;
        for old in list(folder)?.iter().rev().skip(KEPT) {
            std::fs::remove_file(old).map_err(failed("remove", old))?;
        }
        Ok(path)
    }

    /// Reads a checkpoint onto the CPU: a file, the newest in a folder, or the
    /// newest of a run's folder.
    ///
    /// # Errors
    /// [`CheckpointError`], naming the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
        if path.is_dir() {
            let inner = path.join(super::trainer::CHECKPOINTS);
            let folder = if inner.is_dir() {
                inner.as_path()
            } else {
                path
            };
            return match list(folder)?.last() {
                Some(newest) => Checkpoint::read(newest),
                None => Err(CheckpointError::None(path.to_owned())),
            };
        }
        let broken = |reason: String| CheckpointError::Broken {
            path: path.to_owned(),
            reason,
        };
        if let Err(source) = std::fs::metadata(path) {
            let (action, path) = ("read", path.to_owned());
            return Err(CheckpointError::System {
                action,
                path,
                source,
            });
        }
        let mut tensors =
            Tensor::read_safetensors(path).map_err(|error| broken(error.to_string()))?;
        let mut take = |name: &str| {
            let place = tensors.iter().position(|(found, _)| found == name);
            let place = place.ok_or_else(|| broken(format!("it has no tensor `{name}`")))?;
            Ok(tensors.swap_remove(place).1)
        };
        let state = take("state")?;
        if state.kind() != Kind::Uint8 || state.dim() != 1 {
            return Err(broken("its state is no text".to_owned()));
        }
        let mut json = vec![0u8; state.numel()];
        state.copy_data(&mut json, state.numel());
        let state = serde_json::from_slice(&json).map_err(|error| broken(error.to_string()))?;
        Ok(Checkpoint {
            state,
            parameters: take("parameters")?,
            average: take("average")?,
            memory: tensors
                .into_iter()
                .filter_map(|(name, tensor)| Some((name.strip_prefix(MEMORY)?.to_owned(), tensor)))
                .collect(),
        })
    }
}

/// The checkpoints of a folder, oldest first; none if there is no folder.
fn list(folder: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            let (action, path) = ("read", folder.to_owned());
            return Err(CheckpointError::System {
                action,
                path,
                source,
            });
        }
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == EXTENSION)
        })
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(PREFIX))
        })
        .collect();
    found.sort();
    Ok(found)
}

/// Whether a run's folder holds a checkpoint to go on from.
pub(super) fn exists(folder: &Path) -> Result<bool, CheckpointError> {
    Ok(!list(folder)?.is_empty())
}
