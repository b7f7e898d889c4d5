//! A network small enough for tests, made on the spot.

use super::Module;
use crate::encode::POLICY_SIZE;
use crate::nn::metadata::tests::metadata;
use crate::nn::{Metadata, tensor_hash};
use tch::{Device, Kind, Tensor};

const WIDTH: i64 = 16;
/// The outputs of the network, in its order.
pub(crate) const OUTPUTS: [&str; 5] = ["policy", "wdl", "moves_left", "q", "q_error"];

/// Expands the bitboards of the current position to 768 numbers, adds the
/// scalars, and reads everything off one hidden layer.
pub(crate) const FORWARD: &str = "
def forward(self, x):
    bits = (x[:, :12].unsqueeze(2) >> self.squares) & 1
    scalars = (x[:, 104:] != 0).to(self.embedding.dtype)
    bits = bits.flatten(1).to(self.embedding.dtype)
    h = torch.tanh(bits @ self.embedding + scalars.sum(1, keepdim=True))
    y = h @ self.heads
    return y[:, 6:], y[:, :3], 50 + y[:, 3], torch.tanh(y[:, 4]), torch.exp(y[:, 5])
";

/// The tensors of the network, the same each time: multiples of 2⁻⁹ that look
/// random and that bf16 holds exactly.
fn tensors() -> Vec<(&'static str, Tensor)> {
    let matrix = |rows: i64, columns: i64, salt: i64| {
        let numbers = Tensor::arange(rows * columns, (Kind::Int64, Device::Cpu));
        let numbers = (numbers * 7919 + salt) * 104_729;
        let numbers = numbers.floor_divide_scalar(64).remainder(256) - 128;
        numbers.to_kind(Kind::Float).view([rows, columns]) / 512
    };
    vec![
        ("embedding", matrix(768, WIDTH, 1)),
        ("heads", matrix(WIDTH, 6 + POLICY_SIZE as i64, 2)),
        ("squares", Tensor::arange(64, (Kind::Int64, Device::Cpu))),
    ]
}

/// The network's metadata, with this output ranking moves.
pub(crate) fn honest_metadata(search_value: &str) -> Metadata {
    let named = tensors().into_iter().map(|(name, t)| (name.to_owned(), t));
    let mut metadata = metadata(&OUTPUTS, search_value);
    metadata.hash = tensor_hash(named);
    metadata
}

/// The bytes of the network's file, saying `metadata` of itself.
pub(crate) fn network(metadata: &Metadata) -> Vec<u8> {
    file(FORWARD, Some(metadata))
}

/// The bytes of a file with the network's tensors and another `forward`.
pub(crate) fn file(forward: &str, metadata: Option<&Metadata>) -> Vec<u8> {
    let mut module = Module::create("Tiny").unwrap();
    for (name, tensor) in tensors() {
        if tensor.kind() == Kind::Float {
            module.register_parameter(name, &tensor).unwrap();
        } else {
            module.register_buffer(name, &tensor).unwrap();
        }
    }
    module.define(forward).unwrap();
    if let Some(metadata) = metadata {
        let json = serde_json::to_string(metadata).unwrap();
        let meta = format!("def meta(self):\n    return {json:?}");
        module.define(&meta).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.pt");
    module.save(&path).unwrap();
    std::fs::read(&path).unwrap()
}
