//! ONNX as Lc0's converter `leela2onnx` writes it, taken back to Lc0's family.
//!
//! The converter names tensors and nodes by their place in the network. By those names the
//! weights are found again, and by their shapes the architecture. A graph is taken if every
//! tensor in it has a place in that architecture, constants included, and if activations,
//! norms and outputs are those that Lc0 computes. Names follow Lc0 0.33's converter.

mod expected;
mod places;

use super::OnnxError;
use super::schema::{GraphProto, NodeProto};
use super::tensor;
use crate::network::lc0::{
    AttentionBody, EncoderConfig, HeadChoice, Lc0Config, MovesLeftConfig, PolicyConfig, PolicyHead,
    PolicyHeadConfig, SmolgenConfig, SquareEmbedding, Tower, ValueHead, ValueHeadConfig,
};
use crate::network::{Activation, Architecture, Lc0, Parameter, Weights};
use expected::Expected;
use std::collections::BTreeMap;
use tch::{Device, Tensor};

/// Sizes are below this, so that they may be multiplied.
const LARGEST_SIZE: i64 = 1 << 24;
/// How far a constant may be off, as a share of it: bfloat16 rounds to 1/256.
const TOLERANCE: f64 = 0.004;

/// Activations by what the converter adds to the name of the place, and the operators that
/// make them up.
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

/// The network of Lc0's family that a graph is.
///
/// # Errors
/// [`OnnxError::NotLc0s`], naming the first thing that such networks do not have; others if
/// a tensor cannot be read.
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

/// A refusal.
fn other(reason: impl Into<String>) -> OnnxError {
    OnnxError::NotLc0s(reason.into())
}

