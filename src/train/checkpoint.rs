//! Checkpoints: the complete state of a training run in one file.
//!
//! A checkpoint is a safetensors file. It stores the parameters, their average, the optimizer's
//! state and the sums of the unfinished [window](super::window) as f32 vectors, and the [`State`]
//! as JSON in a byte vector. A CRC-32 covers all tensors. The file is written under a temporary
//! name, synced and renamed, so a run that is killed at any instant can resume from its last
//! complete checkpoint. If the newest checkpoint is damaged, the previous one is used.

use super::config::TrainConfig;
use super::guard::Guard;
use super::optimizer::Memory;
use crate::atomic_file;
use crate::data::loader::Cursor;
use crate::torch::bytes;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tch::{Device, Kind, Tensor};

/// Prefix of the names of the optimizer's tensors.
const MEMORY: &str = "optimizer.";

/// The part of a checkpoint that is stored as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The run's configuration.
    pub config: TrainConfig,
    /// Number of steps taken.
    pub step: u64,
    /// Number of samples seen.
    pub samples: u64,
    /// Number of samples that the initial weights had seen, if known.
    #[serde(default)]
    pub earlier_samples: u64,
    /// Seconds of training, not counting interruptions.
    pub seconds: f64,
    /// The position of the next batch in the data.
    #[serde(rename = "position")]
    pub cursor: Cursor,
    /// Number of steps that the optimizer has taken.
    pub optimizer_steps: u64,
    /// Number of rollbacks to this checkpoint.
    pub rollbacks: u32,
    /// The number of steps and the number of samples in the unfinished window.
    pub(super) window: (u64, usize),
    /// State of the guard against instability.
    pub(super) guard: Guard,
    /// Running mean loss of each balanced group of terms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) harmony: Vec<f64>,
}

/// The saved state of a training run.
#[derive(Debug)]
pub struct Checkpoint {
    /// The configuration, the counters and the cursor.
    pub state: State,
    /// The parameters, f32 `[parameters]`.
    pub parameters: Tensor,
    /// The averaged parameters, which validations and exports use, f32 `[parameters]`.
    pub average: Tensor,
    /// The optimizer's state.
    pub(super) memory: Memory,
    /// Sums of the unfinished window.
    pub(super) sums: Tensor,
}

/// Why a checkpoint cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file system reported an error.
    #[error("cannot {action} {path}: {source}")]
    System {
        /// The attempted operation.
        action: &'static str,
        /// The file or folder that it concerned.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is damaged or incomplete.
    #[error("{path} is not a complete checkpoint: {reason}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The folder contains no checkpoint.
    #[error("{0} holds no checkpoint")]
    None(PathBuf),
    /// All checkpoints in the folder are damaged.
    #[error("no checkpoint in {folder} is complete; the newest: {newest}")]
    AllBroken {
        /// The folder.
        folder: PathBuf,
        /// The problem of the newest checkpoint.
        newest: Box<CheckpointError>,
    },
}

impl CheckpointError {
    pub(super) fn system(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| CheckpointError::System {
            action,
            path,
            source,
        }
    }
}

impl Checkpoint {
    /// Writes the checkpoint to `path`.
    ///
    /// # Errors
    /// [`CheckpointError::System`], for example if the disk is full; a previous file at `path` is
    /// then untouched.
    pub fn write(&self, path: &Path) -> Result<(), CheckpointError> {
        let json = serde_json::to_vec(&self.state).expect("plain data");
        let fixed = [
            ("state", &Tensor::from_slice(&json)),
            ("parameters", &self.parameters),
            ("average", &self.average),
            ("window", &self.sums),
        ]
        .map(|(name, tensor)| (name.to_owned(), tensor.to_device(Device::Cpu)));
        let memory = self.memory.iter().map(|(name, tensor)| {
            let name = format!("{MEMORY}{name}");
            (name, tensor.to_device(Device::Cpu))
        });
        let mut tensors: Vec<_> = fixed.into_iter().chain(memory).collect();
        let checksum = Tensor::from_slice(&[i64::from(checksum(&mut tensors))]);
        tensors.push(("checksum".to_owned(), checksum));
        let write = || -> std::io::Result<()> {
            let unfinished = atomic_file::unfinished(path)?;
            Tensor::write_safetensors(&tensors, unfinished.path()).map_err(system_error)?;
            atomic_file::persist(unfinished, path)
        };
        write().map_err(CheckpointError::system("write", path))
    }

    /// Reads a checkpoint file onto the CPU.
    ///
    /// # Errors
    /// [`CheckpointError`], naming the file and its problem.
    pub(super) fn read_file(path: &Path) -> Result<Checkpoint, CheckpointError> {
        std::fs::metadata(path).map_err(CheckpointError::system("read", path))?;
        parse(path).map_err(|reason| CheckpointError::Broken {
            path: path.to_owned(),
            reason,
        })
    }
}

