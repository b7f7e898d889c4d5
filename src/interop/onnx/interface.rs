//! What in a graph of ONNX is what: planes, outputs, operators.

use super::OnnxError;
use super::schema::{AttributeProto, AttributeType, GraphProto, ModelProto, NodeProto};
use super::wrap::{MOVES_LEFT, POLICY, VALUE, WDL};
use super::write::METADATA;
use crate::encode::InputFormat;
use crate::network::PLANES;
use crate::network::graph::{Attribute, GraphConfig, NodeConfig, OutputConfig, OutputForm};
use crate::nn::Metadata;
use std::collections::{BTreeMap, BTreeSet};

/// The names by which a file calls inputs and outputs, and how its planes are
/// filled.
pub(super) struct Interface {
    pub planes: String,
    pub input_format: u32,
    pub policy: Option<String>,
    pub wdl: Option<String>,
    pub value: Option<String>,
    pub moves_left: Option<String>,
    pub licence: Option<String>,
}

impl Interface {
    /// The names that Lc0's converter gives, in the format that most networks
    /// read.
    pub fn of_lc0() -> Interface {
        let name = |name: &str| Some(name.to_owned());
        Interface {
            planes: PLANES.to_owned(),
            input_format: InputFormat::Classical.number(),
            policy: name(POLICY),
            wdl: name(WDL),
            value: name(VALUE),
            moves_left: name(MOVES_LEFT),
            licence: None,
        }
    }
}

/// What the file says of itself, if it was one of our networks once.
pub(super) fn metadata(model: &ModelProto) -> Option<Metadata> {
    let mut properties = model.metadata_props.iter();
    let property = properties.find(|property| property.key == METADATA)?;
    Metadata::parse(&property.value).ok()
}

/// What the model computes, without its tensors.
///
/// # Errors
/// [`OnnxError`] if the graph's inputs or outputs are not a network's.
pub(super) fn describe(
    model: &ModelProto,
    graph: &GraphProto,
    interface: &Interface,
    metadata: Option<&Metadata>,
) -> Result<GraphConfig, OnnxError> {
    let nodes = nodes(graph)?;
    let format = metadata.and_then(|metadata| Some(metadata.planes().ok()?.format));
    Ok(GraphConfig {
        operator_set: operator_set(model)?,
        input: input(graph, &interface.planes)?,
        input_format: format.unwrap_or(interface.input_format),
        outputs: outputs(graph, &nodes, interface, metadata)?,
        tensors: BTreeMap::new(),
        nodes,
    })
}

fn operator_set(model: &ModelProto) -> Result<i64, OnnxError> {
    let mut sets = model.opset_import.iter();
    let set = sets.find(|set| set.domain.is_empty() || set.domain == "ai.onnx");
    match set.map(|set| set.version) {
        Some(version) if (7..=24).contains(&version) => Ok(version),
        version => Err(OnnxError::OperatorSet(version.unwrap_or_default())),
    }
}

/// All operators but constants.
fn nodes(graph: &GraphProto) -> Result<Vec<NodeConfig>, OnnxError> {
    let nodes = graph.node.iter().filter(|node| node.op_type != "Constant");
    let mut made = BTreeSet::new();
    nodes
        .map(|node| {
            if let Some(twice) = node.output.iter().find(|&output| !made.insert(output)) {
                return Err(OnnxError::MadeTwice(twice.clone()));
            }
            Ok(node_config(node))
        })
        .collect()
}

/// The name of the planes: the one expected, or of the only input.
fn input(graph: &GraphProto, expected: &str) -> Result<String, OnnxError> {
    // Before version 4 of the format initializers were inputs too.
    let stored: BTreeSet<&String> = graph.initializer.iter().map(|t| &t.name).collect();
    let inputs = graph.input.iter().map(|input| &input.name);
    let inputs: Vec<&String> = inputs.filter(|&name| !stored.contains(name)).collect();
    match inputs.as_slice() {
        [only] => Ok((*only).clone()),
        all if all.iter().any(|&name| name == expected) => Ok(expected.to_owned()),
        all => Err(OnnxError::Inputs(all.len())),
    }
}

