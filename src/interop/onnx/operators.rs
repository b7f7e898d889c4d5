//! From libtorch's operators to ONNX's.

use super::builder::{Builder, float, int, ints};
use super::graph::{Argument, Graph, Node, Typed};
use super::schema::DataType;
use std::collections::HashMap;
use tch::Tensor;

/// Why an operator cannot be said in ONNX.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its operator {operator} has no counterpart in ONNX here: {reason}")]
pub struct Inexpressible {
    /// The operator's name in libtorch.
    pub operator: String,
    /// What of it.
    pub reason: String,
}

/// A graph on its way into ONNX.
pub(super) struct Translator<'a> {
    pub builder: Builder,
    tensors: &'a [Tensor],
    /// The names in ONNX of the graph's values.
    names: HashMap<usize, String>,
    /// The graph's tensors by value: their dimensions and whether they hold
    /// floating-point numbers.
    types: HashMap<usize, &'a Typed>,
}

impl<'a> Translator<'a> {
    /// Starts with the graph's inputs, which `builder` knows by `inputs`.
    pub fn new(builder: Builder, graph: &'a Graph, inputs: Vec<String>) -> Translator<'a> {
        let nodes = graph.nodes.iter().flat_map(|node| &node.outputs);
        let types = graph.inputs.iter().chain(nodes);
        Translator {
            builder,
            tensors: &graph.tensors,
            names: graph.inputs.iter().map(|i| i.value).zip(inputs).collect(),
            types: types.map(|typed| (typed.value, typed)).collect(),
        }
    }

    /// The name in ONNX of an argument that is a tensor or a number.
    fn operand(&mut self, argument: &Argument) -> Result<String, String> {
        match argument {
            Argument::Value(value) => {
                let name = self.names.get(value).cloned();
                name.ok_or_else(|| "it reads a list of tensors".to_owned())
            }
            Argument::Tensor(index) => {
                let tensor = &self.tensors[*index];
                Ok(self.builder.tensor(&format!("tensor_{index}"), tensor))
            }
            Argument::Int(value) => Ok(self.builder.scalar(*value as f64)),
            Argument::Float(value) => Ok(self.builder.scalar(*value)),
            other => Err(format!("{other:?} is no tensor")),
        }
    }

    /// The name of an output of the graph, and its shape.
    pub fn output(&self, output: &Argument) -> Option<(String, &'a [i64])> {
        match output {
            Argument::Value(value) => {
                let name = self.names.get(value)?.clone();
                Some((name, &self.types.get(value)?.shape))
            }
            _ => None,
        }
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
            _ => true,
        }
    }

    /// Translates one node.
    ///
    /// # Errors
    /// [`Inexpressible`] if it cannot be.
    pub fn node(&mut self, node: &Node) -> Result<(), Inexpressible> {
        let names = self.translate(node).map_err(|reason| Inexpressible {
            operator: node.operator.clone(),
            reason,
        })?;
        let values = node.outputs.iter().map(|output| output.value);
        self.names.extend(values.zip(names));
        Ok(())
    }

