//! A network of Lc0's in memory, and the ways in and out.

use super::choice::HeadChoice;
use super::config::Lc0Config;
use super::fields::visit_fields;
use super::fold::fold_batch_norms;
use super::format::{Kind, format_of, gather_heads, spread_heads};
use super::forward::{Constants, Pass, READ};
use super::infer::infer;
use super::layer::Lc0Encoding;
use super::schema::{Layer, MAGIC, Net, TrainingParams, Weights};
use super::summary::{licence, take_weights, training};
use super::{Lc0Error, container};
use crate::encode::{HISTORY, SCALARS};
use crate::nn::Metadata;
use crate::nn::metadata::CONTRACT;
use crate::nn::torch::{ExportPrecision, Script, ScriptError};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;
use tch::{Device, Kind as Type, Tensor};

/// What a file's metadata calls networks like these.
const FAMILY: &str = "lc0";

/// A network that Lc0 can play.
#[derive(Debug)]
pub struct Lc0Network {
    config: Lc0Config,
    parameters: Vec<(String, Tensor)>,
    places: BTreeMap<String, usize>,
    constants: Constants,
    licence: String,
    training: serde_json::Value,
}

/// Reads a weights file, `.pb.gz` or `.pb`.
///
/// Batch norms are folded into the convolutions before them, as Lc0 does.
///
/// # Errors
/// [`Lc0Error`] if it is none, is damaged, or has something that we do not
/// evaluate; [`Lc0Error::Onnx`] if it holds an ONNX model instead.
pub fn read(file: &[u8]) -> Result<Lc0Network, Lc0Error> {
    let mut net = container::open(file)?;
    let mut weights = take_weights(&mut net)?;
    let kind = Kind::of(&net, &weights)?;
    gather_heads(&mut weights, kind.policy);
    fold_batch_norms(&mut weights)?;
    let config = infer(&kind, &mut weights)?;
    let mut parameters = Vec::new();
    visit_fields(&config, &mut weights, &mut |field, place| {
        let name = field.name.to_owned();
        let layer = match place.take() {
            Some(layer) if layer.count() > 0 => layer,
            _ => return Err(Lc0Error::Missing(name)),
        };
        let found = layer.count();
        if field
            .shape
            .iter()
            .try_fold(1, |count: i64, &size| count.checked_mul(size))
            != Some(found)
        {
            let shape = field.shape.to_vec();
            return Err(Lc0Error::Shape { name, found, shape });
        }
        let numbers = layer.decode()?;
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(Lc0Error::NotFinite(name));
        }
        parameters.push((name, Tensor::from_slice(&numbers).view(field.shape)));
        Ok(())
    })?;
    Ok(Lc0Network::assemble(
        config,
        parameters,
        licence(&net),
        training(&net),
    ))
}

/// A weights file of the network, `.pb.gz`, that every backend of Lc0 plays.
///
/// # Errors
/// [`Lc0Error::Inexpressible`] if the encoding has no room for a number, or the
/// configuration comes from elsewhere and has what Lc0 lacks.
pub fn write(network: &Lc0Network, encoding: Lc0Encoding) -> Result<Vec<u8>, Lc0Error> {
    let mut weights = Weights::default();
    visit_fields(&network.config, &mut weights, &mut |field, place| {
        let (_, tensor) = &network.parameters[network.places[field.name]];
        let numbers = Vec::try_from(tensor.contiguous().view([-1])).expect("f32 on the CPU");
        let layer = Layer::encode(&numbers, encoding);
        if layer.decode()?.iter().any(|number| !number.is_finite()) {
            let what = format!("the numbers of `{}` as {encoding:?}", field.name);
            return Err(Lc0Error::Inexpressible(what));
        }
        *place = Some(layer);
        Ok(())
    })?;
    spread_heads(&network.config, &mut weights);
    let (format, min_version) = format_of(&network.config, encoding)?;
    let licence = Some(network.licence.clone()).filter(|licence| licence != "unknown");
    Ok(container::pack(&Net {
        magic: Some(MAGIC),
        license: licence,
        min_version: Some(min_version),
        format: Some(format),
        training_params: Some(training_params(&network.training)),
        weights: Some(Box::new(weights)),
        onnx_model: None,
    }))
}

