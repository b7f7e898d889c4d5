//! Translates libtorch operators to ONNX.

mod arguments;
mod arithmetic;
mod layers;
mod shapes;

use super::builder::{Builder, int};
use super::graph::{Argument, Graph, Node, Typed};
use super::schema::DataType;
use arguments::Arguments;
use std::collections::HashMap;
use tch::Tensor;

/// Why an operator cannot be expressed in ONNX.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its operator {operator} has no counterpart in ONNX here: {reason}")]
pub struct Inexpressible {
    /// The operator's name in libtorch.
    pub operator: String,
    /// The unsupported part.
    pub reason: String,
}

/// A graph being translated to ONNX.
pub(super) struct Translator<'a> {
    pub builder: Builder,
    tensors: &'a [Tensor],
    /// The ONNX names of the graph's values. A value that is a list of tensors has several names.
    names: HashMap<usize, Vec<String>>,
    /// The dimensions of the graph's tensors, and whether they are floating-point.
    types: HashMap<usize, &'a Typed>,
}

/// A node to translate.
struct Call<'a> {
    name: &'a str,
    arguments: Arguments<'a>,
    /// The ONNX name of the node's first argument.
    x: String,
    /// Dimensions of the first argument.
    shape: &'a [i64],
}

impl Call<'_> {
    fn rank(&self) -> i64 {
        self.shape.len() as i64
    }

    /// Returns an argument that is a dimension of the first argument, counted from the front.
    fn axis(&self, index: usize) -> Result<i64, String> {
        Ok(wrap(self.arguments.int(index)?, self.rank()))
    }
}

impl<'a> Translator<'a> {
    /// Starts a translation. `inputs` contains the names of the graph's inputs in `builder`.
    pub fn new(builder: Builder, graph: &'a Graph, inputs: Vec<String>) -> Translator<'a> {
        let nodes = graph.nodes.iter().flat_map(|node| &node.outputs);
        let types = graph.inputs.iter().chain(nodes);
        let inputs = inputs.into_iter().map(|name| vec![name]);
        Translator {
            builder,
            tensors: &graph.tensors,
            names: graph.inputs.iter().map(|i| i.value).zip(inputs).collect(),
            types: types.map(|typed| (typed.value, typed)).collect(),
        }
    }

    /// Returns the name of an output of the graph, and its shape.
    pub fn output(&self, output: &Argument) -> Option<(String, &'a [i64])> {
        let (Argument::Value(value), [name]) = (output, self.list(output)?) else {
            return None;
        };
        Some((name.clone(), &self.types.get(value)?.shape))
    }

    /// Translates one node.
    ///
    /// # Errors
    /// [`Inexpressible`] if the node cannot be translated.
    pub fn node(&mut self, node: &'a Node) -> Result<(), Inexpressible> {
        let names = self.names_of(node).map_err(|reason| Inexpressible {
            operator: node.operator.clone(),
            reason,
        })?;
        let values = node.outputs.iter().map(|output| output.value);
        self.names.extend(values.zip(names));
        Ok(())
    }

    /// Returns the names of the node's outputs.
    fn names_of(&mut self, node: &'a Node) -> Result<Vec<Vec<String>>, String> {
        let first = node.arguments.first().unwrap_or(&Argument::None);
        if node.operator == "prim::ListUnpack" {
            let parts = self.list(first).ok_or("it takes apart no list")?;
            return Ok(parts.iter().map(|part| vec![part.clone()]).collect());
        }
        let name = node.operator.strip_prefix("aten::").unwrap_or_default();
        let call = Call {
            name,
            arguments: Arguments(&node.arguments),
            x: match first {
                Argument::List(_) => String::new(),
                first => self.operand(first)?,
            },
            shape: self.shape(first),
        };
        match name {
            "chunk" | "split" | "split_with_sizes" => return Ok(vec![self.split(&call)?]),
            "unbind" => return Ok(vec![self.unbound(&call)?]),
            _ => {}
        }
        let made = match name {
            "to" | "type_as" => {
                let to_floats = node.outputs.first().is_some_and(|output| output.floating);
                Some(self.converted(&call, self.is_floating(first), to_floats)?)
            }
            "detach" | "contiguous" | "clone" | "alias" => Some(call.x.clone()),
            _ => match self.arithmetic(&call)? {
                Some(made) => Some(made),
                None => match self.shaped(&call)? {
                    Some(made) => Some(made),
                    None => self.layer(&call)?,
                },
            },
        };
        match made {
            Some(made) => Ok(vec![vec![made]]),
            None => Err("it is not among those that networks were made of so far".to_owned()),
        }
    }

    /// Translates a conversion. Conversions between floating-point types vanish, because all
    /// floating-point values have the network's dtype.
    fn converted(&mut self, call: &Call, from: bool, to: bool) -> Result<String, String> {
        match (from, to) {
            (from, to) if from == to => Ok(call.x.clone()),
            (false, true) => {
                let kind = self.builder.float;
                Ok(self.cast(&call.x, kind))
            }
            _ => Err("it rounds to integers".to_owned()),
        }
    }

    fn cast(&mut self, x: &str, kind: DataType) -> String {
        let to = int("to", i64::from(i32::from(kind)));
        self.builder.node("Cast", &[x], vec![to])
    }

    /// Returns the ONNX names of an argument that is a tensor or a list of tensors.
    fn list(&self, argument: &Argument) -> Option<&[String]> {
        match argument {
            Argument::Value(value) => self.names.get(value).map(Vec::as_slice),
            _ => None,
        }
    }

    /// Returns the ONNX name of an argument that is a tensor or a number.
    fn operand(&mut self, argument: &Argument) -> Result<String, String> {
        match argument {
            Argument::Value(_) => match self.list(argument) {
                Some([name]) => Ok(name.clone()),
                _ => Err("it reads a list of tensors".to_owned()),
            },
            Argument::Tensor(index) => {
                let tensor = &self.tensors[*index];
                Ok(self.builder.tensor(&format!("tensor_{index}"), tensor))
            }
            Argument::Int(value) => Ok(self.builder.scalar(*value as f64)),
            Argument::Float(value) => Ok(self.builder.scalar(*value)),
            other => Err(format!("{other:?} is not a tensor")),
        }
    }

    fn operands(&mut self, arguments: &[Argument]) -> Result<Vec<String>, String> {
        let arguments = arguments.iter();
        arguments.map(|argument| self.operand(argument)).collect()
    }

    fn shape(&self, argument: &Argument) -> &'a [i64] {
        match argument {
            Argument::Value(value) => self.types.get(value).map_or(&[], |typed| &typed.shape),
            _ => &[],
        }
    }

    fn is_floating(&self, argument: &Argument) -> bool {
        match argument {
            Argument::Value(value) => self.types.get(value).is_some_and(|typed| typed.floating),
            Argument::Tensor(index) => self.tensors[*index].is_floating_point(),
            _ => true,
        }
    }

    /// Adds a node with any number of inputs.
    fn joined(&mut self, operator: &str, inputs: &[String]) -> String {
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        self.builder.node(operator, &inputs, vec![])
    }
}

/// Converts a dimension that may be negative to a dimension counted from the front.
fn wrap(dimension: i64, rank: i64) -> i64 {
    match dimension {
        negative if negative < 0 => negative + rank,
        dimension => dimension,
    }
}
