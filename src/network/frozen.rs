//! Networks frozen for play. Their weights no longer change, so values that depend only on weights
//! are computed once, and blocks pack their weights for kernels.

use super::architecture::{Architecture, Evaluator};
use super::evaluator::in_order;
use super::file::{Network, OpenError, Playable};
use super::parameters::Weights;
use super::program::Program;
use crate::backend::{Decoding, PredictedFuture};
use crate::torch::{self, ComputeType, InferenceMode, TorchError};
use tch::{Device, Tensor};

/// A network frozen for play in a dtype. It computes the same outputs as [`Network::forward`] up to
/// rounding, without gradients. A network that predicts futures runs several steps per evaluation.
#[derive(Debug)]
pub struct FrozenNetwork {
    architecture: Box<dyn Evaluator>,
    weights: Weights,
    decoding: Decoding,
}

// SAFETY: threads only read the network's tensors, whose reference counts are atomic. A lock
// protects the derived values.
unsafe impl Sync for FrozenNetwork {}

impl<A: Architecture + ?Sized> Network<A> {
    /// Freezes the network in this dtype, for play on the CPU.
    #[cfg(test)]
    pub(crate) fn freeze(&self, dtype: impl Into<ComputeType>) -> Result<FrozenNetwork, OpenError> {
        self.freeze_on(Device::Cpu, dtype.into(), Decoding::default())
    }

    /// Freezes the network on a device. `decoding` applies to networks that predict futures.
    ///
    /// # Errors
    /// [`OpenError`] if the network does not evaluate positions.
    pub fn freeze_on(
        &self,
        device: Device,
        dtype: ComputeType,
        decoding: Decoding,
    ) -> Result<FrozenNetwork, OpenError> {
        let architecture = self.architecture.config().build(device)?;
        Ok(FrozenNetwork {
            architecture: architecture.into_evaluator()?,
            weights: self.weights.frozen(dtype, device),
            decoding,
        })
    }
}

impl Playable {
    /// Freezes the network for play, as [`Network::freeze_on`] does.
    ///
    /// # Errors
    /// [`OpenError`] if the network does not evaluate positions.
    pub fn freeze(
        &self,
        device: Device,
        dtype: ComputeType,
        decoding: Decoding,
    ) -> Result<FrozenNetwork, OpenError> {
        match self {
            Playable::Positions(network) => network.freeze_on(device, dtype, decoding),
            Playable::World(network) => network.freeze_on(device, dtype, decoding),
            Playable::Moves(network) => network.freeze_on(device, dtype, decoding),
        }
    }
}

impl FrozenNetwork {
    fn run(
        &self,
        rows: &Tensor,
        steps: Option<usize>,
    ) -> Result<(Vec<Tensor>, Vec<PredictedFuture>), TorchError> {
        let _inference = InferenceMode::begin();
        let network = &*self.architecture;
        let decoding = Decoding {
            steps: steps.unwrap_or(self.decoding.steps),
            ..self.decoding
        };
        torch::caught(|| {
            let (outputs, predicted) = network.play(&self.weights, rows, decoding);
            (in_order(network, outputs), predicted)
        })
    }
}

impl Program for FrozenNetwork {
    fn forward(&self, rows: &Tensor) -> Result<Vec<Tensor>, TorchError> {
        Ok(self.run(rows, None)?.0)
    }

    fn forward_with_futures(
        &self,
        rows: &Tensor,
        steps: Option<usize>,
    ) -> Result<(Vec<Tensor>, Vec<PredictedFuture>), TorchError> {
        self.run(rows, steps)
    }

    fn multiplies_in_int8(&self) -> bool {
        self.weights.multiply_in_int8()
    }
}
