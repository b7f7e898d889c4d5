//! Converts ONNX models written by Lc0's converter `leela2onnx` back to Lc0's family.
//!
//! The converter names tensors and nodes by their place in the network. These names identify the
//! weights, and the architecture is inferred from the shapes of the weights. A graph is accepted if
//! every tensor in it, including constants, has a place in this architecture, and if its
//! activations, norms and outputs are those of Lc0. The names are those of the converter in Lc0
//! 0.33.

mod expected;
mod places;

use super::OnnxError;
use super::schema::{GraphProto, NodeProto};
use super::tensor;
use crate::interop::lc0::Lc0Error;
use crate::interop::lc0::format::Kind;
use crate::interop::lc0::infer::infer;
use crate::interop::lc0::schema::{InputEmbedding, PolicyFormat};
use crate::interop::lc0::sizes::Sizes;
use crate::network::lc0::{HeadChoice, Lc0Config, PolicyHeadConfig};
use crate::network::{Activation, Architecture, Lc0, Parameter, Weights};
use expected::Expected;
use std::collections::BTreeMap;
use tch::{Device, Tensor};

/// Largest relative error of a constant. Rounding to bfloat16 has an error of up to 1/256.
const TOLERANCE: f64 = 0.004;

/// Activations: the suffix that the converter appends to the name of the place, the activation, and
/// the operators that compute it.
const ACTIVATIONS: [(&str, Activation, &[&str]); 5] = [
    ("/sqrrelu", Activation::Relu2, &["Relu", "Mul"]),
    ("/relu", Activation::Relu, &["Relu"]),
    (
        "/mish",
        Activation::Mish,
        &[
            "Softplus", "Tanh", "Mul", "Mish", "Exp", "Add", "Div", "Cast",
        ],
    ),
    ("/selu", Activation::Selu, &["Selu", "Elu", "Mul", "Cast"]),
    ("/swish", Activation::Swish, &["Sigmoid", "Mul"]),
];

/// Converts a graph to a network of Lc0's family.
///
/// # Errors
/// [`OnnxError::NotLc0s`], which names the first part that Lc0 networks do not have, or other
/// variants if a tensor cannot be read.
pub(super) fn convert(graph: &GraphProto, input_format: u32) -> Result<(Lc0, Weights), OnnxError> {
    let mut converted = Converted::new(graph)?;
    let config = converted.config(input_format)?;
    let architecture = Lc0::new(&config, HeadChoice::default(), Device::Cpu)
        .map_err(|error| other(error.to_string()))?;
    let expected = Expected::of(&config);
    converted.check_activations(&expected)?;
    converted.check_norms(&config)?;
    converted.check_outputs(&config)?;
    let parameters = architecture.parameters().iter();
    let tensors = parameters
        .map(|parameter| Ok((parameter.name.clone(), converted.parameter(parameter)?)))
        .collect::<Result<Vec<_>, OnnxError>>()?;
    converted.take_constants(&expected)?;
    converted.take_tables(&architecture)?;
    converted.expect_nothing_else(&config)?;
    let weights = Weights::take(architecture.parameters(), tensors);
    let weights = weights.map_err(|error| other(error.to_string()))?;
    Ok((architecture, weights))
}

/// Returns an [`OnnxError::NotLc0s`].
fn other(reason: impl Into<String>) -> OnnxError {
    OnnxError::NotLc0s(reason.into())
}

/// A graph's tensors and nodes by the converter's names.
struct Converted<'a> {
    nodes: &'a [NodeProto],
    outputs: Vec<&'a str>,
    /// Tensors that have not been used yet.
    tensors: BTreeMap<&'a str, Tensor>,
}

