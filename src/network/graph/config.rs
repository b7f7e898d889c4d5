//! A graph of ONNX as a description: all of it but the tensors.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a graph computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphConfig {
    /// The version of ONNX's operators.
    pub operator_set: i64,
    /// The name of the planes, [batch, 112, 8, 8].
    pub input: String,
    /// How Lc0 fills the planes: the number of its input format.
    pub input_format: u32,
    /// The values that are the network's outputs.
    pub outputs: Vec<OutputConfig>,
    /// The tensors that are not computed: their names in the graph by those of
    /// the parameters and buffers that hold them.
    pub tensors: BTreeMap<String, String>,
    /// The operators in the order of their work.
    pub nodes: Vec<NodeConfig>,
}

/// One output of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputConfig {
    /// Its name in a network file's metadata.
    pub name: String,
    /// The value's name in the graph.
    pub value: String,
    /// What the value's numbers are.
    pub form: OutputForm,
}

/// What the numbers of an output are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputForm {
    /// What the network file's output of that name is to be.
    Plain,
    /// Probabilities, of which the network file wants the logarithms.
    Probabilities,
    /// For `wdl`: the expected result, −1…1.
    Result,
}

/// One operator at work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// Its name in ONNX: `MatMul`.
    pub operator: String,
    /// The values that it reads; those left out are empty.
    pub inputs: Vec<String>,
    /// The values that it makes.
    pub outputs: Vec<String>,
    /// Its attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, Attribute>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribute {
    /// An integer.
    Int(i64),
    /// A number.
    Float(f32),
    /// Integers.
    Ints(Vec<i64>),
    /// Text.
    Text(String),
}

impl NodeConfig {
    /// What people know it by: its first output.
    pub(super) fn name(&self) -> &str {
        self.outputs.first().map_or("", String::as_str)
    }
}
