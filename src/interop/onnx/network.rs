//! A network read from ONNX.

use super::OnnxError;
use super::budget::Budget;
use super::config::{OnnxConfig, OutputForm};
use super::evaluate::run;
use super::interface::{Interface, describe, metadata};
use super::schema::{GraphProto, ModelProto};
use super::tensor;
use crate::encode::{HISTORY, InputFormat, POLICY_SIZE, SCALARS};
use crate::interop::lc0::{READ, planes};
use crate::model::bitboards;
use crate::nn::Metadata;
use crate::nn::metadata::CONTRACT;
use crate::nn::torch::{ExportPrecision, Script, ScriptError};
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use tch::{Device, Kind, Tensor};

/// The buffer of [`OnnxNetwork::shifts`] in a TorchScript file.
const SHIFTS: &str = "shifts";
/// Probabilities below this are none: its logarithm is far from all others.
const LEAST_PROBABILITY: f64 = 1e-9;

/// A network that a file of ONNX describes.
#[derive(Debug)]
pub struct OnnxNetwork {
    config: OnnxConfig,
    parameters: Vec<(String, Tensor)>,
    buffers: Vec<(String, Tensor)>,
    /// u8 0…7, by which rows become planes.
    shifts: Tensor,
    macs: i64,
    notes: Notes,
}

/// What a network says besides what it computes.
#[derive(Clone, Debug)]
pub(super) struct Notes {
    pub search_value: String,
    pub training: serde_json::Value,
    pub licence: String,
}

impl Notes {
    fn of(metadata: &Metadata) -> Notes {
        Notes {
            search_value: metadata.search_value.clone(),
            training: metadata.training.clone(),
            licence: metadata.licence.clone(),
        }
    }
}

impl OnnxNetwork {
    /// A network from a model, tried on two positions.
    pub(super) fn read(model: &ModelProto, interface: &Interface) -> Result<Self, OnnxError> {
        let graph = model.graph.as_ref().ok_or(OnnxError::NoModel)?;
        let metadata = metadata(model);
        let notes = Notes {
            search_value: "wdl".to_owned(),
            training: serde_json::json!({ "format": "ONNX", "producer": model.producer_name }),
            licence: interface.licence.clone().unwrap_or("unknown".to_owned()),
        };
        let config = describe(model, graph, interface, metadata.as_ref())?;
        let notes = metadata.as_ref().map_or(notes, Notes::of);
        let mut network = OnnxNetwork::empty(config, notes);
        network.take_tensors(graph)?;
        network.try_out()?;
        Ok(network)
    }

    /// The network of a TorchScript file that [`OnnxNetwork::write_torchscript`]
    /// wrote, from what it says of itself and its tensors by name.
    ///
    /// # Errors
    /// [`OnnxError`] if they are not of such a file.
    pub fn from_torchscript(
        metadata: &Metadata,
        tensors: impl IntoIterator<Item = (String, Tensor)>,
    ) -> Result<OnnxNetwork, OnnxError> {
        let config = OnnxConfig::deserialize(&metadata.architecture["model"])?;
        let mut network = OnnxNetwork::empty(config, Notes::of(metadata));
        for (name, tensor) in tensors.into_iter().filter(|(name, _)| name != SHIFTS) {
            let tensor = tensor.detach().to_device(Device::Cpu);
            match tensor.is_floating_point() {
                true => network.parameters.push((name, tensor.to_kind(Kind::Float))),
                false => network.buffers.push((name, tensor)),
            }
        }
        network.try_out()?;
        Ok(network)
    }

    fn empty(config: OnnxConfig, notes: Notes) -> OnnxNetwork {
        OnnxNetwork {
            config,
            parameters: Vec::new(),
            buffers: Vec::new(),
            shifts: bitboards::shifts(),
            macs: 0,
            notes,
        }
    }

    fn take_tensors(&mut self, graph: &GraphProto) -> Result<(), OnnxError> {
        let mut used: BTreeSet<&str> = BTreeSet::new();
        used.extend(
            self.config
                .nodes
                .iter()
                .flat_map(|n| n.inputs.iter().map(String::as_str)),
        );
        let constants = graph.node.iter().filter(|node| node.op_type == "Constant");
        let constants = constants.filter_map(|node| {
            let value = node
                .attribute
                .iter()
                .find_map(|attribute| attribute.t.as_ref())?;
            Some((node.output.first()?, value))
        });
        let initializers = graph
            .initializer
            .iter()
            .map(|tensor| (&tensor.name, tensor));
        for (name, proto) in initializers.chain(constants) {
            if !used.contains(name.as_str()) || self.config.tensors.contains_key(name) {
                continue;
            }
            let tensor = tensor::read(proto).map_err(|source| OnnxError::Tensor {
                name: name.clone(),
                source,
            })?;
            let stored = stored_name(name, self.config.tensors.len());
            let list = match tensor.is_floating_point() {
                true => &mut self.parameters,
                false => &mut self.buffers,
            };
            list.push((stored.clone(), tensor));
            self.config.tensors.insert(name.clone(), stored);
        }
        Ok(())
    }