/// What Lc0 has fields for of training notes.
fn training_params(notes: &serde_json::Value) -> TrainingParams {
    let number = |name: &str| notes.get(name).and_then(serde_json::Value::as_f64);
    let steps = notes.get("steps").and_then(serde_json::Value::as_u64);
    let text = notes.get("lc0_params").and_then(serde_json::Value::as_str);
    TrainingParams {
        training_steps: steps.and_then(|steps| steps.try_into().ok()),
        learning_rate: number("learning_rate").map(|number| number as f32),
        mse_loss: number("mse_loss").map(|number| number as f32),
        policy_loss: number("policy_loss").map(|number| number as f32),
        accuracy: number("accuracy").map(|number| number as f32),
        lc0_params: text.map(str::to_owned),
    }
}

impl Lc0Network {
    /// A network of the given architecture with these tensors, in any order and
    /// with others among them: the way back from a TorchScript file.
    ///
    /// # Errors
    /// [`Lc0Error`] if a tensor is missing or its shape does not fit.
    pub fn new(
        config: Lc0Config,
        tensors: impl IntoIterator<Item = (String, Tensor)>,
        licence: String,
        training: serde_json::Value,
    ) -> Result<Lc0Network, Lc0Error> {
        let mut tensors: BTreeMap<String, Tensor> = tensors.into_iter().collect();
        config.check()?;
        check_layers(&config, tensors.len())?;
        let mut parameters = Vec::new();
        visit_fields(&config, &mut Weights::default(), &mut |field, _| {
            let name = field.name.to_owned();
            let Some(tensor) = tensors.remove(&name) else {
                return Err(Lc0Error::Missing(name));
            };
            if tensor.size() != field.shape {
                let (found, shape) = (tensor.numel() as i64, field.shape.to_vec());
                return Err(Lc0Error::Shape { name, found, shape });
            }
            let tensor = tensor.detach().to_device(Device::Cpu).to_kind(Type::Float);
            parameters.push((name, tensor));
            Ok(())
        })?;
        Ok(Lc0Network::assemble(config, parameters, licence, training))
    }

    /// A network from what a TorchScript file says of itself and holds, be it an
    /// imported one or a Chessformer of ours.
    ///
    /// # Errors
    /// [`Lc0Error::Inexpressible`], naming what Lc0 has no fields for, and
    /// [`Lc0Error`] if tensors do not fit what the metadata says.
    pub fn from_torchscript(
        metadata: &Metadata,
        tensors: impl IntoIterator<Item = (String, Tensor)>,
    ) -> Result<Lc0Network, Lc0Error> {
        let (family, model) = (
            &metadata.architecture["family"],
            &metadata.architecture["model"],
        );
        let (licence, training) = (metadata.licence.clone(), metadata.training.clone());
        match family.as_str() {
            Some(FAMILY) => Lc0Network::new(described(model)?, tensors, licence, training),
            Some("chessformer") => {
                Lc0Network::from_chessformer(&described(model)?, tensors, licence, training)
            }
            _ => {
                let what = format!("networks of the family {family}");
                Err(Lc0Error::Inexpressible(what))
            }
        }
    }

    fn assemble(
        config: Lc0Config,
        parameters: Vec<(String, Tensor)>,
        licence: String,
        training: serde_json::Value,
    ) -> Lc0Network {
        let parameters: Vec<(String, Tensor)> = parameters
            .into_iter()
            .map(|(name, tensor)| (name, laid_out(tensor)))
            .collect();
        let names = parameters.iter().map(|(name, _)| name.clone());
        Lc0Network {
            places: names.zip(0..).collect(),
            constants: Constants::of(&config),
            config,
            parameters,
            licence,
            training,
        }
    }

    /// Its architecture.
    #[must_use]
    pub fn config(&self) -> &Lc0Config {
        &self.config
    }

    /// Its tensors by name, f32 on the CPU.
    pub fn parameters(&self) -> &[(String, Tensor)] {
        &self.parameters
    }

    /// Evaluates `rows`, i64 [B, 111] as [`crate::encode::Input`] lays them out
    /// (words after those are not looked at):
    /// the outputs that [`HeadChoice::outputs`] names, f32.
    ///
    /// # Panics
    /// If the network lacks a chosen head, see [`HeadChoice::check`].
    #[must_use]
    pub fn forward(&self, rows: &Tensor, choice: &HeadChoice) -> Vec<Tensor> {
        let weights: Vec<Tensor> = self
            .parameters
            .iter()
            .map(|(_, tensor)| tensor.shallow_clone())
            .collect();
        self.forward_with(&weights, rows, choice)
    }

