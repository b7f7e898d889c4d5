//! What a network in ONNX is, for people.

use super::OnnxNetwork;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a file of ONNX says of its network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnnxSummary {
    /// The version of ONNX's operators.
    pub operator_set: i64,
    /// How often each operator is at work.
    pub operators: BTreeMap<String, usize>,
    /// How Lc0 fills the planes: the number of its input format.
    pub input_format: u32,
    /// The outputs, by their names in the metadata of a network file.
    pub outputs: Vec<String>,
    /// Parameters.
    pub parameters: u64,
    /// Multiply–accumulates of one evaluation.
    pub macs: i64,
    /// Licence of the weights as the file states it, or `unknown`.
    pub licence: String,
    /// What is known of where the network is from.
    pub training: serde_json::Value,
}

impl OnnxNetwork {
    /// What it is.
    #[must_use]
    pub fn summary(&self) -> OnnxSummary {
        let mut operators = BTreeMap::new();
        for node in &self.config().nodes {
            *operators.entry(node.operator.clone()).or_default() += 1;
        }
        OnnxSummary {
            operator_set: self.config().operator_set,
            operators,
            input_format: self.config().input_format,
            outputs: self.outputs().map(str::to_owned).collect(),
            parameters: self.count(),
            macs: self.macs(),
            licence: self.notes().licence.clone(),
            training: self.notes().training.clone(),
        }
    }
}
