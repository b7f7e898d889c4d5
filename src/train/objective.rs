//! The objective of a family of networks, and its examples.
//!
//! An [`Objective`] draws its own kind of examples out of the games, and measures its
//! terms, losses and accuracies, of each. All the rest of training is the same for
//! every family, and knows terms by their names alone.

mod games;
mod horizon;
pub(super) mod positions;
mod unroll;

pub(super) use games::Games;
pub(super) use horizon::Horizon;
pub(super) use positions::Positions;
pub use positions::TeacherError;
pub(super) use unroll::Unroll;

use super::config::{ConfigError, TrainConfig};
use super::distributed::{GroupError, World};
use super::error::TrainError;
use crate::data::examples::Examples;
use crate::data::loader::{Batch, BatchOf};
use crate::network::{Architecture, ArchitectureConfig, Parameter, Weights};
use crate::torch;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Map, Value};
use std::any::Any;
use std::fmt::Debug;
use tch::kind::Element;
use tch::{Device, Tensor};

/// A loss or an accuracy, of which training reports the mean.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    /// Its name in the metrics. Those of accuracies end in `accuracy`.
    pub name: &'static str,
    /// Its weight in the total loss; 0 of an accuracy.
    pub weight: f64,
}

/// Terms whose losses together are balanced against those of other groups.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    /// Its name in the metrics.
    pub name: &'static str,
    /// The terms' names.
    pub terms: Vec<&'static str>,
}

/// The training loss, with the network it is computed on.
pub(super) trait Objective: Debug + Send + Sized + 'static {
    /// Its examples.
    type Examples: Examples;
    /// B examples on the device.
    type Samples: Narrow + Debug + Send;
    /// The network's outputs for them.
    type Outputs: Send;
    /// Metrics of a validation besides the loss terms.
    type Diagnostics: Diagnostics<Self>;

    /// The terms, in the order of [`Objective::values`]. The first is the loss that
    /// progress is shown by.
    fn terms(config: &TrainConfig) -> Vec<Term>;

    /// Groups of terms whose losses are [balanced](super::harmony) while they are learned.
    fn balanced(_config: &TrainConfig) -> Vec<Group> {
        Vec::new()
    }

    /// The objective of a run.
    ///
    /// # Errors
    /// [`TrainError`] if the network cannot be built, or what else it needs not be
    /// loaded.
    fn new(config: &TrainConfig, device: Device) -> Result<Self, TrainError>;

    /// The objective of a validation: examples as they are, no teacher.
    ///
    /// # Errors
    /// [`TrainError`] if the network cannot be built.
    fn for_validation(config: &TrainConfig, device: Device) -> Result<Self, TrainError>;

    /// The same objective for another thread.
    ///
    /// # Errors
    /// [`TrainError`] if the network cannot be built.
    fn replica(&self) -> Result<Self, TrainError>;

    /// Returns the averaged weights, f32 `[parameters]`, before the gradient after a number of
    /// steps, or before a validation.
    fn begin(&mut self, _steps: u64, _average: &Tensor) {}

    /// The examples drawn from the games, with the settings of this run.
    fn examples(&self, config: &TrainConfig) -> Self::Examples;

    /// The network's parameters.
    fn parameters(&self) -> &[Parameter];

    /// Moves a batch to the device with everything that the terms need. Besides, the
    /// weight of each sample in each term, f32 [L, B]; 0 without the target.
    ///
    /// # Errors
    /// [`TrainError`] if a teacher cannot be evaluated.
    fn prepare(
        &self,
        batch: BatchOf<Self::Examples>,
    ) -> Result<(Self::Samples, Tensor), TrainError>;

    /// The network's outputs, through which gradients can flow.
    fn forward(&self, weights: &Weights, samples: &Self::Samples) -> Self::Outputs;

    /// Each term of each sample, L tensors f32 `[B]`; whatever where the sample's
    /// weight is 0.
    fn values(&self, outputs: &Self::Outputs, samples: &Self::Samples) -> Vec<Tensor>;
}

/// The network that a configuration describes, of the family that an objective is for.
fn build<A: Architecture>(
    architecture: &ArchitectureConfig,
    device: Device,
) -> Result<A, TrainError> {
    let built: Box<dyn Any> = architecture.build(device).map_err(ConfigError::from)?;
    Ok(*built.downcast().expect("the family's own objective"))
}

/// Random numbers that depend on the seed and on the batch's place in the order of
/// samples alone.
fn random_of<C>(seed: u64, batch: &Batch<C>) -> Xoshiro256PlusPlus {
    let next = batch.next;
    let place = [next.epoch, next.group, next.offset];
    let seed = place.into_iter().fold(seed, |seed, part| {
        // Multiplying by an odd number loses nothing, and rotating mixes.
        (seed ^ part)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    });
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// The values on the device, as a vector. Copies to a GPU do not wait for it.
fn send<T: Element>(values: &[T], device: Device) -> Tensor {
    torch::send(Tensor::from_slice(values), device)
}

/// Sums over all processes, as a vector; `doing` says what for.
fn totals(sums: &Tensor, world: &World, doing: &'static str) -> Result<Vec<f32>, GroupError> {
    world.sum(sums, doing)?;
    let sums = sums.to_device(Device::Cpu).reshape([-1]);
    Ok(Vec::try_from(sums).expect("a vector of floats"))
}

/// Samples side by side, of which a micro-batch takes some.
pub(super) trait Narrow {
    /// Those of `count` samples from `start` on.
    fn narrow(&self, start: i64, count: i64) -> Self;
}

/// Metrics of a validation besides the loss terms.
pub(super) trait Diagnostics<O: Objective> {
    /// Nothing seen so far.
    fn new(device: Device) -> Self;

    /// Adds a part of a batch.
    fn add(&mut self, outputs: &O::Outputs, samples: &O::Samples);

    /// The metrics over all processes, as fields.
    ///
    /// # Errors
    /// [`GroupError`] if another process is gone.
    fn finish(&self, world: &World) -> Result<Map<String, Value>, GroupError>;
}
