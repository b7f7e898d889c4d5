//! Describes a weights file without creating any tensors.

use super::format::Kind;
use super::heads::gather;
use super::infer::infer;
use super::schema::Net;
use super::tensors::Tensors;
use super::{Lc0Error, container};
use crate::network::Size;
use crate::network::lc0::Lc0Config;
use serde::Serialize;

/// A weights file's metadata.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lc0Summary {
    /// The network's architecture, sizes, formats and heads.
    pub model: Lc0Config,
    /// The network's size.
    #[serde(flatten)]
    pub size: Size,
    /// The oldest Lc0 that can read the file, if it is an Lc0 file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_version: Option<String>,
    /// The licence of the weights as stated in the file, or `unknown`.
    pub licence: String,
    /// The trainer's notes: steps, learning rate and losses.
    pub training: serde_json::Value,
}

/// Describes an Lc0 file: its architecture, sizes, formats and heads.
///
/// # Errors
/// [`Lc0Error`] if the file is not an Lc0 file or has unknown contents.
pub fn summary(file: &[u8]) -> Result<Lc0Summary, Lc0Error> {
    let net = container::open(file)?;
    let (kind, tensors) = contents(&net)?;
    let model = infer(&kind, &tensors)?;
    Ok(Lc0Summary {
        size: model.size()?,
        model,
        min_version: Some(net.min_version.unwrap_or_default().to_string()),
        licence: licence(&net),
        training: training(&net),
    })
}

/// Returns the network that a file's format describes, and the file's tensors.
///
/// # Errors
/// [`Lc0Error::Onnx`] or [`Lc0Error::Empty`] if the file has no tensors; other variants if the
/// tensors do not form a network.
pub(super) fn contents(net: &Net) -> Result<(Kind, Tensors), Lc0Error> {
    let mut tensors = match (&net.weights, &net.onnx_model) {
        (Some(weights), _) => Tensors::read(weights)?,
        (None, Some(_)) => return Err(Lc0Error::Onnx),
        (None, None) => return Err(Lc0Error::Empty),
    };
    let kind = Kind::of(net, &tensors)?;
    gather(&mut tensors, kind.policy, kind.attention_body);
    Ok((kind, tensors))
}

/// Returns the licence that a file states.
pub(crate) fn licence(net: &Net) -> String {
    match net.license() {
        "" => "unknown".to_owned(),
        licence => licence.to_owned(),
    }
}

/// Returns the file's human-readable training notes.
pub(crate) fn training(net: &Net) -> serde_json::Value {
    let mut notes = serde_json::Map::new();
    notes.insert("format".to_owned(), "Lc0 weights".into());
    let min_version = net.min_version.unwrap_or_default().to_string();
    notes.insert("min_version".to_owned(), min_version.into());
    if let Some(training) = &net.training_params {
        let mut note = |name: &str, value: Option<serde_json::Value>| {
            if let Some(value) = value {
                notes.insert(name.to_owned(), value);
            }
        };
        note("steps", training.training_steps.map(Into::into));
        note("learning_rate", training.learning_rate.map(Into::into));
        note("mse_loss", training.mse_loss.map(Into::into));
        note("policy_loss", training.policy_loss.map(Into::into));
        note("accuracy", training.accuracy.map(Into::into));
        note("lc0_params", training.lc0_params.clone().map(Into::into));
    }
    notes.into()
}