    /// The names of the node's outputs.
    fn translate(&mut self, node: &Node) -> Result<Vec<String>, String> {
        let arguments = Arguments(&node.arguments);
        let name = node.operator.strip_prefix("aten::").unwrap_or_default();
        if let Some(operator) = same(name) {
            let operands = self.operands(&node.arguments[..operator.operands])?;
            let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
            return Ok(vec![self.builder.node(operator.name, &operands, vec![])]);
        }
        let first = || arguments.get(0);
        let x = match first() {
            Ok(Argument::List(_)) => String::new(),
            first => self.operand(first?)?,
        };
        let rank = self.shape(first()?).len() as i64;
        let axis = |index: usize| Ok::<i64, String>(wrap(arguments.int(index)?, rank));
        let single = |name: String| Ok(vec![name]);
        match name {
            "linear" => {
                let weight = self.operand(arguments.get(1)?)?;
                let weight =
                    self.builder
                        .node("Transpose", &[&weight], vec![ints("perm", &[1, 0])]);
                let product = self.builder.node("MatMul", &[&x, &weight], vec![]);
                match arguments.get(2)? {
                    Argument::None => single(product),
                    bias => {
                        let bias = self.operand(bias)?;
                        single(self.builder.node("Add", &[&product, &bias], vec![]))
                    }
                }
            }
            "baddbmm" | "addmm" => {
                let [left, right, beta, alpha] = self.all(&node.arguments[1..])?;
                let product = self.builder.node("MatMul", &[&left, &right], vec![]);
                let product = self.scaled(&product, arguments.get(4)?, &alpha);
                let x = self.scaled(&x, arguments.get(3)?, &beta);
                single(self.builder.node("Add", &[&product, &x], vec![]))
            }
            "add" | "sub" | "rsub" => {
                let other = self.operand(arguments.get(1)?)?;
                let alpha = self.operand(arguments.get(2)?)?;
                let (operator, from, other) = match name {
                    "add" => ("Add", x, self.scaled(&other, arguments.get(2)?, &alpha)),
                    "sub" => ("Sub", x, self.scaled(&other, arguments.get(2)?, &alpha)),
                    _ => ("Sub", other, self.scaled(&x, arguments.get(2)?, &alpha)),
                };
                single(self.builder.node(operator, &[&from, &other], vec![]))
            }
            "square" => single(self.builder.node("Mul", &[&x, &x], vec![])),
            "rsqrt" => {
                let root = self.builder.node("Sqrt", &[&x], vec![]);
                single(self.builder.node("Reciprocal", &[&root], vec![]))
            }
            "conv2d" => self.convolution(arguments, &x).and_then(single),
            "silu" => {
                let gate = self.builder.node("Sigmoid", &[&x], vec![]);
                single(self.builder.node("Mul", &[&gate, &x], vec![]))
            }
            "mish" => {
                let gate = self.builder.node("Softplus", &[&x], vec![]);
                let gate = self.builder.node("Tanh", &[&gate], vec![]);
                single(self.builder.node("Mul", &[&gate, &x], vec![]))
            }
            "gelu" => self.gelu(&x, arguments.get(1)?).and_then(single),
            "elu" => {
                let alpha = arguments.float(1)?;
                let attribute = float("alpha", alpha);
                single(self.builder.node("Elu", &[&x], vec![attribute]))
            }
            "softplus" => match arguments.float(1)? {
                1.0 => single(self.builder.node("Softplus", &[&x], vec![])),
                _ => Err("it has a sharpness".to_owned()),
            },
            "softmax" | "log_softmax" => {
                let operator = ["Softmax", "LogSoftmax"][usize::from(name == "log_softmax")];
                let axis = int("axis", axis(1)?);
                single(self.builder.node(operator, &[&x], vec![axis]))
            }
            "layer_norm" => self.layer_norm(arguments, &x).and_then(single),
            "rms_norm" => self.rms_norm(arguments, &x).and_then(single),
            "mean" | "sum" => {
                let axes = arguments.ints(1)?;
                let keep = arguments.bool(2)?;
                if name == "mean" {
                    return single(self.builder.mean(&x, &axes, keep));
                }
                let axes = self.builder.integers(&axes);
                let keep = int("keepdims", i64::from(keep));
                single(self.builder.node("ReduceSum", &[&x, &axes], vec![keep]))
            }
            "view" | "reshape" => single(self.reshaped(&x, &arguments.ints(1)?)),
            "flatten" => {
                let (start, end) = (axis(1)? as usize, axis(2)? as usize);
                let shape = self.shape(first()?);
                let mut sizes: Vec<i64> = shape[..start].to_vec();
                sizes.push(shape[start..=end].iter().product());
                sizes.extend(&shape[end + 1..]);
                // Of all sizes the batch's alone is free.
                sizes[0] = -1;
                single(self.reshaped(&x, &sizes))
            }
            "unsqueeze" => {
                let axis = self.builder.integers(&[wrap(arguments.int(1)?, rank + 1)]);
                single(self.builder.node("Unsqueeze", &[&x, &axis], vec![]))
            }
            "squeeze" => {
                let axis = self.builder.integers(&[axis(1)?]);
                single(self.builder.node("Squeeze", &[&x, &axis], vec![]))
            }
            "transpose" => {
                let mut order: Vec<i64> = (0..rank).collect();
                order.swap(axis(1)? as usize, axis(2)? as usize);
                single(self.transposed(&x, &order))
            }
            "t" => single(self.transposed(&x, &[1, 0])),
            "permute" => single(self.transposed(&x, &arguments.ints(1)?)),
            "expand" => {
                let sizes = arguments.ints(1)?;
                // ONNX leaves a size where the new one is 1, libtorch where it is −1.
                let sizes: Vec<i64> = sizes.into_iter().map(|size| size.max(1)).collect();
                let sizes = self.builder.integers(&sizes);
                single(self.builder.node("Expand", &[&x, &sizes], vec![]))
            }
            "narrow" => {
                let start = arguments.int(2)?;
                let end = start + arguments.int(3)?;
                single(self.sliced(&x, axis(1)?, start, end, 1))
            }
            "slice" => {
                let start = arguments.optional_int(2)?.unwrap_or(0);
                let end = arguments.optional_int(3)?.unwrap_or(i64::MAX);
                single(self.sliced(&x, axis(1)?, start, end, arguments.int(4)?))
            }
            "flip" => {
                let axes = arguments.ints(1)?;
                let flip =
                    |x: String, &axis: &i64| self.sliced(&x, wrap(axis, rank), -1, i64::MIN, -1);
                single(axes.iter().fold(x, flip))
            }
            "select" => {
                let index = self.builder.integer(arguments.int(2)?);
                let axis = int("axis", axis(1)?);
                single(self.builder.node("Gather", &[&x, &index], vec![axis]))
            }
            "index_select" => {
                let index = self.operand(arguments.get(2)?)?;
                let axis = int("axis", axis(1)?);
                single(self.builder.node("Gather", &[&x, &index], vec![axis]))
            }
            "cat" | "stack" => {
                let Argument::List(parts) = first()? else {
                    return Err("its parts are no list".to_owned());
                };
                let rank = self.shape(parts.first().unwrap_or(&Argument::None)).len() as i64;
                let mut operands = self.operands(parts)?;
                let is_new = name == "stack";
                let axis = wrap(arguments.int(1)?, rank + i64::from(is_new));
                if is_new {
                    let axes = self.builder.integers(&[axis]);
                    for part in &mut operands {
                        *part = self.builder.node("Unsqueeze", &[part, &axes], vec![]);
                    }
                }
                let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
                let axis = int("axis", axis);
                single(self.builder.node("Concat", &operands, vec![axis]))
            }
            "chunk" | "split" | "split_with_sizes" => {
                // The parts are the outputs of the node that takes the list apart.
                let axis = axis(2)?;
                let whole = self.shape(first()?)[axis as usize];
                let sizes = match name {
                    "split_with_sizes" => arguments.ints(1)?,
                    "split" => parts(whole, arguments.int(1)?),
                    _ => {
                        let chunks = arguments.int(1)?.max(1);
                        parts(whole, (whole + chunks - 1) / chunks)
                    }
                };
                let lengths = self.builder.integers(&sizes);
                let names = self.builder.node_with(
                    "Split",
                    &[&x, &lengths],
                    vec![int("axis", axis)],
                    sizes.len(),
                );
                single(names.join("\n"))
            }
            "clamp" | "clamp_min" | "clamp_max" => {
                let (low, high) = match name {
                    "clamp" => (arguments.get(1)?, arguments.get(2)?),
                    "clamp_min" => (arguments.get(1)?, &Argument::None),
                    _ => (&Argument::None, arguments.get(1)?),
                };
                let mut bounded = x;
                for (operator, bound) in [("Max", low), ("Min", high)] {
                    if !matches!(bound, Argument::None) {
                        let bound = self.operand(bound)?;
                        bounded = self.builder.node(operator, &[&bounded, &bound], vec![]);
                    }
                }
                single(bounded)
            }
            "to" | "type_as" => {
                let output = node.outputs.first();
                let is_floating = output.is_some_and(|output| output.floating);
                match (self.is_floating(first()?), is_floating) {
                    (from, to) if from == to => single(x),
                    (false, true) => {
                        let kind = self.builder.float();
                        single(self.cast(&x, kind))
                    }
                    _ => Err("it rounds to integers".to_owned()),
                }
            }
            "detach" | "contiguous" | "clone" | "alias" => single(x),
            _ if node.operator == "prim::ListUnpack" => {
                Ok(x.split('\n').map(str::to_owned).collect())
            }
            _ => Err("it is not among those that networks were made of so far".to_owned()),
        }
    }

