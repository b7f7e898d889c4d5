//! Reads and writes Lc0 weights files.

use super::fold::fold_batch_norms;
use super::format::{format_of, has_single_heads};
use super::heads::spread;
use super::infer::infer;
use super::layer::Lc0Encoding;
use super::schema::{Layer, MAGIC, Net, TrainingParams};
use super::summary::{contents, licence, training};
use super::tensors::Tensors;
use super::{Lc0Error, container};
use crate::network::lc0::{HeadChoice, Lc0Config};
use crate::network::{About, Architecture, Lc0, Network, Parameter, Weights};
use std::collections::BTreeMap;
use tch::{Device, Tensor};

/// Reads a weights file, `.pb.gz` or `.pb`, as a network that plays with the chosen heads.
///
/// As in Lc0, batch norms are folded into the preceding convolutions.
///
/// # Errors
/// [`Lc0Error`] if the file is not a weights file, is damaged, lacks the chosen heads or contains
/// an unsupported part; [`Lc0Error::Onnx`] if it contains an ONNX model instead of weights.
pub fn read(file: &[u8], heads: HeadChoice) -> Result<Network, Lc0Error> {
    let net = container::open_known(file)?;
    let (kind, mut tensors) = contents(&net)?;
    fold_batch_norms(&mut tensors)?;
    let config = infer(&kind, &tensors)?;
    let architecture = Lc0::new(&config, heads, Device::Cpu)?;
    let parameters = architecture.parameters().iter();
    let tensors = parameters.map(|parameter| {
        let layer = tensors.layers.remove(&parameter.name);
        Ok((parameter.name.clone(), decoded(parameter, layer)?))
    });
    let tensors = tensors.collect::<Result<Vec<_>, Lc0Error>>()?;
    Ok(Network {
        weights: Weights::take(architecture.parameters(), tensors)?,
        architecture: Box::new(architecture),
        about: About::imported(training(&net), licence(&net)),
    })
}

/// Returns the tensor of a parameter.
fn decoded(parameter: &Parameter, layer: Option<Layer>) -> Result<Tensor, Lc0Error> {
    let Parameter { name, shape, .. } = parameter;
    let layer = layer.filter(|layer| layer.count() > 0);
    let layer = layer.ok_or_else(|| Lc0Error::Missing(name.clone()))?;
    let found = layer.count();
    let mut sizes = shape.iter();
    let expected = sizes.try_fold(1, |count: i64, &size| count.checked_mul(size));
    if expected != Some(found) {
        return Err(Lc0Error::Shape {
            name: name.clone(),
            found,
            shape: shape.clone(),
        });
    }
    let numbers = layer.decode()?;
    match numbers.iter().all(|number| number.is_finite()) {
        true => Ok(Tensor::from_slice(&numbers).view(shape.as_slice())),
        false => Err(Lc0Error::NotFinite(name.clone())),
    }
}

/// Returns the network as a weights file (`.pb.gz`) that every Lc0 backend can run.
///
/// # Errors
/// [`Lc0Error::Inexpressible`] if the network is not in Lc0's family (see
/// [`for_lc0`](super::for_lc0)), has parts that Lc0 lacks, or contains a value outside the
/// encoding's range.
pub fn write(network: &Network, encoding: Lc0Encoding) -> Result<Vec<u8>, Lc0Error> {
    let Some(architecture) = network.downcast::<Lc0>() else {
        let family = network.architecture.config().family();
        let what = format!("networks of the family {family}");
        return Err(Lc0Error::Inexpressible(what));
    };
    let config = &architecture.config;
    let mut tensors = Tensors::default();
    for (name, tensor) in network.parameters() {
        let numbers = Vec::try_from(tensor.contiguous().view([-1])).expect("f32 on the CPU");
        let layer = Layer::encode(&numbers, encoding);
        if layer.decode()?.iter().any(|number| !number.is_finite()) {
            let what = format!("the numbers of `{name}` as {encoding:?}");
            return Err(Lc0Error::Inexpressible(what));
        }
        tensors.layers.insert(name, layer);
    }
    tensors.numbers = numbers(config);
    spread(&mut tensors, config, has_single_heads(config));
    let (format, min_version) = format_of(config, encoding)?;
    let licence = Some(network.about.licence.clone()).filter(|licence| licence != "unknown");
    Ok(container::pack(&Net {
        magic: Some(MAGIC),
        license: licence,
        min_version: Some(min_version),
        format: Some(format),
        training_params: Some(training_params(&network.about.training)),
        weights: Some(tensors.write()),
        onnx_model: None,
    }))
}

/// Returns the number of layers and attention heads.
fn numbers(config: &Lc0Config) -> BTreeMap<String, u32> {
    let tower = config.tower.map(|tower| ("body".to_owned(), tower.blocks));
    let body = config.attention.map(|body| (String::new(), body.encoder));
    let policies = config.policy.encoders();
    let policies = policies.map(|(head, encoder)| (format!("policy.{}.", head.name()), encoder));
    let encoders = body
        .into_iter()
        .chain(policies)
        .flat_map(|(path, encoder)| {
            [
                (format!("{path}encoder"), encoder.layers),
                (format!("{path}heads"), encoder.heads),
            ]
        });
    let all = tower.into_iter().chain(encoders);
    all.map(|(path, number)| (path, number as u32)).collect()
}

/// Returns those training notes for which Lc0's format has fields.
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
