//! Graphs of ONNX operators: networks of families that are not known here, run
//! operator by operator.

mod budget;
pub(super) mod config;
mod evaluate;

pub use config::{Attribute, GraphConfig, NodeConfig, OutputConfig, OutputForm};
pub use evaluate::NodeError;

use super::architecture::{
    Architecture, Evaluator, Interface, NotAnEvaluator, Positions, Structure,
};
use super::bitboards;
use super::config::ArchitectureConfig;
use super::evaluator;
use super::exported::ExportedProgram;
use super::lc0::{READ, planes};
use super::outputs::{Output, OutputSet, Outputs};
use super::parameters::{Initial, Parameter, ParameterGroup, Weights};
use super::size::Size;
use super::taps::Tap;
use crate::encode::{InputFormat, POLICY_SIZE, SCALARS};
use budget::Budget;
use evaluate::run;
use std::collections::HashMap;
use tch::{Device, Kind, Tensor};

/// The buffer of the shifts in a network file.
const SHIFTS: &str = "shifts";
/// Probabilities below this are none: its logarithm is far from all others.
const LEAST_PROBABILITY: f64 = 1e-9;

/// Why a graph cannot be run as a network.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// Positions that Lc0 does not encode.
    #[error("the network reads positions in a way that Lc0 does not write them")]
    InputFormat,
    /// An output that no network has, or that the graph has twice.
    #[error("the network has an output `{0}` which is not known here, or has it twice")]
    UnknownOutput(String),
    /// An output of another shape than Lc0's.
    #[error("the network's output {name} has the shape {found:?} for two positions")]
    Output {
        /// Its name.
        name: String,
        /// Its shape.
        found: Vec<i64>,
    },
    /// An operator that cannot be run.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// A graph that has been tried on two positions: what it computes is right in
/// its shapes.
#[derive(Debug)]
pub struct Graph {
    config: GraphConfig,
    outputs: Vec<Output>,
    /// Shapes and indices, i64.
    buffers: Vec<(String, Tensor)>,
    /// u8 0…7, by which rows become planes.
    shifts: Tensor,
    structure: Structure,
}

impl Graph {
    /// The graph that `config` describes with its tensors by the names of
    /// [`GraphConfig::tensors`]. Those of floating-point numbers are its weights.
    ///
    /// # Errors
    /// [`GraphError`] if it cannot be run.
    pub fn from_tensors(
        config: GraphConfig,
        tensors: impl IntoIterator<Item = (String, Tensor)>,
    ) -> Result<(Graph, Weights), GraphError> {
        let mut outputs = Vec::new();
        for OutputConfig { name, .. } in &config.outputs {
            match Output::from_name(name).filter(|output| !outputs.contains(output)) {
                Some(output) => outputs.push(output),
                None => return Err(GraphError::UnknownOutput(name.clone())),
            }
        }
        let mut graph = Graph {
            outputs,
            structure: Structure {
                config: ArchitectureConfig::Onnx {
                    model: config.clone(),
                },
                parameters: Vec::new(),
                size: Size::default(),
            },
            config,
            buffers: Vec::new(),
            shifts: bitboards::shifts(),
        };
        let mut weights = Vec::new();
        for (name, tensor) in tensors.into_iter().filter(|(name, _)| name != SHIFTS) {
            let tensor = tensor.detach().to_device(Device::Cpu);
            if tensor.is_floating_point() {
                graph.structure.parameters.push(Parameter {
                    name,
                    shape: tensor.size(),
                    initial: Initial::Zeros,
                    group: ParameterGroup::Other,
                });
                weights.push(tensor.to_kind(Kind::Float));
            } else {
                graph.buffers.push((name, tensor));
            }
        }
        let weights = Weights::new(weights);
        let macs = graph.try_out(&weights)?;
        graph.structure.size = Size {
            parameters: graph
                .structure
                .parameters
                .iter()
                .map(Parameter::count)
                .sum(),
            macs,
            macs_total: macs,
        };
        Ok((graph, weights))
    }