    fn operands(&mut self, arguments: &[Argument]) -> Result<Vec<String>, String> {
        arguments
            .iter()
            .map(|argument| self.operand(argument))
            .collect()
    }

    fn all<const N: usize>(&mut self, arguments: &[Argument]) -> Result<[String; N], String> {
        let operands = self.operands(arguments)?;
        let count = operands.len();
        let wrong = |_| format!("it has {count} arguments in place of {N}");
        operands.try_into().map_err(wrong)
    }

    /// `x` times a factor, unless that is one.
    fn scaled(&mut self, x: &str, factor: &Argument, name: &str) -> String {
        match factor {
            Argument::Int(1) => x.to_owned(),
            Argument::Float(1.0) => x.to_owned(),
            _ => self.builder.node("Mul", &[x, name], vec![]),
        }
    }

    fn reshaped(&mut self, x: &str, sizes: &[i64]) -> String {
        let sizes = self.builder.integers(sizes);
        self.builder.node("Reshape", &[x, &sizes], vec![])
    }

    fn transposed(&mut self, x: &str, order: &[i64]) -> String {
        let order = ints("perm", order);
        self.builder.node("Transpose", &[x], vec![order])
    }

    fn sliced(&mut self, x: &str, axis: i64, start: i64, end: i64, step: i64) -> String {
        let [start, end, axis, step] =
            [start, end, axis, step].map(|value| self.builder.integers(&[value]));
        self.builder
            .node("Slice", &[x, &start, &end, &axis, &step], vec![])
    }

