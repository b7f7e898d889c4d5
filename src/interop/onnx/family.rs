//! Networks of all families, as functions of planes.

use super::write::PLANES;
use super::{OnnxError, OnnxNetwork};
use crate::encode::BOARDS;
use crate::interop::lc0::{HeadChoice, Lc0Network};
use crate::interop::maia3::Maia3Network;
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
    Maia3(Box<Maia3Network>),
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
            Some("maia3") => Family::Maia3(Box::new(Maia3Network::from_torchscript(
                &metadata, tensors,
            )?)),
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
            Family::Maia3(network) => {
                let parameters = network.parameters().iter().map(shared);
                parameters.chain(network.buffers()).collect()
            }
            Family::Onnx(network) => {
                let tensors = network.parameters().iter().chain(network.buffers());
                tensors.map(shared).collect()
            }
        }
    }

    /// What the network reads, by name and shape of a position: planes as Lc0
    /// fills them in the network's input format; of Maia-3's the bitboards of a
    /// row bit by bit, and the players' ratings.
    pub fn inputs(&self) -> Vec<(&'static str, Vec<i64>)> {
        match self.network {
            Family::Maia3(_) => vec![
                (PLANES, vec![BOARDS as i64, 8, 8]),
                ("self_elo", vec![]),
                ("opponent_elo", vec![]),
            ],
            _ => vec![(PLANES, vec![112, 8, 8])],
        }
    }

    /// The outputs that the metadata names, from [`Opened::inputs`].
    pub fn forward(&self, given: &[Tensor]) -> Vec<Tensor> {
        let planes = &given[0];
        match &self.network {
            Family::Chessformer(model, weights) => model.exported_from_planes(weights, planes),
            Family::Lc0(network, choice) => network.forward_planes(planes, choice),
            Family::Maia3(network) => {
                network.forward_planes(planes, &Tensor::stack(&given[1..], 1))
            }
            Family::Onnx(network) => network.forward_planes(planes),
        }
    }
}
