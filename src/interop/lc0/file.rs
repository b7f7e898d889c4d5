//! Weights files of Lc0's, in and out.

use super::fields::visit_fields;
use super::fold::fold_batch_norms;
use super::format::{Kind, format_of, gather_heads, spread_heads};
use super::infer::infer;
use super::layer::Lc0Encoding;
use super::schema::{Layer, MAGIC, Net, TrainingParams, Weights as Message};
use super::summary::{licence, take_weights, training};
use super::{Lc0Error, container};
use crate::network::lc0::HeadChoice;
use crate::network::{About, Architecture, Lc0, Network, Weights};
use std::collections::BTreeMap;
use tch::{Device, Tensor};

/// Reads a weights file, `.pb.gz` or `.pb`, as a network that plays these heads.
///
/// Batch norms are folded into the convolutions before them, as Lc0 does.
///
/// # Errors
/// [`Lc0Error`] if it is none, is damaged, lacks the heads, or has something that
/// we do not evaluate; [`Lc0Error::Onnx`] if it holds an ONNX model instead.
pub fn read(file: &[u8], heads: HeadChoice) -> Result<Network, Lc0Error> {
    let mut net = container::open_known(file)?;
    let mut message = take_weights(&mut net)?;
    let kind = Kind::of(&net, &message)?;
    gather_heads(&mut message, kind.policy);
    fold_batch_norms(&mut message)?;
    let config = infer(&kind, &mut message)?;
    let architecture = Lc0::new(&config, heads, Device::Cpu)?;
    let parameters = architecture.parameters().iter();
    let shapes: BTreeMap<&str, &[i64]> = parameters
        .map(|parameter| (parameter.name.as_str(), parameter.shape.as_slice()))
        .collect();
    let mut tensors = Vec::new();
    visit_fields(&config, &mut message, &mut |name, place| {
        let missing = || Lc0Error::Missing(name.to_owned());
        let layer = place.take().filter(|layer| layer.count() > 0);
        let layer = layer.ok_or_else(missing)?;
        let shape = *shapes.get(name).ok_or_else(missing)?;
        let found = layer.count();
        let expected = shape
            .iter()
            .try_fold(1, |count: i64, &size| count.checked_mul(size));
        if expected != Some(found) {
            return Err(Lc0Error::Shape {
                name: name.to_owned(),
                found,
                shape: shape.to_vec(),
            });
        }
        let numbers = layer.decode()?;
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(Lc0Error::NotFinite(name.to_owned()));
        }
        tensors.push((name.to_owned(), Tensor::from_slice(&numbers).view(shape)));
        Ok(())
    })?;
    Ok(Network {
        weights: Weights::take(architecture.parameters(), tensors)?,
        architecture: Box::new(architecture),
        about: About {
            name: String::new(),
            search_value: "wdl".to_owned(),
            training: training(&net),
            licence: licence(&net),
        },
    })
}

/// A weights file of the network, `.pb.gz`, that every backend of Lc0 plays.
///
/// # Errors
/// [`Lc0Error::Inexpressible`] if the network is not of Lc0's family (see
/// [`for_lc0`](super::for_lc0)), has what Lc0 lacks, or the encoding has no room
/// for a number.
pub fn write(network: &Network, encoding: Lc0Encoding) -> Result<Vec<u8>, Lc0Error> {
    let Some(architecture) = network.downcast::<Lc0>() else {
        let family = network.architecture.config().family();
        let what = format!("networks of the family {family}");
        return Err(Lc0Error::Inexpressible(what));
    };
    let config = architecture.model();
    let tensors: BTreeMap<String, Tensor> = network.parameters().into_iter().collect();
    let mut message = Message::default();
    visit_fields(config, &mut message, &mut |name, place| {
        let tensor = tensors.get(name);
        let tensor = tensor.ok_or_else(|| Lc0Error::Missing(name.to_owned()))?;
        let numbers = Vec::try_from(tensor.contiguous().view([-1])).expect("f32 on the CPU");
        let layer = Layer::encode(&numbers, encoding);
        if layer.decode()?.iter().any(|number| !number.is_finite()) {
            let what = format!("the numbers of `{name}` as {encoding:?}");
            return Err(Lc0Error::Inexpressible(what));
        }
        *place = Some(layer);
        Ok(())
    })?;
    spread_heads(config, &mut message);
    let (format, min_version) = format_of(config, encoding)?;
    let licence = Some(network.about.licence.clone()).filter(|licence| licence != "unknown");
    Ok(container::pack(&Net {
        magic: Some(MAGIC),
        license: licence,
        min_version: Some(min_version),
        format: Some(format),
        training_params: Some(training_params(&network.about.training)),
        weights: Some(Box::new(message)),
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