impl<'a> Converted<'a> {
    fn new(graph: &'a GraphProto) -> Result<Converted<'a>, OnnxError> {
        let tensors = graph.initializer.iter().map(|proto| {
            let tensor = tensor::read(proto).map_err(|source| OnnxError::Tensor {
                name: proto.name.clone(),
                source,
            })?;
            Ok((proto.name.as_str(), tensor))
        });
        Ok(Converted {
            nodes: &graph.node,
            outputs: graph.output.iter().map(|it| it.name.as_str()).collect(),
            tensors: tensors.collect::<Result<_, OnnxError>>()?,
        })
    }

    fn take(&mut self, name: &str) -> Result<Tensor, OnnxError> {
        let tensor = self.tensors.remove(name);
        tensor.ok_or_else(|| other(format!("it has no tensor {name}")))
    }

    /// Returns the activation of each place that has one.
    ///
    /// # Errors
    /// [`OnnxError::NotLc0s`] if an operator does not match its name.
    fn activations(&self) -> Result<BTreeMap<String, Activation>, OnnxError> {
        let mut found = BTreeMap::new();
        for node in self.nodes {
            let name = name(node);
            let kind = ACTIVATIONS.iter().find_map(|(end, activation, operators)| {
                let (place, rest) = name.split_once(end)?;
                let is_whole = rest.is_empty() || rest.starts_with('/');
                is_whole.then_some((place, activation, operators))
            });
            let Some((place, &activation, operators)) = kind else {
                continue;
            };
            if !operators.contains(&node.op_type.as_str()) {
                return Err(other(format!("its node {name} is {}", node.op_type)));
            }
            found.insert(place.to_owned(), activation);
        }
        Ok(found)
    }

    /// Returns the architecture inferred from names and shapes.
    fn config(&self, input_format: u32) -> Result<Lc0Config, OnnxError> {
        let activations = self.activations()?;
        let activation = |place: &str| activations.get(place).copied().unwrap_or(Activation::None);
        let has = |name: &str| self.count(name) > 0;
        let attention_body = self.number("encoder") > 0;
        let kind = Kind {
            input_format,
            attention_body,
            policy: match has("policy.vanilla.query.bias") {
                true => PolicyFormat::Attention,
                false if has("policy.vanilla.conv2.bias") => PolicyFormat::Convolution,
                false => PolicyFormat::Classical,
            },
            wdl: self.count("value.winner.output.bias") == 3,
            moves_left: has("moves_left.hidden.bias"),
            activation: activation(match attention_body {
                true => "/attn_body",
                false => "/inputconv",
            }),
            smolgen_activation: activation("/encoder0/smolgen/dense1"),
            feed_forward_activation: activation("/encoder0/ffn/dense1"),
            embedding: match has("embedding.board.bias") {
                true => InputEmbedding::PeDense,
                false => InputEmbedding::PeMap,
            },
        };
        infer(&kind, self).map_err(|error| match error {
            Lc0Error::Missing(name) => missing(&name),
            error => other(error.to_string()),
        })
    }

    /// Takes a parameter's tensor and converts it to the parameter's shape. The converter stores
    /// matrices transposed, and gives 1 × 1 kernels two extra dimensions.
    fn parameter(&mut self, parameter: &Parameter) -> Result<Tensor, OnnxError> {
        let Parameter { name, shape, .. } = parameter;
        let place = places::of(name).find(|place| self.tensors.contains_key(place.as_str()));
        let place = place.ok_or_else(|| missing(name))?;
        let tensor = self.take(&place)?;
        let tensor = match tensor.dim() {
            2 => tensor.transpose(0, 1),
            _ => tensor,
        };
        let count: i64 = shape.iter().product();
        match tensor.size() {
            sizes if sizes.len() == 2 && sizes != *shape => Err(misshapen(&place, &sizes)),
            sizes if tensor.numel() as i64 != count => Err(misshapen(&place, &sizes)),
            _ => Ok(tensor.contiguous().view(shape.as_slice())),
        }
    }

    fn check_activations(&self, expected: &Expected) -> Result<(), OnnxError> {
        let found = self.activations()?;
        let places = found.keys().chain(expected.activations.keys());
        let mut places =
            places.filter(|place| found.get(*place) != expected.activations.get(*place));
        match places.next() {
            None => Ok(()),
            Some(place) => Err(other(format!("the activation at {place} differs"))),
        }
    }

    fn check_norms(&self, config: &Lc0Config) -> Result<(), OnnxError> {
        let nodes = self.nodes.iter();
        let mut norms = nodes.filter(|node| node.op_type == "LayerNormalization");
        norms.try_for_each(|node| {
            let mut attributes = node.attribute.iter();
            let epsilon = attributes.find(|attribute| attribute.name == "epsilon");
            let epsilon = epsilon.map_or(0.0, |attribute| f64::from(attribute.f));
            match is_near(epsilon, expected::epsilon(config, name(node))) {
                true => Ok(()),
                false => Err(other(format!("the epsilon of {} differs", name(node)))),
            }
        })
    }

    /// Checks the final operators, which determine whether an output is a logit, a probability or a
    /// value.
    fn check_outputs(&self, config: &Lc0Config) -> Result<(), OnnxError> {
        let makes = |output: &str| {
            let mut nodes = self.nodes.iter();
            let node = nodes.find(|node| node.output.iter().any(|name| name == output));
            node.map_or("", |node| &node.op_type)
        };
        let mut expected: Vec<&[&str]> = expected::last_operators(config);
        for output in &self.outputs {
            let place = expected
                .iter()
                .position(|kinds| kinds.contains(&makes(output)));
            let Some(place) = place else {
                return Err(other(format!("its output {output} is not an Lc0 output")));
            };
            expected.remove(place);
        }
        match expected.is_empty() {
            true => Ok(()),
            false => Err(other("it lacks an output")),
        }
    }

    /// Takes the constants that scale scores and branches.
    fn take_constants(&mut self, expected: &Expected) -> Result<(), OnnxError> {
        for (name, &number) in &expected.constants {
            self.take(name)
                .and_then(|found| expect_number(name, &found, number))?;
        }
        Ok(())
    }

    /// Takes the map from policy logits to moves, and the attack map.
    fn take_tables(&mut self, architecture: &Lc0) -> Result<(), OnnxError> {
        let heads = &architecture.config.policy.heads;
        for (buffer, expected) in architecture.buffers() {
            let (name, expected) = match (buffer.as_str(), heads.values().next()) {
                // In the converter's order, channels come before squares; in our order, after
                // squares.
                ("policy_gather", Some(PolicyHeadConfig::Convolutional { channels })) => {
                    let squares = expected.divide_scalar_mode(*channels, "floor");
                    (
                        "/const/mapping_table",
                        expected.remainder(*channels) * 64 + squares,
                    )
                }
                ("policy_gather", _) => ("/const/mapping_table", expected),
                ("reach", _) => ("/const/pos_encoding", expected),
                _ => continue,
            };
            if self.take(name)?.view([-1]) != expected.view([-1]) {
                return Err(differs(name));
            }
        }
        Ok(())
    }

    /// Rejects unused tensors, except for shapes, bounds and the constants of equivalent
    /// formulations.
    fn expect_nothing_else(&self, config: &Lc0Config) -> Result<(), OnnxError> {
        for (&name, tensor) in &self.tensors {
            if !tensor.is_floating_point() {
                let stack = match name.starts_with("/const/policy/") {
                    true => config.policy.encoders().next().map(|(_, encoder)| encoder),
                    false => config.attention.map(|body| body.encoder),
                };
                let is_other = stack.is_some_and(|stack| stack.heads != heads(tensor));
                if name.ends_with("/mha/shape") && is_other {
                    return Err(differs(name));
                }
                continue;
            }
            let number = expected::optional(config, name);
            let number = number.ok_or_else(|| other(format!("its tensor {name} has no place")))?;
            expect_number(name, tensor, number)?;
        }
        Ok(())
    }
}

impl Sizes for Converted<'_> {
    fn count(&self, name: &str) -> i64 {
        let mut places = places::of(name);
        let tensor = places.find_map(|place| self.tensors.get(place.as_str()));
        tensor.map_or(0, |tensor| tensor.numel() as i64)
    }

