//! Files that hold networks in ONNX.

use super::OnnxError;
use super::network::{Interface, OnnxNetwork};
use super::schema::ModelProto;
use crate::interop::lc0::container;
use crate::interop::lc0::schema::Net;
use prost::Message;

/// Reads a network from ONNX: what Lc0's `leela2onnx` or [`super::write`] made, or
/// a weights file of Lc0's that has it inside.
///
/// The network is tried on two positions: what comes back can be evaluated.
///
/// # Errors
/// [`OnnxError`] if it is none, is damaged, lies in several files, or has
/// operators other than those of the field's networks.
pub fn read(file: &[u8]) -> Result<OnnxNetwork, OnnxError> {
    let is_compressed = file.starts_with(&[0x1f, 0x8b]);
    if !is_compressed && !container::is_net(file) {
        return model(file, &Interface::of_lc0());
    }
    let net = container::open(file)?;
    let held = net.onnx_model.as_ref();
    let held = held.and_then(|held| held.model.as_ref());
    model(held.ok_or(OnnxError::NoModel)?, &interface(&net))
}

fn model(bytes: &[u8], interface: &Interface) -> Result<OnnxNetwork, OnnxError> {
    OnnxNetwork::read(&ModelProto::decode(bytes)?, interface)
}

/// The names that a weights file gives.
fn interface(net: &Net) -> Interface {
    let format = net.format.and_then(|format| format.network_format);
    let format = format.unwrap_or_default().input();
    let names = net.onnx_model.clone().unwrap_or_default();
    let usual = Interface::of_lc0();
    Interface {
        planes: names.input_planes.unwrap_or(usual.planes),
        input_format: u32::try_from(format).unwrap_or_default(),
        policy: names.output_policy,
        wdl: names.output_wdl,
        value: names.output_value,
        moves_left: names.output_mlh,
        licence: net.license.clone(),
    }
}
