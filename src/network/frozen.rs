//! Networks that are played: their weights no longer change, so that what follows from
//! weights alone is computed once, and blocks have their weights packed for kernels.

use super::diffusion::Diffusion;
use super::evaluator::{Evaluator, Positions, evaluate, in_order};
use super::family::ArchitectureError;
use super::file::Network;
use super::parameters::{Slot, Weights};
use crate::nn::torch::{Inference, Numbers, Program, TorchError, fused};
use crate::nn::{Decoding, Foreseen};
use crate::panics;
use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tch::{Device, Tensor};

/// What is kept of weights that do not change.
#[derive(Debug)]
pub(super) struct Frozen {
    /// Whether blocks go through kernels with packed weights; in f32 alone libtorch's
    /// products are as fast.
    has_kernels: bool,
    /// Whether their layers multiply in int8, where widths allow it.
    int8: bool,
    /// Whether any of them does.
    multiplies_in_int8: AtomicBool,
    /// What was made of weights, by what it is and by one of the weights it is made of.
    made: RwLock<HashMap<(&'static str, Slot), Tensor>>,
}

impl Frozen {
    fn new(numbers: Numbers, like: &Tensor) -> Frozen {
        let is_narrow = numbers.int8 || numbers.kind == tch::Kind::BFloat16;
        Frozen {
            has_kernels: is_narrow && fused::is_available(like, &[]),
            int8: numbers.int8,
            multiplies_in_int8: AtomicBool::new(false),
            made: RwLock::default(),
        }
    }

    fn made(&self, what: (&'static str, Slot), make: impl FnOnce() -> Tensor) -> Tensor {
        let known = self.made.read().expect("nobody panics with it");
        if let Some(tensor) = known.get(&what) {
            return tensor.shallow_clone();
        }
        drop(known);
        let tensor = make();
        let mut known = self.made.write().expect("nobody panics with it");
        known.entry(what).or_insert(tensor).shallow_clone()
    }
}

/// The weights of a block as its kernel wants them.
#[derive(Debug)]
pub(super) struct Packed {
    pub weights: Tensor,
    /// Whether it is to multiply in int8, where widths allow it.
    pub int8: bool,
}

impl Weights {
    /// The same weights for playing, in other numbers.
    pub(super) fn frozen(&self, numbers: Numbers, device: Device) -> Weights {
        let tensors = self.tensors().iter();
        let tensors: Vec<Tensor> = tensors
            .map(|tensor| tensor.detach().to_device(device).to_kind(numbers.kind))
            .collect();
        let frozen = Frozen::new(numbers, &tensors[0]);
        Weights::new(tensors).with_frozen(frozen)
    }

    /// What follows from weights alone, `of` among them: computed once where they are
    /// frozen, else at every call, so that gradients flow.
    pub(super) fn made(
        &self,
        what: &'static str,
        of: Slot,
        make: impl FnOnce() -> Tensor,
    ) -> Tensor {
        match self.kept() {
            Some(frozen) => frozen.made((what, of), make),
            None => make(),
        }
    }

    /// Whether they are those of a network that is played.
    pub(super) fn are_frozen(&self) -> bool {
        self.kept().is_some()
    }

    /// Whether blocks go through kernels with packed weights.
    pub(super) fn are_packed(&self) -> bool {
        self.kept().is_some_and(|frozen| frozen.has_kernels)
    }

    /// The weights of a block with `inputs` to its layers, `of` among them, by a
    /// function that packs them, in int8 or not; `None` unless they
    /// [are packed](Weights::are_packed).
    pub(super) fn packed(
        &self,
        what: &'static str,
        of: Slot,
        inputs: &[i64],
        pack: impl FnOnce(bool) -> Tensor,
    ) -> Option<Packed> {
        let frozen = self.kept().filter(|frozen| frozen.has_kernels)?;
        let weights = frozen.made((what, of), || {
            if frozen.int8 && fused::fits_int8(inputs) {
                frozen.multiplies_in_int8.store(true, Ordering::Relaxed);
            }
            pack(frozen.int8)
        });
        let int8 = frozen.int8;
        Some(Packed { weights, int8 })
    }
}

/// A network to be played in certain numbers. It computes what [`Network::forward`] does,
/// but for rounding, and has no gradient. One that imagines futures does so in several
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
    pub fn freeze(&self, numbers: impl Into<Numbers>) -> Result<FrozenNetwork, ArchitectureError> {
        self.freeze_on(Device::Cpu, numbers.into(), Decoding::default())
    }

    /// The same on a device, where futures are imagined in this way.
    ///
    /// # Errors
    /// As [`Network::freeze`].
    pub fn freeze_on(
        &self,
        device: Device,
        numbers: Numbers,
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
        // tch panics where libtorch throws, as for lack of memory.
        let run = || match any.downcast_ref::<Diffusion>() {
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
        };
        catch_unwind(AssertUnwindSafe(run))
            .map_err(|panic| TorchError::new(panics::message(&*panic)))
    }
}

impl Program for FrozenNetwork {
    fn forward(&self, rows: &Tensor) -> Result<Vec<Tensor>, TorchError> {
        Ok(self.run(rows, None)?.0)
    }

    fn imagine(
        &self,
        rows: &Tensor,
        steps: Option<usize>,
    ) -> Result<(Vec<Tensor>, Vec<Foreseen>), TorchError> {
        self.run(rows, steps)
    }

    fn multiplies_in_int8(&self) -> bool {
        let frozen = self.weights.kept();
        frozen.is_some_and(|frozen| frozen.multiplies_in_int8.load(Ordering::Relaxed))
    }
}
