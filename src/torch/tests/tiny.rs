//! A tiny network for tests, which is created at run time.

use super::module::tests::building::BuiltModule;
use crate::backend::Metadata;
use crate::backend::metadata::RECORD;
use crate::backend::metadata::tests::metadata;
use crate::encode::POLICY_SIZE;
use crate::torch::tensor_hash;
use std::io::Cursor;
use tch::{Device, Kind, Tensor};
use zip::write::FileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

const WIDTH: i64 = 16;
/// The network's outputs, in order.
pub(crate) const OUTPUTS: [&str; 5] = ["policy", "wdl", "moves_left", "q", "q_error"];

/// The network's code. It expands the bitboards of the current position to 768 values, adds the
/// scalars, and computes all outputs from one hidden layer. It uses only operators that our
/// exporters write.
pub(crate) const FORWARD: &str = "
def forward(self, x):
    boards = torch.unsqueeze(torch.slice(x, 1, 0, 12), 2)
    bits = torch.bitwise_and(torch.bitwise_right_shift(boards, self.squares), 1)
    bits = torch.type_as(torch.flatten(bits, 1), self.embedding)
    scalars = torch.type_as(torch.ne(torch.slice(x, 1, 104), 0), self.embedding)
    sums = torch.matmul(bits, self.embedding) + torch.sum(scalars, [1], True)
    y = torch.matmul(torch.tanh(sums), self.heads)
    moves_left = torch.add(torch.select(y, 1, 3), 50)
    q, error = torch.tanh(torch.select(y, 1, 4)), torch.sigmoid(torch.select(y, 1, 5))
    return torch.slice(y, 1, 6), torch.slice(y, 1, 0, 3), moves_left, q, error
";

/// Returns the network's tensors, which are the same in every call. Their values look random. They
/// are multiples of 2⁻⁹, which bf16 represents exactly.
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

/// Returns the network's metadata, in which this output ranks moves.
pub(crate) fn honest_metadata(search_value: &str) -> Metadata {
    let named = tensors().into_iter().map(|(name, t)| (name.to_owned(), t));
    let mut metadata = metadata(&OUTPUTS, search_value);
    metadata.hash = tensor_hash(named);
    metadata
}

/// Returns the bytes of a network file with this metadata.
pub(crate) fn network(metadata: &Metadata) -> Vec<u8> {
    file(FORWARD, Some(metadata))
}

/// Returns the bytes of a file with the network's tensors but a different `forward`.
pub(crate) fn file(forward: &str, metadata: Option<&Metadata>) -> Vec<u8> {
    let mut module = BuiltModule::create("__torch__.Tiny");
    for (name, tensor) in tensors() {
        if tensor.kind() == Kind::Float {
            module.register_parameter(name, &tensor);
        } else {
            module.register_buffer(name, &tensor);
        }
    }
    module.define(forward);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.pt");
    module.save(&path);
    let mut file = std::fs::read(&path).unwrap();
    if let Some(metadata) = metadata {
        let mut zip = ZipWriter::new_append(Cursor::new(&mut file)).unwrap();
        // The same network is the same file, whatever the time.
        let options = FileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default());
        let name = format!("tiny/extra/{RECORD}");
        zip.start_file(name, options).unwrap();
        serde_json::to_writer(&mut zip, metadata).unwrap();
        zip.finish().unwrap();
    }
    file
}
