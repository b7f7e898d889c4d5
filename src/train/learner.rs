//! Computes the gradient of a batch's losses.
//!
//! A batch is uploaded as a [`PreparedBatch`], which includes each sample's weight in each term of
//! the [`Objective`], and passes through the network in one or more micro-batches. Each term's sum
//! over a micro-batch is divided by [`PreparedBatch::target_weight`], the total weight of the
//! samples in the whole batch that have the term's target. The gradients of the micro-batches
//! therefore add up to the gradient of the whole batch. So do those of replicas and processes, once
//! `target_weight` has been summed over all of them.

use super::config::TrainConfig;
use super::distributed::Buckets;
use super::error::TrainError;
use super::losses::{Losses, TermWeights};
use super::objective::Objective;
use super::prepared_batch::PreparedBatch;
use super::stopwatch::{Phase, Stopwatch};
use crate::data::loader::BatchOf;
use crate::network::{Parameter, Weights};
use tch::{Device, Kind, Tensor};

/// An objective with the settings for its gradient.
#[derive(Debug)]
pub(super) struct Learner<O> {
    pub objective: O,
    /// The dtype in which the network computes.
    kind: Kind,
    pub weights: TermWeights,
    /// Number of micro-batches per batch.
    accumulate: i64,
}

impl<O: Objective> Learner<O> {
    pub fn new(config: &TrainConfig, objective: O, device: Device) -> Learner<O> {
        Learner {
            objective,
            kind: config.precision.kind(),
            weights: TermWeights::new(&O::terms(config), device),
            accumulate: config.accumulate as i64,
        }
    }

    /// Returns the network's parameters.
    pub fn parameters(&self) -> &[Parameter] {
        self.objective.parameters()
    }

    /// Moves a batch to the device, together with everything that its losses need.
    ///
    /// # Errors
    /// As [`Objective::prepare`].
    pub fn prepare(
        &self,
        batch: BatchOf<O::Examples>,
    ) -> Result<PreparedBatch<O::Samples>, TrainError> {
        let (samples, loss_weights) = self.objective.prepare(batch)?;
        Ok(PreparedBatch::new(samples, loss_weights))
    }

    /// Adds the gradient of the batch's total loss to the gradient of the `leaves`, which sum each
    /// bucket over the processes as soon as backward has completed it.
    pub fn backward(
        &self,
        leaves: &Buckets,
        batch: &PreparedBatch<O::Samples>,
        watch: &mut Stopwatch,
    ) -> Losses {
        let count = batch.len();
        let size = (count + self.accumulate - 1) / self.accumulate;
        let mut all: Option<Losses> = None;
        for start in (0..count).step_by(size as usize) {
            let micro_batch = batch.narrow(start, size.min(count - start));
            let weights = leaves.weights(self.kind, self.parameters());
            let (_, losses) = self.losses(&weights, &micro_batch);
            watch.mark(Phase::Forward);
            if start + size >= count {
                leaves.arm();
            }
            losses.total.backward();
            watch.mark(Phase::Backward);
            let losses = losses.detached();
            all = Some(match all {
                Some(before) => before.plus(&losses),
                None => losses,
            });
        }
        all.expect("a batch is never empty")
    }

    /// Returns the network's outputs and losses for `parameters`, f32 `[parameters]`, without
    /// computing a gradient.
    pub fn evaluate(
        &self,
        parameters: &Tensor,
        batch: &PreparedBatch<O::Samples>,
    ) -> (O::Outputs, Losses) {
        let weights = Weights::from_flat(&parameters.to_kind(self.kind), self.parameters());
        self.losses(&weights, batch)
    }

    /// Returns the network's outputs and losses; gradients can flow through them.
    fn losses(&self, weights: &Weights, batch: &PreparedBatch<O::Samples>) -> (O::Outputs, Losses) {
        let outputs = self.objective.forward(weights, &batch.samples);
        let values = self.objective.values(&outputs, &batch.samples);
        let losses = Losses::of(values, &self.weights, batch);
        (outputs, losses)
    }
}

#[cfg(test)]
pub(super) mod tests;