    fn cast(&mut self, x: &str, kind: DataType) -> String {
        let to = int("to", i64::from(i32::from(kind)));
        self.builder.node("Cast", &[x], vec![to])
    }

    fn convolution(&mut self, arguments: Arguments, x: &str) -> Result<String, String> {
        let kernel = arguments.get(1)?;
        let mut operands = vec![x.to_owned(), self.operand(kernel)?];
        if !matches!(arguments.get(2)?, Argument::None) {
            operands.push(self.operand(arguments.get(2)?)?);
        }
        let padding = arguments.ints(4)?;
        let attributes = vec![
            ints("kernel_shape", &self.shape(kernel)[2..]),
            ints("strides", &arguments.ints(3)?),
            ints("pads", &[&padding[..], &padding[..]].concat()),
            ints("dilations", &arguments.ints(5)?),
            int("group", arguments.int(6)?),
        ];
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        Ok(self.builder.node("Conv", &operands, attributes))
    }

    /// x/2 · (1 + erf(x/√2)), of which there is no operator before version 20.
    fn gelu(&mut self, x: &str, approximation: &Argument) -> Result<String, String> {
        if !matches!(approximation, Argument::Text(text) if text == "none") {
            return Err("it approximates".to_owned());
        }
        let [root, one, half] =
            [std::f64::consts::SQRT_2, 1.0, 0.5].map(|value| self.builder.scalar(value));
        let y = self.builder.node("Div", &[x, &root], vec![]);
        let y = self.builder.node("Erf", &[&y], vec![]);
        let y = self.builder.node("Add", &[&y, &one], vec![]);
        let y = self.builder.node("Mul", &[x, &y], vec![]);
        Ok(self.builder.node("Mul", &[&y, &half], vec![]))
    }

    fn layer_norm(&mut self, arguments: Arguments, x: &str) -> Result<String, String> {
        let [weight, bias] = self.all(&arguments.0[2..4])?;
        let attributes = vec![
            int("axis", -(arguments.ints(1)?.len() as i64)),
            float("epsilon", arguments.float(4)?),
        ];
        let operands = [x, &weight, &bias];
        Ok(self
            .builder
            .node("LayerNormalization", &operands, attributes))
    }

