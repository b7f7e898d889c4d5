//! Targets that read network files.

use super::super::records::Records;
use std::sync::LazyLock;
use tessera::backend::{CodePolicy, DeviceChoice, Precision, Way};
use tessera::inference::{self, open_by};
use tessera::interop::{lc0, maia3, onnx};
use tessera::network::lc0::HeadChoice;

/// A network file whose records the targets replace.
static NETWORK: LazyLock<Records> =
    LazyLock::new(|| Records::read(include_bytes!("../corpus/torch/tiny.pt")));

pub fn read_lc0(input: &[u8]) {
    let _ = lc0::summary(input);
    let _ = lc0::read(input, HeadChoice::default());
}

pub fn read_onnx(input: &[u8]) {
    let _ = onnx::read(input);
}

pub fn read_maia3(input: &[u8]) {
    let _ = maia3::summary(input);
    let _ = maia3::read(input);
}

/// Opens a network file with both of its readers.
pub fn read_torch(input: &[u8]) {
    let (policy, device) = (CodePolicy::Checked, DeviceChoice::Cpu);
    let _ = open_by(Way::File, input, policy, device, Precision::F32, 1);
    let _ = inference::open(input, policy, device, Precision::F32, 1);
}

/// Replaces the code in an otherwise valid network file, because an archive rarely survives
/// byte-level mutations.
pub fn read_torch_code(input: &[u8]) {
    read_torch(&NETWORK.with("code/__torch__.py", input).file());
}

/// Replaces the pickled objects in the same way.
pub fn read_torch_pickle(input: &[u8]) {
    read_torch(&NETWORK.with("data.pkl", input).file());
}