/// Returns the system's error that prevented writing. The library shows it as Rust code only.
fn system_error(error: tch::TchError) -> std::io::Error {
    let text = error.to_string();
    let code = text.split_once("Os { code: ").and_then(|(_, rest)| {
        let (code, _) = rest.split_once(',')?;
        code.parse().ok()
    });
    code.map_or_else(
        || std::io::Error::other(text),
        std::io::Error::from_raw_os_error,
    )
}

fn parse(path: &Path) -> Result<Checkpoint, String> {
    let mut tensors = Tensor::read_safetensors(path).map_err(|error| error.to_string())?;
    let written = take(&mut tensors, "checksum")?;
    if written.kind() != Kind::Int64 || written.numel() != 1 {
        return Err("its checksum is not a number".to_owned());
    }
    if written.int64_value(&[0]) != i64::from(checksum(&mut tensors)) {
        return Err("its checksum does not match its contents".to_owned());
    }
    let state = take(&mut tensors, "state")?;
    let (parameters, average, sums) = (
        take(&mut tensors, "parameters")?,
        take(&mut tensors, "average")?,
        take(&mut tensors, "window")?,
    );
    let state = serde_json::from_slice(&bytes(&state)).map_err(|error| error.to_string())?;
    let memory = tensors
        .into_iter()
        .filter_map(|(name, tensor)| Some((name.strip_prefix(MEMORY)?.to_owned(), tensor)))
        .collect();
    Ok(Checkpoint {
        state,
        parameters,
        average,
        memory,
        sums,
    })
}

fn take(tensors: &mut Vec<(String, Tensor)>, name: &str) -> Result<Tensor, String> {
    let place = tensors.iter().position(|(found, _)| found == name);
    let place = place.ok_or_else(|| format!("it has no tensor `{name}`"))?;
    Ok(tensors.swap_remove(place).1)
}

/// Returns the CRC-32 of the tensors' names, dtypes, shapes and contents, in order of their names.
fn checksum(tensors: &mut [(String, Tensor)]) -> u32 {
    tensors.sort_by(|one, other| one.0.cmp(&other.0));
    let mut hasher = crc32fast::Hasher::new();
    for (name, tensor) in tensors {
        let head = format!("{name} {:?} {:?}", tensor.kind(), tensor.size());
        hasher.update(head.as_bytes());
        hasher.update(&bytes(tensor));
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::super::tests::tiny;
    use super::*;

    fn written() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("step-000000000.safetensors");
        tiny().checkpoint().unwrap().write(&path).unwrap();
        (folder, path)
    }

    #[test]
    fn checkpoints_survive_writing_and_reading() {
        let (_folder, path) = written();
        let mut before = tiny().checkpoint().unwrap();
        let mut after = Checkpoint::read(&path).unwrap();
        assert_eq!(before.parameters, after.parameters);
        assert_eq!(before.average, after.average);
        for memory in [&mut before.memory, &mut after.memory] {
            memory.sort_by(|one, other| one.0.cmp(&other.0));
        }
        assert_eq!(before.memory, after.memory);
        assert!(!before.memory.is_empty());
        let json = |state: &State| serde_json::to_value(state).unwrap();
        assert_eq!(json(&before.state), json(&after.state));
    }

    /// Later versions of this program must be able to resume runs in progress.
    #[test]
    fn the_entries_keep_their_names() {
        let state = serde_json::to_value(tiny().checkpoint().unwrap().state).unwrap();
        let mut names: Vec<&str> = state
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        let expected = [
            "config",
            "earlier_samples",
            "guard",
            "optimizer_steps",
            "position",
            "rollbacks",
            "samples",
            "seconds",
            "step",
            "window",
        ];
        assert_eq!(names, expected);
        let start = serde_json::json!({ "epoch": 0, "group": 0, "offset": 0 });
        assert_eq!(state["position"], start);
    }

    #[test]
    fn a_flipped_bit_or_a_lost_end_is_seen() {
        let (_folder, path) = written();
        let whole = std::fs::read(&path).unwrap();
        for place in (0..whole.len()).step_by(whole.len() / 97) {
            let mut damaged = whole.clone();
            damaged[place] ^= 4;
            std::fs::write(&path, &damaged).unwrap();
            assert!(Checkpoint::read(&path).is_err(), "bit at {place}");
            std::fs::write(&path, &whole[..place]).unwrap();
            assert!(Checkpoint::read(&path).is_err(), "cut at {place}");
        }
    }
}
