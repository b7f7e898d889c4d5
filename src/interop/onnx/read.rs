//! Files that hold networks in ONNX.

use super::OnnxError;
use super::network::{Interface, OnnxNetwork};
use super::schema::ModelProto;
use prost::Message;

/// Reads a network from ONNX: what Lc0's `leela2onnx` or [`super::write`] made.
///
/// The network is tried on two positions: what comes back can be evaluated.
///
/// # Errors
/// [`OnnxError`] if it is none, is damaged, lies in several files, or has
/// operators other than those of the field's networks.
pub fn read(file: &[u8]) -> Result<OnnxNetwork, OnnxError> {
    let model = ModelProto::decode(file)?;
    OnnxNetwork::new(&model, &Interface::of_lc0())
}
