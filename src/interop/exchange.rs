//! Any of the field's network files: what it is, in, and out again.

use super::lc0::{self, HeadChoice, Lc0Encoding, Lc0Error, Lc0Network};
use super::maia3::{self, Maia3Error, Maia3Network};
use super::onnx::{self, OnnxError, OnnxNetwork};
use super::pytorch;
use crate::atomic_file;
use crate::nn::Metadata;
use crate::nn::torch::{self, ExportPrecision, NetworkError, ScriptError};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use std::path::Path;

/// Why a network file cannot be described, read or written.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// None of those we know.
    #[error(
        "it is neither a network of the engine's (.pt) nor weights of Lc0's (.pb.gz), a Maia-3 checkpoint (.pt) or ONNX"
    )]
    Unknown,
    /// Nothing to be done.
    #[error("it is a network of the engine's already: name it in the option Net")]
    Native,
    /// Asked to write what is no network of the engine's.
    #[error("it is no network of the engine's: `tessera import` makes one of it")]
    Foreign,
    /// A network of the engine's that cannot be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Weights of Lc0's.
    #[error(transparent)]
    Lc0(#[from] Lc0Error),
    /// A checkpoint of Maia-3's.
    #[error(transparent)]
    Maia3(#[from] Maia3Error),
    /// ONNX, by itself or in a file of Lc0's.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// The network could not be written.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// What a network file is.
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

/// How a zip archive begins.
const ZIP: [u8; 4] = *b"PK\x03\x04";
/// How protobuf begins an ONNX model: field 1, a number, its version.
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

/// A network of another program's.
#[derive(Debug)]
pub enum ForeignNetwork {
    /// Lc0's own format.
    Lc0(Box<Lc0Network>),
    /// Maia-3's.
    Maia3(Box<Maia3Network>),
    /// ONNX, by itself or in a file of Lc0's.
    Onnx(Box<OnnxNetwork>),
}

impl ForeignNetwork {
    /// Reads a network of any of the kinds, recognised by its content.
    ///
    /// # Errors
    /// [`ExchangeError`], naming what is wrong or not supported.
    pub fn read(file: &[u8]) -> Result<ForeignNetwork, ExchangeError> {
        Ok(match FileKind::of(file).ok_or(ExchangeError::Unknown)? {
            FileKind::TorchScript => return Err(ExchangeError::Native),
            FileKind::Lc0 => match lc0::read(file) {
                Err(Lc0Error::Onnx) => ForeignNetwork::Onnx(Box::new(onnx::read(file)?)),
                network => ForeignNetwork::Lc0(Box::new(network?)),
            },
            FileKind::Checkpoint => ForeignNetwork::Maia3(Box::new(maia3::read(file)?)),
            FileKind::Onnx => ForeignNetwork::Onnx(Box::new(onnx::read(file)?)),
        })
    }

    /// Writes it as a network of the engine's, all of it or nothing; `heads` are
    /// those to be played where a network of Lc0's has several.
    ///
    /// # Errors
    /// [`ExchangeError`] if it has no such heads, or cannot be written.
    pub fn write(
        &self,
        name: &str,
        heads: &HeadChoice,
        precision: ExportPrecision,
        path: &Path,
    ) -> Result<Metadata, ExchangeError> {
        Ok(match self {
            ForeignNetwork::Lc0(network) => {
                heads.check(network.config())?;
                network.write_torchscript(name, heads, precision, path)?
            }
            ForeignNetwork::Maia3(network) => network.write_torchscript(name, precision, path)?,
            ForeignNetwork::Onnx(network) => network.write_torchscript(name, precision, path)?,
        })
    }
}

/// What a file says of itself: architecture, sizes, formats, heads, parameters,
/// multiply–accumulates, notes on its training.
///
/// # Errors
/// [`ExchangeError`], naming what is wrong or not supported.
pub fn describe(file: &[u8]) -> Result<Value, ExchangeError> {
    Ok(match FileKind::of(file).ok_or(ExchangeError::Unknown)? {
        FileKind::TorchScript => value(torch::open(file)?.1),
        FileKind::Lc0 => match lc0::summary(file) {
            Err(Lc0Error::Onnx) => value(onnx::read(file)?.summary()),
            summary => value(summary?),
        },
        FileKind::Checkpoint => value(maia3::summary(file)?),
        FileKind::Onnx => value(onnx::read(file)?.summary()),
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
pub fn to_lc0(file: &[u8], encoding: Lc0Encoding) -> Result<Vec<u8>, ExchangeError> {
    expect_own(file)?;
    let (module, metadata) = torch::open(file)?;
    let tensors = module.tensors().map_err(NetworkError::from)?;
    let network = Lc0Network::from_torchscript(&metadata, tensors)?;
    Ok(lc0::write(&network, encoding)?)
}

/// A network of the engine's in ONNX inside a file of Lc0's, as its ONNX
/// backends play it.
///
/// # Errors
/// [`ExchangeError`], naming what cannot be expressed.
pub fn to_onnx_in_lc0(file: &[u8], precision: ExportPrecision) -> Result<Vec<u8>, ExchangeError> {
    expect_own(file)?;
    Ok(onnx::wrap_in_lc0(file, precision)?)
}

/// A network of the engine's in ONNX.
///
/// # Errors
/// [`ExchangeError`], naming what cannot be expressed.
pub fn to_onnx(file: &[u8], precision: ExportPrecision) -> Result<Vec<u8>, ExchangeError> {
    expect_own(file)?;
    Ok(onnx::write(file, precision)?)
}

/// Of what is no network of the engine's it is said what to do.
fn expect_own(file: &[u8]) -> Result<(), ExchangeError> {
    match FileKind::of(file) {
        None => Err(ExchangeError::Unknown),
        Some(FileKind::TorchScript) => Ok(()),
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
