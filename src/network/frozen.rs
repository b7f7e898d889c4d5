//! Networks that are played: their weights no longer change, so that what follows from
//! weights alone is computed once, and blocks have their weights packed for kernels.

use super::architecture::{Evaluator, Positions};
use super::diffusion::Diffusion;
use super::evaluator::{evaluate, in_order};
use super::family::ArchitectureError;
use super::file::Network;
use super::parameters::Weights;
use crate::nn::torch::{self, ComputeType, Inference, Program, TorchError};
use crate::nn::{Decoding, Foreseen};
use std::any::Any;
use tch::{Device, Tensor};

/// A network to be played in certain numbers. It computes what [`Network::forward`] does,
/// but for rounding, and has no gradient. One that foresees futures does so in several
/// steps.
#[derive(Debug)]
pub struct FrozenNetwork {
    architecture: Box<dyn Evaluator>,
    weights: Weights,
    decoding: Decoding,
}

// SAFETY: several threads only read its tensors, whose reference counts are atomic;
// what is made of them lies behind a lock.
unsafe impl Sync for FrozenNetwork {}

impl Network {
    /// The network in these numbers, ready to be played on the processor.
    ///
    /// # Errors
    /// [`ArchitectureError`] if it is a graph, which has no structure of its own.
    pub fn freeze(
        &self,
        numbers: impl Into<ComputeType>,
    ) -> Result<FrozenNetwork, ArchitectureError> {
        self.freeze_on(Device::Cpu, numbers.into(), Decoding::default())
    }

    /// The same on a device, where futures are foreseen in this way.
    ///
    /// # Errors
    /// As [`Network::freeze`].
    pub fn freeze_on(
        &self,
        device: Device,
        numbers: ComputeType,
        decoding: Decoding,
    ) -> Result<FrozenNetwork, ArchitectureError> {
        let architecture = self.architecture.config().build(device)?;
        let architecture = architecture.into_evaluator();
        Ok(FrozenNetwork {
            architecture: architecture.expect("the same family"),
            weights: self.weights.frozen(numbers, device),
            decoding,
        })
    }
}

impl FrozenNetwork {
    fn run(
        &self,
        rows: &Tensor,
        steps: Option<usize>,
    ) -> Result<(Vec<Tensor>, Vec<Foreseen>), TorchError> {
        let _inference = Inference::begin();
        let network = &*self.architecture;
        let decoding = Decoding {
            steps: steps.unwrap_or(self.decoding.steps),
            ..self.decoding
        };
        let any: &dyn Any = network;
        torch::caught(|| match any.downcast_ref::<Diffusion>() {
            Some(denoiser) => {
                let wanted = network.interface().outputs.into_iter().collect();
                let (outputs, foreseen) =
                    denoiser.decode(&self.weights, rows, decoding, wanted, |_, _| {});
                (in_order(network, outputs), foreseen)
            }
            None => {
                let positions = Positions::Rows(rows);
                (evaluate(network, &self.weights, positions), Vec::new())
            }
        })
    }
}

impl Program for FrozenNetwork {
    fn forward(&self, rows: &Tensor) -> Result<Vec<Tensor>, TorchError> {
        Ok(self.run(rows, None)?.0)
    }

    fn foresee(
        &self,
        rows: &Tensor,
        steps: Option<usize>,
    ) -> Result<(Vec<Tensor>, Vec<Foreseen>), TorchError> {
        self.run(rows, steps)
    }

    fn multiplies_in_int8(&self) -> bool {
        self.weights.multiply_in_int8()
    }
}
