//! Converts a network to ONNX.

use super::OnnxError;
use super::builder::Builder;
use super::graph;
use super::operators::Translator;
use super::schema::{ModelProto, StringStringEntryProto};
use crate::backend::Metadata;
use crate::network::{Network, Positions};
use crate::torch::ExportPrecision;
use prost::Message;
use tch::{Device, Kind, Tensor};

/// Number of example positions for the tracer. It is more than one, so that the batch size is not
/// mistaken for a constant 1.
const TRACED: i64 = 2;

/// The largest protobuf message in bytes.
const LARGEST: usize = i32::MAX as usize;

/// A network as a function of its ONNX inputs.
pub(crate) struct Function<'a> {
    /// The names and shapes of the inputs; the first dimension is the batch.
    pub inputs: Vec<(&'a str, Vec<i64>)>,
    /// The tensors that the function reads directly, with their names.
    pub tensors: Vec<(String, Tensor)>,
    /// The names of the outputs.
    pub outputs: Vec<&'a str>,
    /// Maps the inputs to the outputs.
    pub forward: &'a dyn Fn(&[Tensor]) -> Vec<Tensor>,
}

impl Function<'_> {
    /// Converts the function to an ONNX model in the dtype of `precision`.
    pub fn model(&self, precision: ExportPrecision) -> Result<ModelProto, OnnxError> {
        let given: Vec<Tensor> = self
            .inputs
            .iter()
            .map(|(_, shape)| {
                let sizes: Vec<i64> = std::iter::once(TRACED).chain(shape.clone()).collect();
                Tensor::zeros(sizes, (Kind::Float, Device::Cpu))
            })
            .collect();
        let known: Vec<Tensor> = self
            .tensors
            .iter()
            .map(|(_, t)| t.shallow_clone())
            .collect();
        let mut graph = graph::trace(&given, &known, self.outputs.len(), self.forward)
            .map_err(OnnxError::Torch)?;
        // Nodes on which no output depends are omitted.
        let used = graph.prune();
        let mut builder = Builder::new(precision);
        let mut names = Vec::new();
        for ((name, _), given) in self.inputs.iter().zip(&given) {
            builder.input(name, &given.size());
            names.push((*name).to_owned());
        }
        let known = self.tensors.iter().zip(&graph.inputs[given.len()..]);
        for ((name, tensor), input) in known {
            names.push(match used.contains(&input.value) {
                true => builder.tensor(name, tensor),
                false => String::new(),
            });
        }
        let mut translator = Translator::new(builder, &graph, names);
        for node in &graph.nodes {
            translator.node(node)?;
        }
        for (name, output) in self.outputs.iter().zip(&graph.outputs) {
            let (from, shape) = translator
                .output(output)
                .ok_or_else(|| OnnxError::Torch(format!("the output {name} is not a tensor")))?;
            translator.builder.output(name, &from, shape);
        }
        Ok(translator.builder.finish())
    }
}

/// Writes a network as ONNX. The batch is the first dimension of all inputs, and the outputs have
/// the same names as in the network file. The input of most families is `/input/planes` [batch,
/// 112, 8, 8], with the planes that Lc0 uses for the network's input format. `metadata` is the
/// metadata of the network file.
///
/// Maia-3 networks read planes [batch, 104, 8, 8], which contain the bits of a row's bitboards, and
/// the ratings `self_elo` and `opponent_elo`, one value per position.
///
/// # Errors
/// [`OnnxError`] if the network cannot be expressed.
pub fn write(
    network: &Network,
    metadata: &Metadata,
    precision: ExportPrecision,
) -> Result<Vec<u8>, OnnxError> {
    let interface = network.architecture.interface();
    let outputs = interface.outputs.iter();
    let function = Function {
        inputs: interface.planes,
        tensors: tensors(network),
        outputs: outputs.map(|output| output.name()).collect(),
        forward: &|given| network.forward(Positions::Planes(given)),
    };
    let mut model = function.model(precision)?;
    model.metadata_props = properties(metadata);
    encode(&model)
}

/// Returns all tensors that the network reads, by name.
pub(super) fn tensors(network: &Network) -> Vec<(String, Tensor)> {
    let mut tensors = network.parameters();
    tensors.extend(network.architecture.buffers());
    tensors
}

/// The model property that contains the network file's metadata.
const METADATA: &str = "tessera";

/// Returns the network file's metadata as properties.
fn properties(metadata: &Metadata) -> Vec<StringStringEntryProto> {
    let json = serde_json::to_string(metadata).expect("plain data");
    vec![StringStringEntryProto {
        key: METADATA.to_owned(),
        value: json,
    }]
}

pub(super) fn encode(model: &ModelProto) -> Result<Vec<u8>, OnnxError> {
    match model.encoded_len() {
        size if size > LARGEST => Err(OnnxError::TooLarge(size)),
        _ => Ok(model.encode_to_vec()),
    }
}