    /// Runs the graph on two empty boards, which tells all that is wrong with it.
    fn try_out(&mut self) -> Result<(), OnnxError> {
        let format = InputFormat::from_number(self.config.input_format);
        if format.is_none_or(|format| format == InputFormat::Maia3) {
            return Err(OnnxError::InputFormat);
        }
        let _guard = tch::no_grad_guard();
        let planes = Tensor::zeros([2, 112, 8, 8], (Kind::Float, Device::Cpu));
        let mut budget = Budget::default();
        let outputs = self.evaluate(&self.weights(), &planes, &mut budget)?;
        for (output, tensor) in self.config.outputs.iter().zip(&outputs) {
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
                return Err(OnnxError::Output {
                    name: output.value.clone(),
                    found,
                });
            }
        }
        self.macs = budget.macs() / 2;
        Ok(())
    }

    /// The values of the graph's outputs.
    fn evaluate(
        &self,
        weights: &[Tensor],
        planes: &Tensor,
        budget: &mut Budget,
    ) -> Result<Vec<Tensor>, OnnxError> {
        let parameters = self.parameters.iter().map(|(name, _)| name).zip(weights);
        let buffers = self.buffers.iter().map(|(name, tensor)| (name, tensor));
        let stored: HashMap<&String, &Tensor> = parameters.chain(buffers).collect();
        let names = self.config.tensors.iter();
        let tensors = names
            .filter_map(|(name, place)| Some((name.as_str(), *stored.get(place)?)))
            .collect();
        Ok(run(&self.config, &tensors, planes, budget)?)
    }

    fn weights(&self) -> Vec<Tensor> {
        let parameters = self.parameters.iter();
        parameters
            .map(|(_, tensor)| tensor.shallow_clone())
            .collect()
    }

    /// Evaluates `rows`, i64 [B, 111] as [`crate::encode::Input`] lays them out:
    /// the outputs that [`OnnxNetwork::outputs`] names, f32.
    #[must_use]
    pub fn forward(&self, rows: &Tensor) -> Vec<Tensor> {
        self.forward_rows(&self.weights(), rows)
    }

    /// The same from planes [B, 112, 8, 8], as Lc0 fills them in
    /// [`OnnxConfig::input_format`].
    #[must_use]
    pub fn forward_planes(&self, planes: &Tensor) -> Vec<Tensor> {
        self.forward_with(&self.weights(), planes)
    }

    fn forward_rows(&self, weights: &[Tensor], rows: &Tensor) -> Vec<Tensor> {
        let single = Tensor::from(0f32);
        let like = weights.first().unwrap_or(&single);
        let planes = planes(rows, &self.shifts, self.config.input_format, like);
        let planes = planes.transpose(1, 2).reshape([-1, 112, 8, 8]);
        self.forward_with(weights, &planes)
    }

    fn forward_with(&self, weights: &[Tensor], planes: &Tensor) -> Vec<Tensor> {
        let values = self
            .evaluate(weights, planes, &mut Budget::unlimited())
            .expect("a graph that has been tried");
        let outputs = self.config.outputs.iter().zip(values);
        outputs
            .map(|(output, value)| {
                let value = value.to_kind(Kind::Float);
                match output.form {
                    OutputForm::Probabilities => value.clamp_min(LEAST_PROBABILITY).log(),
                    OutputForm::Result => decided(&value.view([-1])),
                    OutputForm::Plain if is_matrix(&output.name) => value,
                    OutputForm::Plain => value.view([-1]),
                }
            })
            .collect()
    }

    /// Writes the network as one TorchScript file, all of it or nothing, and
    /// returns what the file says of itself.
    ///
    /// # Errors
    /// [`ScriptError`] if libtorch or the file system refuse.
    pub fn write_torchscript(
        &self,
        name: &str,
        precision: ExportPrecision,
        path: &Path,
    ) -> Result<Metadata, ScriptError> {
        let shared = |(name, tensor): &(String, Tensor)| (name.clone(), tensor.shallow_clone());
        let shifts = (SHIFTS.to_owned(), self.shifts.shallow_clone());
        let buffers: Vec<_> = self.buffers.iter().map(shared).chain([shifts]).collect();
        let metadata = Metadata {
            contract: CONTRACT,
            name: name.to_owned(),
            architecture: serde_json::json!({
                "family": "onnx",
                "model": self.config,
                "macs_total": self.macs,
                "precision": precision,
            }),
            input_format: self.config.input_format,
            history: HISTORY as u32,
            scalars: SCALARS[..READ]
                .iter()
                .map(|&scalar| scalar.to_owned())
                .collect(),
            outputs: self.outputs().map(str::to_owned).collect(),
            search_value: self.notes.search_value.clone(),
            parameters: self.count(),
            macs: self.macs.unsigned_abs(),
            training: self.notes.training.clone(),
            licence: self.notes.licence.clone(),
            hash: String::new(),
        };
        let script = Script {
            parameters: &self.parameters,
            buffers: &buffers,
            forward: &|weights, rows| self.forward_rows(weights, rows),
        };
        script.write(metadata, precision, path)
    }

    /// What it computes.
    #[must_use]
    pub fn config(&self) -> &OnnxConfig {
        &self.config
    }

    /// Its parameters by name, f32 on the CPU.
    pub fn parameters(&self) -> &[(String, Tensor)] {
        &self.parameters
    }

    /// Its other tensors by name: shapes and indices, i64.
    pub fn buffers(&self) -> &[(String, Tensor)] {
        &self.buffers
    }

    /// The names of its outputs in the metadata of a network file, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        self.config
            .outputs
            .iter()
            .map(|output| output.name.as_str())
    }

    /// How many numbers its parameters are.
    pub(super) fn count(&self) -> u64 {
        let parameters = self.parameters.iter();
        parameters.map(|(_, tensor)| tensor.numel() as u64).sum()
    }

    pub(super) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Multiply–accumulates of one evaluation.
    #[must_use]
    pub fn macs(&self) -> i64 {
        self.macs
    }
}

/// Whether an output has a row a position, and not a number.
fn is_matrix(name: &str) -> bool {
    name.starts_with("policy") || name == "wdl"
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

/// A name that a TorchScript module can have for a tensor: its own as far as
/// that is possible.
fn stored_name(name: &str, number: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let plain: String = name.chars().take(100).map(plain).collect();
    format!("tensor_{}_{number}", plain.trim_matches('_'))
}
