//! Recognises, describes, imports and exports network files.

use super::lc0::{self, Lc0Encoding, Lc0Error};
use super::maia3::{self, Maia3Error};
use super::onnx::{self, OnnxError};
use super::pytorch;
use crate::backend::{CodePolicy, Metadata};
use crate::network::lc0::HeadChoice;
use crate::network::{self, Network, OpenError};
use crate::torch::{self, ExportPrecision, NetworkError};
use serde::Serialize;
use serde_json::Value;

/// Why a network file cannot be described, read or written.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The kind of file is unknown.
    #[error(
        "not a known network file: neither the engine's (.pt), nor Lc0's weights (.pb.gz), a Maia-3 checkpoint (.pt) or ONNX"
    )]
    Unknown,
    /// The file is one of the engine's own networks, so it need not be imported.
    #[error("already a network of the engine: name it in the option Net")]
    Native,
    /// The file is a network of another program, but one of the engine's own networks is required.
    #[error("another program's network: `tessera import` converts it")]
    Foreign,
    /// The file is one of the engine's own networks, but the network is unusable.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The file is one of the engine's own networks, but it cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An error in Lc0 weights.
    #[error(transparent)]
    Lc0(#[from] Lc0Error),
    /// An error in a Maia-3 checkpoint.
    #[error(transparent)]
    Maia3(#[from] Maia3Error),
    /// An ONNX model, in a file of its own or in an Lc0 file, cannot be read or written.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
}

/// The kind of a network file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// TorchScript, the engine's own format.
    TorchScript,
    /// Lc0 weights, or ONNX in an Lc0 file.
    Lc0,
    /// A PyTorch checkpoint, the format of Maia-3.
    Checkpoint,
    /// ONNX.
    Onnx,
}

/// The first bytes of a zip archive.
const ZIP: [u8; 4] = *b"PK\x03\x04";
/// The first byte of an ONNX model in protobuf: the key of field 1, the version.
const ONNX: u8 = 0x08;

impl FileKind {
    /// Recognises a file by its content. Returns `None` if the kind is unknown.
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

/// Opens a network file of any kind as an eager network. The kind is recognised by the file's
/// content. If an Lc0 network has several heads, `heads` selects the ones to play with. Code in the
/// engine's own network files is [checked](CodePolicy::Checked).
///
/// # Errors
/// [`ExchangeError`], which names the problem or the unsupported part.
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

/// Opens another program's network.
///
/// # Errors
/// [`ExchangeError::Native`] if the file is one of the engine's own networks, and the errors of
/// [`open`].
pub fn open_foreign(file: &[u8], heads: HeadChoice) -> Result<Network, ExchangeError> {
    match FileKind::of(file) {
        Some(FileKind::TorchScript) => Err(ExchangeError::Native),
        _ => open(file, heads),
    }
}

/// Describes a network file: its architecture, sizes, formats, heads, number of parameters,
/// multiply–accumulates and training notes. `policy` determines whether the engine's own files may
/// contain code.
///
/// # Errors
/// [`ExchangeError`], which names the problem or the unsupported part.
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

/// Converts one of the engine's networks to Lc0's weights format, which all Lc0 backends can run.
///
/// # Errors
/// [`ExchangeError::Lc0`], which names the part that Lc0's format cannot express, or another
/// variant if the file is not one of the engine's networks.
pub fn to_lc0(
    file: &[u8],
    policy: CodePolicy,
    encoding: Lc0Encoding,
) -> Result<Vec<u8>, ExchangeError> {
    let (network, _) = open_ours(file, policy)?;
    Ok(lc0::write(&lc0::for_lc0(network)?, encoding)?)
}

/// Converts one of the engine's networks to ONNX inside an Lc0 file, for Lc0's ONNX backends.
///
/// # Errors
/// [`ExchangeError`], which names the part that cannot be expressed.
pub fn to_onnx_in_lc0(
    file: &[u8],
    policy: CodePolicy,
    precision: ExportPrecision,
) -> Result<Vec<u8>, ExchangeError> {
    let (network, _) = open_ours(file, policy)?;
    Ok(onnx::wrap_in_lc0(&network, precision)?)
}

/// Converts one of the engine's networks to ONNX.
///
/// # Errors
/// [`ExchangeError`], which names the part that cannot be expressed.
pub fn to_onnx(
    file: &[u8],
    policy: CodePolicy,
    precision: ExportPrecision,
) -> Result<Vec<u8>, ExchangeError> {
    let (network, metadata) = open_ours(file, policy)?;
    Ok(onnx::write(&network, &metadata, precision)?)
}

/// Opens one of the engine's networks. For any other file, returns an error that names its kind.
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
