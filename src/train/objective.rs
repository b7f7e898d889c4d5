//! The objectives of the network families.
//!
//! An [`Objective`] defines a kind of examples to sample from games, and computes terms (losses and
//! accuracies) for each example. The rest of training is the same for every family, and identifies
//! terms only by their names.

mod games;
mod horizon;
pub(super) mod positions;
mod unroll;

pub(super) use games::GameObjective;
pub(super) use horizon::HorizonObjective;
pub(super) use positions::PositionObjective;
pub(super) use unroll::UnrollObjective;

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
use tch::{Device, Kind, Reduction, Tensor};

/// The class index of whatever is not a target.
const IGNORED: i64 = -100;

/// A loss or an accuracy whose mean appears in the metrics.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    /// The term's name in the metrics. The names of accuracies end in `accuracy`.
    pub name: &'static str,
    /// The term's weight in the total loss; 0 for an accuracy.
    pub weight: f64,
}

/// A group of terms. The groups' losses are balanced against each other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    /// The group's name in the metrics.
    pub name: &'static str,
    /// The terms' names.
    pub terms: Vec<&'static str>,
}

/// A training objective and its network.
pub(super) trait Objective: Debug + Send + Sized + 'static {
    /// The kind of examples.
    type Examples: Examples;
    /// A batch of B examples on the device.
    type Samples: Narrow + Debug + Send;
    /// The network's outputs for a batch.
    type Outputs: Send;
    /// The metrics that a validation measures in addition to the terms.
    type Diagnostics: Diagnostics<Self>;

    /// Returns the terms, in the order of [`Objective::values`]. Progress reports show the first
    /// one as the loss.
    fn terms(config: &TrainConfig) -> Vec<Term>;

    /// Returns groups of terms whose losses are [balanced](super::harmony) during training.
    fn balanced(_config: &TrainConfig) -> Vec<Group> {
        Vec::new()
    }

    /// Returns the objective of a run.
    ///
    /// # Errors
    /// [`TrainError`] if the network cannot be built, or if the teacher cannot be loaded.
    fn new(config: &TrainConfig, device: Device) -> Result<Self, TrainError>;

    /// Returns the objective for a validation, without augmentation or a teacher.
    ///
    /// # Errors
    /// [`TrainError`] if the network cannot be built.
    fn for_validation(config: &TrainConfig, device: Device) -> Result<Self, TrainError>;

    /// Returns the same objective for another thread.
    ///
    /// # Errors
    /// [`TrainError`] if the network cannot be built.
    fn replica(&self) -> Result<Self, TrainError>;

    /// Receives the number of steps so far and the averaged weights, f32 `[parameters]`. Called
    /// before each step's gradient is computed, and before each validation.
    fn begin(&mut self, _steps: u64, _average: &Tensor) {}

    /// Returns the kind of examples to sample from games, with this run's settings.
    fn examples(&self, config: &TrainConfig) -> Self::Examples;

    /// Returns the network's parameters.
    fn parameters(&self) -> &[Parameter];

    /// Moves a batch to the device, together with everything that the terms need. Also returns the
    /// weight of each sample in each term, f32 [L, B], which is 0 if the sample lacks the target.
    ///
    /// # Errors
    /// [`TrainError`] if a teacher cannot be evaluated.
    fn prepare(
        &self,
        batch: BatchOf<Self::Examples>,
    ) -> Result<(Self::Samples, Tensor), TrainError>;

    /// Returns the network's outputs; gradients can flow through them.
    fn forward(&self, weights: &Weights, samples: &Self::Samples) -> Self::Outputs;

    /// Returns each term for each sample, as L tensors f32 `[B]`. The value is arbitrary if the
    /// sample's weight is 0.
    fn values(&self, outputs: &Self::Outputs, samples: &Self::Samples) -> Vec<Tensor>;
}

/// Builds the network that a configuration specifies, which must belong to the family `A`.
fn build<A: Architecture>(
    architecture: &ArchitectureConfig,
    device: Device,
) -> Result<A, TrainError> {
    let built: Box<dyn Any> = architecture.build(device).map_err(ConfigError::from)?;
    Ok(*built.downcast().expect("the family's own objective"))
}

/// Returns a random generator seeded from `seed` and from the batch's index in the sample order.
fn random_of<C>(seed: u64, batch: &Batch<C>) -> Xoshiro256PlusPlus {
    let next = batch.next;
    let place = [next.epoch, next.group, next.offset];
    let seed = place.into_iter().fold(seed, |seed, part| {
        // Multiplication by an odd number is invertible, and the rotation mixes the bits.
        (seed ^ part)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    });
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Returns the values as a vector on the device. Copies to a GPU are asynchronous.
fn send<T: Element>(values: &[T], device: Device) -> Tensor {
    torch::send(Tensor::from_slice(values), device)
}

/// Returns the sums over the last dimension.
fn sum(tensor: &Tensor) -> Tensor {
    tensor.sum_dim_intlist([-1i64].as_slice(), false, Kind::Float)
}

/// Returns the cross-entropy of each target class; 0 where it is [`IGNORED`].
fn classification(logits: &Tensor, class: &Tensor) -> Tensor {
    let classes = logits.size()[logits.dim() - 1];
    let (flat, class_of) = (logits.reshape([-1, classes]), class.reshape([-1]));
    flat.cross_entropy_loss::<Tensor>(&class_of, None, Reduction::None, IGNORED, 0.0)
        .view_as(class)
}

/// Returns 1 where the likeliest class is the target, else 0.
fn hits(logits: &Tensor, class: &Tensor) -> Tensor {
    let likeliest = logits.argmax(-1, false);
    likeliest.eq_tensor(class).to_kind(Kind::Float)
}

/// Returns the sums over all processes as a vector; `doing` describes the operation in errors.
fn totals(sums: &Tensor, world: &World, doing: &'static str) -> Result<Vec<f32>, GroupError> {
    world.sum(sums, doing)?;
    Ok(torch::floats(sums))
}

/// A batch of samples that can be split into micro-batches.
pub(super) trait Narrow {
    /// Returns `count` samples from `start`.
    fn narrow(&self, start: i64, count: i64) -> Self;
}

/// The metrics that a validation measures in addition to the terms.
pub(super) trait Diagnostics<O: Objective> {
    /// Starts without any measurements.
    fn new(device: Device) -> Self;

    /// Adds the measurements of a part of a batch.
    fn add(&mut self, outputs: &O::Outputs, samples: &O::Samples);

    /// Returns the metrics over all processes as JSON fields.
    ///
    /// # Errors
    /// [`GroupError`] if another process is gone.
    fn finish(&self, world: &World) -> Result<Map<String, Value>, GroupError>;
}