/// A graph's tensors and nodes by the converter's names.
struct Converted<'a> {
    nodes: &'a [NodeProto],
    outputs: Vec<&'a str>,
    /// Those that have not been taken yet.
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

    fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    fn get(&self, name: &str) -> Result<&Tensor, OnnxError> {
        let tensor = self.tensors.get(name);
        tensor.ok_or_else(|| other(format!("it has no tensor {name}")))
    }

    fn take(&mut self, name: &str) -> Result<Tensor, OnnxError> {
        let tensor = self.tensors.remove(name);
        tensor.ok_or_else(|| other(format!("it has no tensor {name}")))
    }

    /// One of the sizes of a tensor.
    fn size(&self, name: &str, axis: usize) -> Result<i64, OnnxError> {
        let sizes = self.get(name)?.size();
        let size = sizes
            .get(axis)
            .filter(|size| (1..LARGEST_SIZE).contains(*size));
        size.copied().ok_or_else(|| misshapen(name, &sizes))
    }

    /// The same of a tensor that may be missing.
    fn optional_size(&self, name: &str, axis: usize) -> Result<Option<i64>, OnnxError> {
        self.has(name).then(|| self.size(name, axis)).transpose()
    }

    /// How many layers there are, by the name of a tensor that each has.
    fn count(&self, name: impl Fn(i64) -> String) -> i64 {
        (0..).take_while(|&number| self.has(&name(number))).count() as i64
    }

    /// The activation at each place that has one.
    ///
    /// # Errors
    /// [`OnnxError::NotLc0s`] if an operator is not what the name says.
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

    /// The architecture, read off names and shapes.
    fn config(&self, input_format: u32) -> Result<Lc0Config, OnnxError> {
        let activations = self.activations()?;
        let activation = |place: &str| activations.get(place).copied().unwrap_or(Activation::None);
        let blocks = self.count(|block| format!("/block{block}/conv1/w/kernel"));
        let tower = match blocks {
            0 => None,
            blocks => Some(Tower {
                blocks,
                filters: self.size("/inputconv/w/kernel", 0)?,
                squeeze: self.optional_size("/block0/conv2/se/matmul1/w", 1)?,
            }),
        };
        let layers = self.count(|layer| format!("/encoder{layer}/mha/Q/w/w"));
        let attention = match layers {
            0 => None,
            _ => Some(AttentionBody {
                width: self.size("/attn_body/matmul/w", 1)?,
                embedding: self.embedding(tower.is_some())?,
                gates: self.has("/ip_mul_gate/w"),
                encoder: self.encoder("/encoder", layers)?,
                smolgen_activation: activation("/encoder0/smolgen/dense1"),
                feed_forward_activation: activation("/encoder0/ffn/dense1"),
            }),
        };
        // Features of each square that a head reads.
        let features = |head: &str| match attention {
            Some(_) => self.size(&format!("{head}/embed/matmul/w"), 1),
            None => self.size(&format!("{head}/conv/w/kernel"), 0),
        };
        let value = ValueHeadConfig {
            features: features("/value")?,
            hidden: self.size("/value/dense1/matmul/w", 1)?,
            wdl: self.size("/value/dense2/matmul/w", 1)? == 3,
            error: false,
            buckets: None,
        };
        let moves_left = match self.optional_size("/mlh/dense1/matmul/w", 1)? {
            None => None,
            Some(hidden) => Some(MovesLeftConfig {
                features: features("/mlh")?,
                hidden,
            }),
        };
        Ok(Lc0Config {
            input_format,
            activation: match attention {
                Some(_) => activation("/attn_body"),
                None => activation("/inputconv"),
            },
            tower,
            attention,
            policy: self.policy()?,
            value: [(ValueHead::Winner, value)].into(),
            moves_left,
        })
    }

    fn embedding(&self, has_tower: bool) -> Result<SquareEmbedding, OnnxError> {
        if has_tower {
            return Ok(SquareEmbedding::Tower);
        }
        if !self.has("/attn_body/embedding/preprocess/matmul/w") {
            return Ok(SquareEmbedding::Map);
        }
        Ok(SquareEmbedding::Dense {
            board: self.size("/attn_body/embedding/preprocess/matmul/w", 1)? / 64,
            feed_forward: self.size("/attn_body/ffn/dense1/w/w", 1)?,
        })
    }

    fn encoder(&self, path: &str, layers: i64) -> Result<EncoderConfig, OnnxError> {
        let at = |name: &str| format!("{path}0/{name}");
        let smolgen = match self.optional_size(&at("smolgen/compress/w"), 1)? {
            None => None,
            Some(compress) => Some(SmolgenConfig {
                compress,
                hidden: self.size(&at("smolgen/dense1/w/w"), 1)?,
                generator: self.size("/const/smolgen_w", 0)?,
            }),
        };
        Ok(EncoderConfig {
            layers,
            heads: heads(self.get(&format!("/const{path}0/mha/shape"))?),
            attention: self.size(&at("mha/Q/w/w"), 1)?,
            feed_forward: self.size(&at("ffn/dense1/w/w"), 1)?,
            smolgen,
        })
    }

    fn policy(&self) -> Result<PolicyConfig, OnnxError> {
        let head = if let Some(width) = self.optional_size("/policy/Q/matmul/w", 1)? {
            let layers = self.count(|layer| format!("/policy/enc_layer_{layer}/mha/Q/w/w"));
            let encoder = match layers {
                0 => None,
                _ => Some(self.encoder("/policy/enc_layer_", layers)?),
            };
            PolicyHeadConfig::Attention {
                embedding: None,
                encoder,
                width,
            }
        } else if let Some(channels) = self.optional_size("/policy/conv2/w/kernel", 0)? {
            PolicyHeadConfig::Convolutional { channels }
        } else {
            let channels = self.size("/policy/conv/w/kernel", 0)?;
            PolicyHeadConfig::Classical { channels }
        };
        Ok(PolicyConfig {
            embedding: self.optional_size("/policy/dense1/matmul/w", 1)?,
            heads: [(PolicyHead::Vanilla, head)].into(),
        })
    }

    /// Takes the tensor of a parameter, in its shape. Factors of products stand transposed,
    /// kernels of 1 × 1 have two sizes more than the matrices they are.
    fn parameter(&mut self, parameter: &Parameter) -> Result<Tensor, OnnxError> {
        let Parameter { name, shape, .. } = parameter;
        let mut names = places::of(name);
        let Some(place) = names.find(|place| self.has(place)) else {
            return Err(other(format!("it has no tensor for {name}")));
        };
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
            Some(place) => Err(other(format!("the activation at {place} is another"))),
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
                false => Err(other(format!("the epsilon of {} is another", name(node)))),
            }
        })
    }

    /// The last operators tell logits from probabilities, and values from both.
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
                return Err(other(format!("its output {output} is none of Lc0's")));
            };
            expected.remove(place);
        }
        match expected.is_empty() {
            true => Ok(()),
            false => Err(other("it lacks an output")),
        }
    }

    /// Takes the numbers by which scores and branches are scaled.
    fn take_constants(&mut self, expected: &Expected) -> Result<(), OnnxError> {
        for (name, &number) in &expected.constants {
            self.take(name)
                .and_then(|found| expect_number(name, &found, number))?;
        }
        Ok(())
    }

    /// Takes the map from the policy's logits to moves, and that of what reaches what.
    fn take_tables(&mut self, architecture: &Lc0) -> Result<(), OnnxError> {
        let heads = &architecture.model().policy.heads;
        for (buffer, expected) in architecture.buffers() {
            let (name, expected) = match (buffer.as_str(), heads.values().next()) {
                // The converter's channels come before the squares, ours behind them.
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

    /// Refuses what is left but for shapes, bounds, and constants of other ways to say the
    /// same.
    fn expect_nothing_else(&self, config: &Lc0Config) -> Result<(), OnnxError> {
        for (&name, tensor) in &self.tensors {
            if !tensor.is_floating_point() {
                let stack = match name.starts_with("/const/policy/") {
                    true => config.policy.encoders().next(),
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

/// A node is known by its first output.
fn name(node: &NodeProto) -> &str {
    node.output.first().map_or("", String::as_str)
}

/// The heads in a shape [batch, squares, heads, head width].
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

fn misshapen(name: &str, sizes: &[i64]) -> OnnxError {
    other(format!("its tensor {name} has the shape {sizes:?}"))
}