    fn number(&self, name: &str) -> i64 {
        let heads = |path: &str| {
            let shape = self
                .tensors
                .get(format!("/const/{path}0/mha/shape").as_str());
            shape.map_or(0, heads)
        };
        let first = match name {
            "heads" => return heads("encoder"),
            "policy.vanilla.heads" => return heads("policy/enc_layer_"),
            "body" => "conv1",
            _ => "attention.query",
        };
        let mut layers = (0..).map(|layer| self.count(&format!("{name}.{layer}.{first}.weight")));
        layers.position(|count| count == 0).unwrap_or_default() as i64
    }
}

/// Returns a node's name, which is the name of its first output.
fn name(node: &NodeProto) -> &str {
    node.output.first().map_or("", String::as_str)
}

/// Returns the number of heads in a shape [batch, squares, heads, head width].
fn heads(shape: &Tensor) -> i64 {
    shape.f_int64_value(&[2]).unwrap_or_default()
}

fn expect_number(name: &str, tensor: &Tensor, number: f64) -> Result<(), OnnxError> {
    match tensor.numel() == 1 && is_near(tensor.view([-1]).double_value(&[0]), number) {
        true => Ok(()),
        false => Err(differs(name)),
    }
}

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= TOLERANCE * expected.abs()
}

fn differs(name: &str) -> OnnxError {
    other(format!("its tensor {name} holds other numbers"))
}

/// Returns the error for a missing tensor.
fn missing(name: &str) -> OnnxError {
    let place = places::of(name).next();
    other(format!(
        "it has no tensor {}",
        place.as_deref().unwrap_or(name)
    ))
}

fn misshapen(name: &str, sizes: &[i64]) -> OnnxError {
    other(format!("its tensor {name} has the shape {sizes:?}"))
}
