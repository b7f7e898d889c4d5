//! Runs a graph of ONNX with libtorch's operators, so that libtorch's tracer can
//! turn it into TorchScript.

mod arithmetic;
mod layers;
mod shapes;

use super::budget::{Budget, Exhausted};
use super::config::{Attribute, GraphConfig, NodeConfig};
use std::collections::HashMap;
use tch::{Kind, TchError, Tensor};

/// Stands for the batch's size, which a traced graph must not hold as a number.
const BATCH: i64 = i64::MIN;

/// What a name of the graph stands for.
#[derive(Debug)]
enum Value {
    /// A tensor of numbers.
    Numbers(Tensor),
    /// Integers that shapes and places are made of, [`BATCH`] among them, and the
    /// tensor that holds them where they are not computed.
    Integers(Vec<i64>, Option<Tensor>),
}

/// Why a graph cannot be run.
#[derive(Debug, thiserror::Error)]
#[error("its node {node} ({operator}) cannot be run: {reason}")]
pub struct NodeError {
    /// The name of the node's first output.
    pub node: String,
    /// What it does, in ONNX's words.
    pub operator: String,
    /// What stands in the way.
    pub reason: String,
}

/// Why one node cannot be run.
#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("{0}")]
    Text(String),
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    #[error("{}", first_line(.0))]
    Torch(#[from] TchError),
}

fn first_line(error: &TchError) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

fn text<T>(reason: impl Into<String>) -> Result<T, Reason> {
    Err(Reason::Text(reason.into()))
}

/// Runs the graph over `planes` [B, 112, 8, 8]. `tensors` are its constants by
/// the names of the graph; `budget` is charged for what is computed.
///
/// # Errors
/// [`NodeError`] for the first node that cannot be run.
pub(super) fn run(
    config: &GraphConfig,
    tensors: &HashMap<&str, &Tensor>,
    planes: &Tensor,
    budget: &mut Budget,
) -> Result<Vec<Tensor>, NodeError> {
    let mut values = HashMap::new();
    for (&name, &tensor) in tensors {
        values.insert(name, constant(tensor));
    }
    values.insert(&config.input, Value::Numbers(planes.shallow_clone()));
    let mut last_use = HashMap::new();
    for (place, node) in config.nodes.iter().enumerate() {
        for input in &node.inputs {
            last_use.insert(input.as_str(), place);
        }
    }
    let outputs = config.outputs.iter().map(|output| output.value.as_str());
    for output in outputs.clone() {
        last_use.insert(output, usize::MAX);
    }
    for (place, node) in config.nodes.iter().enumerate() {
        let made = Evaluation {
            node,
            values: &values,
            planes,
            budget,
            operator_set: config.operator_set,
        };
        let made = made.run().map_err(|reason| NodeError {
            node: node.name().to_owned(),
            operator: node.operator.clone(),
            reason: reason.to_string(),
        })?;
        for (name, value) in node.outputs.iter().zip(made) {
            values.insert(name, value);
        }
        for name in node.inputs.iter().chain(&node.outputs) {
            if last_use
                .get(name.as_str())
                .is_none_or(|&last| last <= place)
                && let Some(Value::Numbers(tensor)) = values.remove(name.as_str())
            {
                budget.release(&tensor.size());
            }
        }
    }
    let missing = |name: &str| NodeError {
        node: name.to_owned(),
        operator: "output".to_owned(),
        reason: "nothing makes this value".to_owned(),
    };
    outputs
        .map(|name| match values.get(name) {
            Some(Value::Numbers(tensor)) => Ok(tensor.shallow_clone()),
            _ => Err(missing(name)),
        })
        .collect()
}

/// Constants of few integers are read, for they may be shapes.
fn constant(tensor: &Tensor) -> Value {
    if tensor.kind() != Kind::Int64 {
        return Value::Numbers(tensor.shallow_clone());
    }
    let integers = Vec::try_from(tensor.view([-1])).unwrap_or_default();
    Value::Integers(integers, Some(tensor.shallow_clone()))
}

/// One node at work.
struct Evaluation<'a> {
    node: &'a NodeConfig,
    values: &'a HashMap<&'a str, Value>,
    planes: &'a Tensor,
    budget: &'a mut Budget,
    operator_set: i64,
}

