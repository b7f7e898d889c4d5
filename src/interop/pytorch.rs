//! Reads PyTorch checkpoints without Python.
//!
//! A checkpoint is a zip archive written by `torch.save`. A pickle describes its contents, and each
//! tensor storage is a separate entry. A pickle is a program, but this module never runs it: see
//! `torch::pickle`.

pub use crate::torch::PickleError;

use crate::torch::{Archive, ArchiveError, Object, Pickle};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use tch::Tensor;

pub(crate) use crate::torch::View;

/// The usual key of the tensor dictionary in checkpoints that also contain other data.
const STATE_DICT: &str = "model_state_dict";

/// Maximum length of a name or a note in bytes.
const LONGEST: usize = 200;
/// Maximum number of notes kept.
const MOST_NOTES: usize = 64;

/// The first bytes of a bare pickle, PyTorch's older format.
const PICKLE: u8 = 0x80;
/// The first bytes of zip archives.
const ZIP: [u8; 4] = *b"PK\x03\x04";

/// Why a file cannot be read as a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file is neither a zip archive nor a pickle.
    #[error("it is not a PyTorch checkpoint, which is a zip archive, or is truncated")]
    NotZip,
    /// The file is a pickle outside a zip archive.
    #[error(
        "it was saved in PyTorch's format from before version 1.6: load it there and save it again with `torch.save`"
    )]
    Legacy,
    /// The file is TorchScript, which contains a network together with its code.
    #[error("it is TorchScript, which contains code, instead of a checkpoint of tensors")]
    TorchScript,
    /// The archive's directory is invalid.
    #[error("its zip directory is damaged ({0}): fetch it again")]
    Directory(String),
    /// The archive has too many entries for a checkpoint.
    #[error("its zip directory has too many entries: {0}")]
    Crowded(u64),
    /// A required entry is missing.
    #[error("it has no entry `{0}`: it is not a PyTorch checkpoint, or is truncated")]
    NoEntry(String),
    /// An entry is compressed, which `torch.save` never does.
    #[error("its entry `{0}` is compressed, as `torch.save` never does: unpack and save it again")]
    Compressed(String),
    /// An entry lies outside the file or has a wrong checksum.
    #[error("its entry `{0}` is damaged: fetch it again")]
    Damaged(String),
    /// There is not enough memory for an entry.
    #[error("there is not enough memory for it: {0}")]
    OutOfMemory(std::io::Error),
    /// The checkpoint was saved on a big-endian machine.
    #[error("it was saved on a big-endian machine: save it again on another")]
    BigEndian,
    /// The pickle cannot be read.
    #[error("its pickle cannot be used: {0}")]
    Pickle(#[from] PickleError),
    /// The name of a tensor is too long or contains control characters.
    #[error("it contains a tensor whose name has {LONGEST} or more bytes or invalid characters")]
    Name,
    /// The checkpoint is not a dictionary of tensors.
    #[error("it holds no dictionary of tensors by name")]
    NoTensors,
}

impl From<ArchiveError> for CheckpointError {
    fn from(error: ArchiveError) -> CheckpointError {
        match error {
            ArchiveError::NotZip => CheckpointError::NotZip,
            ArchiveError::Directory(reason) => CheckpointError::Directory(reason),
            ArchiveError::Crowded(entries) => CheckpointError::Crowded(entries),
            ArchiveError::NoEntry(name) => CheckpointError::NoEntry(name),
            ArchiveError::Compressed(name) => CheckpointError::Compressed(name),
            ArchiveError::OutOfMemory(error) => CheckpointError::OutOfMemory(error),
            ArchiveError::Damaged(name) | ArchiveError::Large(name) => {
                CheckpointError::Damaged(name)
            }
        }
    }
}

/// Returns whether `torch.save` may have written a file: whether it is a zip archive other than
/// TorchScript, or a bare pickle. The file may be truncated.
pub fn is_checkpoint(file: &[u8]) -> bool {
    let saved = file.first() == Some(&PICKLE) || file.starts_with(&ZIP);
    saved && !matches!(open(file), Err(CheckpointError::TorchScript))
}

