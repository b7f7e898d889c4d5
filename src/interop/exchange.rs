//! Any of the field's network files: what it is, in, and out again.

use super::lc0::{self, Lc0Encoding, Lc0Error};
use super::maia3::{self, Maia3Error};
use super::onnx::{self, OnnxError};
use super::pytorch;
use crate::atomic_file;
use crate::backend::{CodePolicy, Metadata};
use crate::network::lc0::HeadChoice;
use crate::network::{self, Network, OpenError};
use crate::torch::{self, ExportPrecision, NetworkError};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use std::path::Path;

/// Why a network file cannot be described, read or written.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// None of those we know.
    #[error(
        "not a known network file: neither the engine's (.pt), nor Lc0's weights (.pb.gz), a Maia-3 checkpoint (.pt) or ONNX"
    )]
    Unknown,
    /// There is nothing to import.
    #[error("already a network of the engine: name it in the option Net")]
    Native,
    /// Another program's network, where one of the engine's has to be.
    #[error("another program's network: `tessera import` converts it")]
    Foreign,
    /// A network of the engine's that cannot be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A network of the engine's that cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Weights of Lc0's.
    #[error(transparent)]
    Lc0(#[from] Lc0Error),
    /// A checkpoint of Maia-3's.
    #[error(transparent)]
    Maia3(#[from] Maia3Error),
    /// ONNX, by itself or in a file of Lc0's.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
}

/// The kind of a network file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// TorchScript, as the engine plays it.
    TorchScript,
    /// Weights of Lc0's, or ONNX in a file of its.
    Lc0,
    /// A checkpoint of PyTorch's: Maia-3's come so.
    Checkpoint,
    /// ONNX.
    Onnx,
}

/// The first bytes of a zip archive.
const ZIP: [u8; 4] = *b"PK\x03\x04";
/// The first bytes of an ONNX model in protobuf: field 1, its version.
const ONNX: u8 = 0x08;

impl FileKind {
    /// Recognises a file by its content; `None` if it is none of these.
    #[must_use]
    pub fn of(file: &[u8]) -> Option<FileKind> {
        if lc0::is_weights_file(file) {
            Some(FileKind::Lc0)
        } else if pytorch::is_checkpoint(file) {
            Some(FileKind::Checkpoint)
        } else if file.starts_with(&ZIP) {
            Some(FileKind::TorchScript)
        } else if file.first() == Some(&ONNX) {
            Some(FileKind::Onnx)
        } else {
            None
        }
    }
}

/// Opens a network of any of the kinds, recognised by its content, as an eager
/// network. `heads` are those to be played where one of Lc0's has several. Of the
/// engine's own, code is [checked](CodePolicy::Checked).
///
/// # Errors
/// [`ExchangeError`], naming what is wrong or not supported.
pub fn open(file: &[u8], heads: HeadChoice) -> Result<Network, ExchangeError> {
    Ok(match FileKind::of(file).ok_or(ExchangeError::Unknown)? {
        FileKind::TorchScript => network::open(file, CodePolicy::Checked)?,
        FileKind::Lc0 => match lc0::read(file, heads) {
            Err(Lc0Error::Onnx) => onnx::read(file)?,
            network => network?,
        },
        FileKind::Checkpoint => maia3::read(file)?,
        FileKind::Onnx => onnx::read(file)?,
    })
}

/// Opens a network of another program's.
///
/// # Errors
/// [`ExchangeError::Native`] if it is one of the engine's; others as for [`open`].
pub fn open_foreign(file: &[u8], heads: HeadChoice) -> Result<Network, ExchangeError> {
    match FileKind::of(file) {
        Some(FileKind::TorchScript) => Err(ExchangeError::Native),
        _ => open(file, heads),
    }
}

/// Describes a file: architecture, sizes, formats, heads, parameters, multiply–accumulates, notes
/// on its training. The engine's own files may bring code, subject to the policy.
///
/// # Errors
/// [`ExchangeError`], naming what is wrong or not supported.
pub fn describe(file: &[u8], policy: CodePolicy) -> Result<Value, ExchangeError> {
    Ok(match FileKind::of(file).ok_or(ExchangeError::Unknown)? {
        FileKind::TorchScript => value(torch::describe(file, policy)?),
        FileKind::Lc0 => match lc0::summary(file) {
            Err(Lc0Error::Onnx) => value(onnx::summary(file)?),
            summary => value(summary?),
        },
        FileKind::Checkpoint => value(maia3::summary(file)?),
        FileKind::Onnx => value(onnx::summary(file)?),
    })
}

fn value(described: impl Serialize) -> Value {
    serde_json::to_value(described).expect("plain data")
}

/// A network of the engine's in Lc0's own format, as all its backends play it.
///
/// # Errors
/// [`ExchangeError::Lc0`], naming what Lc0's format cannot express; another if
/// the file is no network of the engine's.
pub fn to_lc0(
    file: &[u8],
    policy: CodePolicy,
    encoding: Lc0Encoding,
) -> Result<Vec<u8>, ExchangeError> {
    let (network, _) = open_ours(file, policy)?;
    Ok(lc0::write(&lc0::for_lc0(network)?, encoding)?)
}

/// A network of the engine's in ONNX inside a file of Lc0's, as its ONNX
/// backends play it.
///
/// # Errors
/// [`ExchangeError`], naming what cannot be expressed.
pub fn to_onnx_in_lc0(
    file: &[u8],
    policy: CodePolicy,
    precision: ExportPrecision,
) -> Result<Vec<u8>, ExchangeError> {
    let (network, _) = open_ours(file, policy)?;
    Ok(onnx::wrap_in_lc0(&network, precision)?)
}

/// A network of the engine's in ONNX.
///
/// # Errors
/// [`ExchangeError`], naming what cannot be expressed.
pub fn to_onnx(
    file: &[u8],
    policy: CodePolicy,
    precision: ExportPrecision,
) -> Result<Vec<u8>, ExchangeError> {
    let (network, metadata) = open_ours(file, policy)?;
    Ok(onnx::write(&network, &metadata, precision)?)
}

/// A network of the engine's; refuses other files, each with its reason.
fn open_ours(file: &[u8], policy: CodePolicy) -> Result<(Network, Metadata), ExchangeError> {
    match FileKind::of(file) {
        None => Err(ExchangeError::Unknown),
        Some(FileKind::TorchScript) => {
            let (metadata, tensors) = torch::contents(file, policy)?;
            Ok((Network::from_tensors(&metadata, tensors)?, metadata))
        }
        Some(_) => Err(ExchangeError::Foreign),
    }
}

/// Puts an exported network at `path`, all of it or nothing.
///
/// # Errors
/// What the system says.
pub fn save(path: &Path, network: &[u8]) -> std::io::Result<()> {
    let mut unfinished = atomic_file::unfinished(path)?;
    unfinished.write_all(network)?;
    atomic_file::persist(unfinished, path)
}