    /// Runs the graph on two empty boards, which tells all that is wrong with it;
    /// returns the multiply–accumulates of one position.
    fn try_out(&self, weights: &Weights) -> Result<i64, GraphError> {
        let format = InputFormat::from_number(self.config.input_format);
        if format.is_none_or(|format| format == InputFormat::Maia3) {
            return Err(GraphError::InputFormat);
        }
        let _guard = tch::no_grad_guard();
        let planes = Tensor::zeros([2, 112, 8, 8], (Kind::Float, Device::Cpu));
        let mut budget = Budget::default();
        let values = self.evaluate(weights, &planes, &mut budget)?;
        for (output, tensor) in self.config.outputs.iter().zip(&values) {
            let columns = match output.name.as_str() {
                "policy" | "policy_optimistic" | "policy_soft" => Some(POLICY_SIZE as i64),
                "wdl" if output.form != OutputForm::Result => Some(3),
                _ => None,
            };
            let found = tensor.size();
            let fits = match columns {
                Some(columns) => found == [2, columns],
                None => found == [2] || found == [2, 1],
            };
            if !fits {
                return Err(GraphError::Output {
                    name: output.value.clone(),
                    found,
                });
            }
        }
        Ok(budget.macs() / 2)
    }

    /// The values of the graph's outputs.
    fn evaluate(
        &self,
        weights: &Weights,
        planes: &Tensor,
        budget: &mut Budget,
    ) -> Result<Vec<Tensor>, NodeError> {
        let names = self.parameters().iter().map(|parameter| &parameter.name);
        let parameters = names.zip(weights.tensors());
        let buffers = self.buffers.iter().map(|(name, tensor)| (name, tensor));
        let stored: HashMap<&String, &Tensor> = parameters.chain(buffers).collect();
        let names = self.config.tensors.iter();
        let tensors = names
            .filter_map(|(name, place)| Some((name.as_str(), *stored.get(place)?)))
            .collect();
        run(&self.config, &tensors, planes, budget)
    }

    /// What it computes.
    #[must_use]
    pub fn model(&self) -> &GraphConfig {
        &self.config
    }
}

impl Architecture for Graph {
    fn structure(&self) -> &Structure {
        &self.structure
    }

    fn constants(&self) -> Vec<(&str, &Tensor)> {
        let own = self.buffers.iter().map(|(name, it)| (name.as_str(), it));
        own.chain([(SHIFTS, &self.shifts)]).collect()
    }

    fn into_evaluator(self: Box<Self>) -> Result<Box<dyn Evaluator>, NotAnEvaluator> {
        Ok(self)
    }

    fn exported(&self) -> ExportedProgram<'_> {
        evaluator::exported(self)
    }
}

impl Evaluator for Graph {
    fn interface(&self) -> Interface {
        Interface {
            format: self.config.input_format,
            scalars: SCALARS[..READ].to_vec(),
            outputs: self.outputs.clone(),
            planes: Interface::lc0_planes(),
        }
    }

    fn has(&self, output: Output) -> bool {
        self.outputs.contains(&output)
    }

    fn forward(
        &self,
        weights: &Weights,
        positions: Positions,
        _wanted: OutputSet,
        _tap: &Tap,
    ) -> Outputs {
        let planes = match positions {
            Positions::Rows(rows) => {
                let single = Tensor::from(0f32);
                let like = weights.tensors().first().unwrap_or(&single);
                let planes = planes(rows, &self.shifts, self.config.input_format, like);
                planes.transpose(1, 2).reshape([-1, 112, 8, 8])
            }
            Positions::Planes(planes) => planes[0].shallow_clone(),
        };
        let values = self
            .evaluate(weights, &planes, &mut Budget::unlimited())
            .expect("a graph that has been tried");
        let mut outputs = Outputs::default();
        let places = self.outputs.iter().zip(&self.config.outputs).zip(values);
        for ((&output, config), value) in places {
            let value = value.to_kind(Kind::Float);
            let value = match config.form {
                OutputForm::Probabilities => value.clamp_min(LEAST_PROBABILITY).log(),
                OutputForm::Result => decided(&value.view([-1])),
                OutputForm::Plain if is_matrix(output) => value,
                OutputForm::Plain => value.view([-1]),
            };
            outputs.set(output, value);
        }
        outputs
    }

    /// A graph's inside is not known: nothing is read off it.
    fn read(
        &self,
        _weights: &Weights,
        _tokens: &Tensor,
        _positions: Positions,
        _wanted: OutputSet,
    ) -> Outputs {
        Outputs::default()
    }
}

/// Whether an output has a row a position, and not a number.
fn is_matrix(output: Output) -> bool {
    use Output::{Policy, PolicyOptimistic, PolicySoft, Wdl};
    matches!(output, Policy | PolicyOptimistic | PolicySoft | Wdl)
}

/// Logits of win, draw and loss for an expected result: nothing is drawn.
fn decided(result: &Tensor) -> Tensor {
    let win = (result + 1.0) * 0.5;
    let loss = (-result + 1.0) * 0.5;
    let none = result.zeros_like();
    Tensor::stack(&[win, none, loss], 1)
        .clamp_min(LEAST_PROBABILITY)
        .log()
}