/// Opens a checkpoint's archive.
fn open(file: &[u8]) -> Result<Archive<'_>, CheckpointError> {
    if file.first() == Some(&PICKLE) {
        return Err(CheckpointError::Legacy);
    }
    let mut archive = Archive::open(file)?;
    if !archive.is_checkpoint() {
        return Err(CheckpointError::TorchScript);
    }
    // Older versions of PyTorch omit this entry.
    if archive.has("byteorder") && archive.entry("byteorder")? != b"little" {
        return Err(CheckpointError::BigEndian);
    }
    Ok(archive)
}

/// The dictionary in a checkpoint. Tensors are read only when they are requested.
pub(crate) struct Checkpoint<'a> {
    archive: Archive<'a>,
    pickle: Pickle<'a>,
    /// Entries already verified.
    storages: HashMap<&'a str, &'a [u8]>,
}

impl<'a> Checkpoint<'a> {
    /// Reads a file's directory and dictionary.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub fn read(file: &'a [u8]) -> Result<Checkpoint<'a>, CheckpointError> {
        let mut archive = open(file)?;
        let pickle = Pickle::read(archive.entry("data.pkl")?)?;
        Ok(Checkpoint {
            archive,
            pickle,
            storages: HashMap::new(),
        })
    }

    /// Returns the network's tensors by name.
    ///
    /// # Errors
    /// [`CheckpointError::NoTensors`] if the checkpoint has no tensors, [`CheckpointError::Name`]
    /// if a name is invalid.
    pub fn state_dict(&self) -> Result<BTreeMap<&'a str, View<'a>>, CheckpointError> {
        let root = self.pickle.root();
        let nested = self
            .named(root)
            .find_map(|(name, object)| (name == STATE_DICT).then_some(object));
        let mut tensors = BTreeMap::new();
        for (name, object) in self.named(nested.unwrap_or(root)) {
            if let Object::Tensor(view) = object {
                if !is_showable(name) {
                    return Err(CheckpointError::Name);
                }
                tensors.insert(name, view.as_ref().clone());
            }
        }
        if tensors.is_empty() {
            return Err(CheckpointError::NoTensors);
        }
        Ok(tensors)
    }

    /// Returns the numbers and strings stored alongside the tensor dictionary, such as the training
    /// step.
    pub fn notes(&self) -> serde_json::Map<String, Value> {
        let plain = |(name, object): (&str, &Object)| {
            let value = match object {
                Object::Bool(value) => Value::from(*value),
                Object::Int(value) => Value::from(*value),
                // JSON has no infinities; they become null.
                Object::Float(value) => Value::from(*value),
                Object::Text(text) if is_showable(text) => Value::from(*text),
                _ => return None,
            };
            is_showable(name).then(|| (name.to_owned(), value))
        };
        let notes = self.named(self.pickle.root()).filter_map(plain);
        notes.take(MOST_NOTES).collect()
    }

    /// Returns a tensor in the dtype in which it was saved.
    ///
    /// # Errors
    /// [`CheckpointError`] if the tensor's storage is incomplete.
    pub fn tensor(&mut self, view: &View<'a>) -> Result<Tensor, CheckpointError> {
        let key = view.storage.key;
        let bytes = match self.storages.get(key) {
            Some(bytes) => bytes,
            None => {
                let bytes = self.archive.entry(&format!("data/{key}"))?;
                self.storages.insert(key, bytes);
                bytes
            }
        };
        view.tensor(bytes)
            .ok_or_else(|| CheckpointError::Damaged(format!("data/{key}")))
    }

    /// Returns a dictionary's entries with string keys, or no entries if `object` is not a
    /// dictionary.
    fn named(&self, object: &Object<'a>) -> impl Iterator<Item = (&'a str, &Object<'a>)> {
        let entries = match object {
            Object::Dict(entries) => entries.as_slice(),
            _ => &[],
        };
        entries
            .iter()
            .filter_map(|&(key, value)| match self.pickle.get(key) {
                Object::Text(name) => Some((*name, self.pickle.get(value))),
                _ => None,
            })
    }
}

/// Returns whether a string from the file may be displayed: it must be short and contain no
/// terminal control characters.
fn is_showable(text: &str) -> bool {
    text.len() < LONGEST && !text.contains(char::is_control)
}