    /// The same from planes [B, 112, 8, 8], as Lc0 fills them in the network's
    /// input format.
    ///
    /// # Panics
    /// As [`Lc0Network::forward`].
    #[must_use]
    pub fn forward_planes(&self, planes: &Tensor, choice: &HeadChoice) -> Vec<Tensor> {
        let weights = self.parameters.iter().map(|(_, tensor)| tensor);
        let weights: Vec<Tensor> = weights.map(Tensor::shallow_clone).collect();
        let planes = planes.flatten(2, 3).transpose(1, 2);
        self.pass(&weights).forward_planes(planes, choice)
    }

    fn forward_with(&self, weights: &[Tensor], rows: &Tensor, choice: &HeadChoice) -> Vec<Tensor> {
        self.pass(weights).forward(rows, choice)
    }

    fn pass<'a>(&'a self, weights: &'a [Tensor]) -> Pass<'a> {
        Pass {
            config: &self.config,
            places: &self.places,
            weights,
            constants: &self.constants,
        }
    }

    /// Tensors besides the parameters that the forward pass reads, by name.
    pub(in crate::interop) fn buffers(&self) -> Vec<(String, Tensor)> {
        self.constants.named()
    }

    /// Writes the network as one TorchScript file, all of it or nothing, and
    /// returns what the file says of itself.
    ///
    /// # Errors
    /// [`ScriptError`] if libtorch or the file system refuse.
    ///
    /// # Panics
    /// If the network lacks a chosen head, see [`HeadChoice::check`].
    pub fn write_torchscript(
        &self,
        name: &str,
        choice: &HeadChoice,
        precision: ExportPrecision,
        path: &Path,
    ) -> Result<Metadata, ScriptError> {
        let size = self.config.size();
        let metadata = Metadata {
            contract: CONTRACT,
            name: name.to_owned(),
            architecture: serde_json::json!({
                "family": FAMILY,
                "model": self.config,
                "policy_head": choice.policy,
                "value_head": choice.value,
                "macs_total": size.macs_total,
                "precision": precision,
            }),
            input_format: self.config.input_format,
            history: HISTORY as u32,
            scalars: SCALARS[..READ]
                .iter()
                .map(|&name| name.to_owned())
                .collect(),
            outputs: choice
                .outputs(&self.config)
                .into_iter()
                .map(str::to_owned)
                .collect(),
            search_value: "wdl".to_owned(),
            parameters: size.parameters.unsigned_abs(),
            macs: size.macs.unsigned_abs(),
            training: self.training.clone(),
            licence: self.licence.clone(),
            hash: String::new(),
        };
        let script = Script {
            parameters: &self.parameters,
            buffers: &self.constants.named(),
            forward: &|weights, rows| self.forward_with(weights, rows, choice),
        };
        script.write(metadata, precision, path)
    }
}

/// The same tensor in the order of memory that libtorch computes with best:
/// convolutions' kernels with their channels last, so that it need not turn them
/// at every evaluation.
fn laid_out(tensor: Tensor) -> Tensor {
    match tensor.dim() {
        4 => tensor
            .permute([0, 2, 3, 1])
            .contiguous()
            .permute([0, 3, 1, 2]),
        _ => tensor.contiguous(),
    }
}

/// The architecture that a TorchScript file describes.
fn described<T: DeserializeOwned>(model: &serde_json::Value) -> Result<T, Lc0Error> {
    if !is_plausible(model) {
        let what = "it names sizes that no network has";
        return Err(Lc0Error::Description(what.to_owned()));
    }
    T::deserialize(model).map_err(|error| Lc0Error::Description(error.to_string()))
}

/// Whether all numbers are sizes that may be multiplied.
fn is_plausible(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Number(number) => number.as_u64().is_some_and(|n| n < 1 << 24),
        serde_json::Value::Array(values) => values.iter().all(is_plausible),
        serde_json::Value::Object(fields) => fields.values().all(is_plausible),
        _ => true,
    }
}

/// Each layer has tensors of its own.
fn check_layers(config: &Lc0Config, tensors: usize) -> Result<(), Lc0Error> {
    let tower = config.tower.map(|tower| tower.blocks);
    let body = config.attention.map(|body| body.encoder.layers);
    let policies = config.policy.encoders().map(|encoder| encoder.layers);
    for layers in tower.into_iter().chain(body).chain(policies) {
        if !usize::try_from(layers).is_ok_and(|layers| layers <= tensors) {
            return Err(Lc0Error::Missing(format!("tensors of {layers} layers")));
        }
    }
    Ok(())
}