    /// x · weight / √(mean of x² + ε), in single precision up to the division.
    fn rms_norm(&mut self, arguments: Arguments, x: &str) -> Result<String, String> {
        let axes: Vec<i64> = (1..=arguments.ints(1)?.len() as i64).map(|i| -i).collect();
        let epsilon = match arguments.get(3)? {
            Argument::None => f64::from(f32::EPSILON),
            _ => arguments.float(3)?,
        };
        let is_narrow = self.builder.is_narrow();
        let wide = match is_narrow {
            true => self.cast(x, DataType::Float),
            false => x.to_owned(),
        };
        let epsilon = self.builder.single(epsilon as f32);
        let square = self.builder.node("Mul", &[&wide, &wide], vec![]);
        let mean = self.builder.mean(&square, &axes, true);
        let mean = self.builder.node("Add", &[&mean, &epsilon], vec![]);
        let root = self.builder.node("Sqrt", &[&mean], vec![]);
        let mut normal = self.builder.node("Div", &[&wide, &root], vec![]);
        if is_narrow {
            let kind = self.builder.float();
            normal = self.cast(&normal, kind);
        }
        match arguments.get(2)? {
            Argument::None => Ok(normal),
            weight => {
                let weight = self.operand(weight)?;
                Ok(self.builder.node("Mul", &[&normal, &weight], vec![]))
            }
        }
    }
}

/// An operator of ONNX's that is just one of libtorch's.
struct Same {
    name: &'static str,
    /// Its inputs, the first arguments of libtorch's.
    operands: usize,
}

fn same(name: &str) -> Option<Same> {
    let (name, operands) = match name {
        "matmul" | "bmm" | "mm" => ("MatMul", 2),
        "mul" => ("Mul", 2),
        "div" => ("Div", 2),
        "pow" => ("Pow", 2),
        "maximum" => ("Max", 2),
        "minimum" => ("Min", 2),
        "relu" => ("Relu", 1),
        "tanh" => ("Tanh", 1),
        "sigmoid" => ("Sigmoid", 1),
        "selu" => ("Selu", 1),
        "exp" => ("Exp", 1),
        "log" => ("Log", 1),
        "neg" => ("Neg", 1),
        "abs" => ("Abs", 1),
        "sqrt" => ("Sqrt", 1),
        "reciprocal" => ("Reciprocal", 1),
        "erf" => ("Erf", 1),
        _ => return None,
    };
    Some(Same { name, operands })
}

/// A dimension counted from the front.
fn wrap(dimension: i64, rank: i64) -> i64 {
    match dimension {
        negative if negative < 0 => negative + rank,
        dimension => dimension,
    }
}

/// The sizes of the parts of `whole`, all `part` but for a smaller last one.
fn parts(whole: i64, part: i64) -> Vec<i64> {
    let part = part.max(1);
    (0..(whole + part - 1) / part)
        .map(|index| part.min(whole - index * part))
        .collect()
}

/// The arguments of a node, by their places.
#[derive(Clone, Copy)]
struct Arguments<'a>(&'a [Argument]);

impl<'a> Arguments<'a> {
    fn get(self, index: usize) -> Result<&'a Argument, String> {
        self.0
            .get(index)
            .ok_or_else(|| format!("it has no argument {index}"))
    }

    fn optional_int(self, index: usize) -> Result<Option<i64>, String> {
        match self.get(index)? {
            Argument::None => Ok(None),
            Argument::Int(value) => Ok(Some(*value)),
            other => Err(format!("its argument {index} is {other:?}")),
        }
    }

    fn int(self, index: usize) -> Result<i64, String> {
        self.optional_int(index)?
            .ok_or_else(|| format!("its argument {index} is missing"))
    }

    fn bool(self, index: usize) -> Result<bool, String> {
        match self.get(index)? {
            Argument::Bool(value) => Ok(*value),
            other => Err(format!("its argument {index} is {other:?}")),
        }
    }

    fn float(self, index: usize) -> Result<f64, String> {
        match self.get(index)? {
            Argument::Float(value) => Ok(*value),
            Argument::Int(value) => Ok(*value as f64),
            other => Err(format!("its argument {index} is {other:?}")),
        }
    }

    fn ints(self, index: usize) -> Result<Vec<i64>, String> {
        let wrong = || format!("its argument {index} is no list of integers");
        let Argument::List(values) = self.get(index)? else {
            return Err(wrong());
        };
        values
            .iter()
            .map(|value| match value {
                Argument::Int(value) => Ok(*value),
                _ => Err(wrong()),
            })
            .collect()
    }
}
