//! Networks of all families, as functions of Lc0's planes.

use super::{OnnxError, OnnxNetwork};
use crate::interop::lc0::{HeadChoice, Lc0Network};
use crate::model::{self, Chessformer, Weights};
use crate::nn::Metadata;
use crate::nn::torch::{self, NetworkError};
use serde::Deserialize;
use tch::Tensor;

/// A network out of its TorchScript file.
pub(super) struct Opened {
    pub metadata: Metadata,
    network: Family,
}

enum Family {
    Chessformer(Box<Chessformer>, Weights),
    Lc0(Box<Lc0Network>, HeadChoice),
    Onnx(Box<OnnxNetwork>),
}

impl Opened {
    /// Takes apart a network file, whatever it was made from.
    pub fn new(file: &[u8]) -> Result<Opened, OnnxError> {
        let (module, metadata) = torch::open(file)?;
        let tensors = module.tensors().map_err(NetworkError::from)?;
        let architecture = &metadata.architecture;
        let network = match architecture["family"].as_str() {
            Some("chessformer") => {
                let (model, weights) = model::restore(&metadata, &tensors)?;
                Family::Chessformer(Box::new(model), weights)
            }
            Some("lc0") => {
                let choice = HeadChoice {
                    policy: Deserialize::deserialize(&architecture["policy_head"])?,
                    value: Deserialize::deserialize(&architecture["value_head"])?,
                };
                let network = Lc0Network::from_torchscript(&metadata, tensors)?;
                choice.check(network.config())?;
                Family::Lc0(Box::new(network), choice)
            }
            Some("onnx") => {
                Family::Onnx(Box::new(OnnxNetwork::from_torchscript(&metadata, tensors)?))
            }
            family => return Err(OnnxError::Family(family.unwrap_or("unnamed").to_owned())),
        };
        Ok(Opened { metadata, network })
    }

    /// All tensors that the network reads, by name.
    pub fn tensors(&self) -> Vec<(String, Tensor)> {
        let shared = |(name, tensor): &(String, Tensor)| (name.clone(), tensor.shallow_clone());
        match &self.network {
            Family::Chessformer(model, weights) => {
                let names = model.parameters().iter();
                let names = names.map(|parameter| parameter.name.clone());
                let weights = weights.tensors().iter().map(Tensor::shallow_clone);
                names.zip(weights).chain(model.buffers()).collect()
            }
            Family::Lc0(network, _) => {
                let parameters = network.parameters().iter().map(shared);
                parameters.chain(network.buffers()).collect()
            }
            Family::Onnx(network) => {
                let tensors = network.parameters().iter().chain(network.buffers());
                tensors.map(shared).collect()
            }
        }
    }

    /// The outputs that the metadata names, from planes [B, 112, 8, 8] as Lc0
    /// fills them in the network's input format.
    pub fn forward(&self, planes: &Tensor) -> Vec<Tensor> {
        match &self.network {
            Family::Chessformer(model, weights) => model.exported_from_planes(weights, planes),
            Family::Lc0(network, choice) => network.forward_planes(planes, choice),
            Family::Onnx(network) => network.forward_planes(planes),
        }
    }
}
