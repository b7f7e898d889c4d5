//! A network with fixed outputs: a favourite move and constant chances for White.

use crate::building::BuiltModule;
use std::fs::File;
use std::path::Path;
use tch::{Device, Kind, Tensor};
use tessera::backend::{CONTRACT, EncoderSpec, FORWARD, Metadata, Method, PlanesSpec, TensorSpec};
use tessera::encode::{InputFormat, POLICY_SIZE, SCALARS};
use tessera::torch::tensor_hash;
use zip::write::FileOptions;
use zip::{CompressionMethod, ZipWriter};

const SOURCE: &str = "
def forward(self, x):
    rows = torch.mul(x[:, :1], 0)
    return rows + self.policy, rows + self.wdl
";

/// Writes a network that assigns a logit of 5 to the policy index `favourite` and 0 to all others,
/// and that gives every position these logits of win, draw and loss.
pub fn write(path: &Path, favourite: usize, wdl: [f32; 3]) {
    let policy = Tensor::zeros([POLICY_SIZE as i64], (Kind::Float, Device::Cpu));
    let _ = policy.get(favourite as i64).fill_(5.0);
    let tensors = [("policy", policy), ("wdl", Tensor::from_slice(&wdl))];
    let mut module = BuiltModule::create("Opinion");
    for (name, tensor) in &tensors {
        module.register_parameter(name, tensor);
    }
    let scalars = SCALARS.map(str::to_owned).to_vec();
    let format = InputFormat::Classical.number();
    let planes = PlanesSpec::new(format, scalars);
    let forward = Method {
        inputs: vec![planes.rows()],
        outputs: ["policy", "wdl"].map(TensorSpec::of_output).to_vec(),
    };
    let metadata = Metadata {
        contract: CONTRACT,
        name: "opinion".to_owned(),
        architecture: serde_json::json!({"layers": 0}),
        encoder: EncoderSpec::Planes(planes),
        methods: [(FORWARD.to_owned(), forward)].into(),
        search_value: None,
        correction: None,
        parameters: POLICY_SIZE as u64 + 3,
        macs: 0,
        training: serde_json::Value::Null,
        licence: "CC0-1.0".to_owned(),
        hash: tensor_hash(tensors.map(|(name, tensor)| (name.to_owned(), tensor))),
    };
    module.define(SOURCE);
    module.save(path);
    let folder = path.file_stem().unwrap().to_str().unwrap();
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut zip = ZipWriter::new_append(file).unwrap();
    let options = FileOptions::default().compression_method(CompressionMethod::Stored);
    let name = format!("{folder}/extra/metadata.json");
    zip.start_file(name, options).unwrap();
    serde_json::to_writer(&mut zip, &metadata).unwrap();
    zip.finish().unwrap();
}