fn outputs(
    graph: &GraphProto,
    nodes: &[NodeConfig],
    interface: &Interface,
    metadata: Option<&Metadata>,
) -> Result<Vec<OutputConfig>, OnnxError> {
    let is_there = |name: &str| graph.output.iter().any(|output| output.name == name);
    let output = |name: &str, value: &str, form| OutputConfig {
        name: name.to_owned(),
        value: value.to_owned(),
        form,
    };
    // Our own files have all outputs under their names in the metadata.
    if let Some(metadata) = metadata
        && metadata.outputs().all(is_there)
    {
        let plain = |name: &str| output(name, name, OutputForm::Plain);
        return Ok(metadata.outputs().map(plain).collect());
    }
    let found = |name: &Option<String>| name.clone().filter(|name| is_there(name));
    let value = (found(&interface.wdl), found(&interface.value));
    let Some(policy) = found(&interface.policy).filter(|_| value != (None, None)) else {
        return Err(no_output(graph, interface));
    };
    let mut outputs = Vec::new();
    outputs.push(output("policy", &policy, OutputForm::Plain));
    match value {
        (Some(wdl), _) => outputs.push(match logits(nodes, &wdl) {
            Some(logits) => output("wdl", &logits, OutputForm::Plain),
            None => output("wdl", &wdl, OutputForm::Probabilities),
        }),
        (None, Some(value)) => {
            outputs.push(output("wdl", &value, OutputForm::Result));
            outputs.push(output("q", &value, OutputForm::Plain));
        }
        (None, None) => {}
    }
    if let Some(moves_left) = found(&interface.moves_left) {
        outputs.push(output("moves_left", &moves_left, OutputForm::Plain));
    }
    Ok(outputs)
}

/// What is missing of a graph without all the outputs that a player needs. An output of
/// another name is not missing, if all that it lacks is Lc0's name.
fn no_output(graph: &GraphProto, interface: &Interface) -> OnnxError {
    let names: Vec<&str> = graph.output.iter().map(|output| &*output.name).collect();
    let has = |name: &Option<String>, plain: &str| {
        names
            .iter()
            .any(|&other| other == plain || Some(other) == name.as_deref())
    };
    let has_policy = has(&interface.policy, "policy");
    let has_value = has(&interface.wdl, "wdl") || has(&interface.value, "value");
    OnnxError::NoOutput {
        missing: match (has_policy, has_value) {
            (true, false) => "the value (wdl or value)",
            (false, true) => "the policy",
            _ => "the policy and the value (wdl or value)",
        },
        found: match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        },
    }
}

/// What the probabilities of this name are the softmax of, if they are.
fn logits(nodes: &[NodeConfig], name: &str) -> Option<String> {
    let mut name = name;
    for node in nodes.iter().rev() {
        if node.outputs.iter().any(|output| output == name) {
            let input = node.inputs.first()?;
            match node.operator.as_str() {
                "Softmax" => return Some(input.clone()),
                "Identity" | "Cast" => name = input,
                _ => return None,
            }
        }
    }
    None
}

/// The node without its attributes of other kinds, which no operator known here
/// has.
fn node_config(node: &NodeProto) -> NodeConfig {
    let attributes = node.attribute.iter();
    NodeConfig {
        operator: node.op_type.clone(),
        inputs: node.input.clone(),
        outputs: node.output.clone(),
        attributes: attributes
            .filter_map(|attribute| Some((attribute.name.clone(), value(attribute)?)))
            .collect(),
    }
}

fn value(attribute: &AttributeProto) -> Option<Attribute> {
    Some(match attribute.r#type() {
        AttributeType::Int => Attribute::Int(attribute.i),
        AttributeType::Float => Attribute::Float(attribute.f),
        AttributeType::Ints => Attribute::Ints(attribute.ints.clone()),
        AttributeType::String => {
            Attribute::Text(String::from_utf8_lossy(&attribute.s).into_owned())
        }
        _ => return None,
    })
}