impl Evaluation<'_> {
    fn run(mut self) -> Result<Vec<Value>, Reason> {
        let operator = self.node.operator.as_str();
        if let Some(value) = self.integers(operator)? {
            return Ok(vec![value]);
        }
        if operator == "Split" {
            let parts = self.split()?;
            return Ok(parts.into_iter().map(Value::Numbers).collect());
        }
        let made = match self.arithmetic(operator)? {
            Some(made) => Some(made),
            None => match self.shaped(operator)? {
                Some(made) => Some(made),
                None => self.layer(operator)?,
            },
        };
        match made {
            Some(made) => Ok(vec![Value::Numbers(made)]),
            None => text("this operator is not among those of Lc0's networks and ours"),
        }
    }

    fn value(&self, index: usize) -> Result<Option<&Value>, Reason> {
        match self.node.inputs.get(index).map(String::as_str) {
            None | Some("") => Ok(None),
            Some(name) => match self.values.get(name) {
                None => text(format!("nothing before it makes its input {name}")),
                value => Ok(value),
            },
        }
    }

    /// An input that may be left out.
    fn optional_tensor(&self, index: usize) -> Result<Option<Tensor>, Reason> {
        match self.value(index)? {
            None => Ok(None),
            Some(Value::Numbers(tensor) | Value::Integers(_, Some(tensor))) => {
                Ok(Some(tensor.shallow_clone()))
            }
            Some(Value::Integers(..)) => text(format!("its input {index} is a shape")),
        }
    }

    fn tensor(&self, index: usize) -> Result<Tensor, Reason> {
        match self.optional_tensor(index)? {
            None => text(format!("it has no input {index}")),
            Some(tensor) => Ok(tensor),
        }
    }

    /// An input of integers that are known, which may be left out.
    fn optional_integers(&self, index: usize) -> Result<Option<Vec<i64>>, Reason> {
        match self.value(index)? {
            None => Ok(None),
            Some(Value::Integers(integers, _)) => Ok(Some(integers.clone())),
            Some(Value::Numbers(_)) => text(format!("its input {index} is no list of integers")),
        }
    }

    fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.node.attributes.get(name)
    }

    fn int(&self, name: &str, default: i64) -> Result<i64, Reason> {
        match self.attribute(name) {
            None => Ok(default),
            Some(Attribute::Int(value)) => Ok(*value),
            Some(_) => text(format!("its {name} is no integer")),
        }
    }

    fn float(&self, name: &str, default: f64) -> Result<f64, Reason> {
        match self.attribute(name) {
            None => Ok(default),
            Some(Attribute::Float(value)) => Ok(f64::from(*value)),
            Some(_) => text(format!("its {name} is no number")),
        }
    }

    fn ints(&self, name: &str) -> Result<Option<Vec<i64>>, Reason> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Ints(values)) => Ok(Some(values.clone())),
            Some(_) => text(format!("its {name} are no integers")),
        }
    }

    /// Integers that were an attribute before they became an input.
    fn ints_or_input(&self, name: &str, input: usize) -> Result<Option<Vec<i64>>, Reason> {
        match self.ints(name)? {
            None => self.optional_integers(input),
            values => Ok(values),
        }
    }
}

/// A dimension of `rank` ones, counted from the front.
fn dimension(axis: i64, rank: usize) -> Result<i64, Reason> {
    let rank = rank as i64;
    match axis {
        axis if (0..rank).contains(&axis) => Ok(axis),
        axis if (-rank..0).contains(&axis) => Ok(axis + rank),
        axis => text(format!("there is no axis {axis} in {rank} dimensions")),
    }
}

/// The shape of what two tensors give together.
fn broadcast(left: &[i64], right: &[i64]) -> Result<Vec<i64>, Reason> {
    let rank = left.len().max(right.len());
    let size = |shape: &[i64], index: usize| {
        let place = (index + shape.len()).checked_sub(rank);
        place.map_or(1, |place| shape[place])
    };
    (0..rank)
        .map(|index| match (size(left, index), size(right, index)) {
            (left, right) if left == right => Ok(left),
            (1, size) | (size, 1) => Ok(size),
            _ => text(format!("{left:?} and {right:?} do not fit")),
        })
        .collect()
}
