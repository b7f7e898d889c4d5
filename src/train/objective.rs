//! The training objective: from a batch to the gradient of its losses.
//!
//! A batch becomes a [`PreparedBatch`] on the device: augmented by mirroring,
//! evaluated by the teacher if there is one, with each sample's weight in each
//! loss. It goes through the network in one or several micro-batches. Every loss is
//! divided by [`PreparedBatch::target_weight`], the total weight of the samples of
//! the whole batch that have its target. So the micro-batches' gradients add up to
//! the gradient of the whole batch. The same holds for replicas and processes, once
//! `target_weight` has been summed over them.

use super::config::{AugmentConfig, TrainConfig};
use super::distributed::Buckets;
use super::loss::{Losses, TermWeights, loss_weights, losses};
use super::prepared_batch::PreparedBatch;
use super::stopwatch::{Phase, Stopwatch};
use super::teacher::{Teacher, TeacherError};
use super::tensors::upload;
use crate::data::loader::Batch;
use crate::network::{Architecture, Output, OutputSet, Outputs, Positions, Tap, Weights};
use tch::{Device, Kind, Tensor};

/// What training minimises, for a network of this architecture.
#[derive(Debug)]
pub(super) struct Objective {
    model: Box<dyn Architecture>,
    device: Device,
    kind: Kind,
    /// The outputs that the network is to compute.
    wanted: OutputSet,
    weights: TermWeights,
    label_smoothing: f64,
    /// Micro-batches of a batch.
    accumulate: i64,
    augment: AugmentConfig,
    teacher: Option<Teacher>,
}

impl Objective {
    /// The objective of a run, with augmentation and the teacher if there is one.
    pub fn new(
        config: &TrainConfig,
        model: Box<dyn Architecture>,
        device: Device,
        teacher: Option<Teacher>,
    ) -> Objective {
        Objective {
            augment: config.augment.clone(),
            teacher,
            ..Objective::for_validation(config, model, device)
        }
    }

    /// The objective of a validation: without augmentation and teacher.
    pub fn for_validation(
        config: &TrainConfig,
        model: Box<dyn Architecture>,
        device: Device,
    ) -> Objective {
        let is_wanted = |output: &Output| match output {
            Output::PolicySoft => config.loss.policy_soft > 0.0,
            _ => true,
        };
        let outputs = Output::ALL.into_iter().filter(|&it| model.has(it));
        Objective {
            device,
            kind: config.precision.kind(),
            wanted: outputs.filter(is_wanted).collect(),
            weights: TermWeights::new(&config.loss, config.distillation.as_ref(), device),
            label_smoothing: config.loss.label_smoothing,
            accumulate: config.accumulate as i64,
            augment: AugmentConfig::default(),
            teacher: None,
            model,
        }
    }

    /// Moves a batch to the device with everything that its losses need.
    ///
    /// # Errors
    /// [`TeacherError`] if the teacher cannot be evaluated.
    pub fn prepare(&self, mut batch: Batch) -> Result<PreparedBatch, TeacherError> {
        self.augment.apply(&mut batch);
        let (rows, targets) = upload(&batch, self.device);
        let teacher = self.teacher.as_ref();
        let teacher = teacher.map(|teacher| teacher.evaluate(&rows, &targets));
        let teacher = teacher.transpose()?;
        let loss_weights = loss_weights(&targets, teacher.as_ref(), self.wanted);
        let sum = |weights: &Tensor| weights.sum_dim_intlist([1i64].as_slice(), false, Kind::Float);
        Ok(PreparedBatch {
            target_weight: sum(&loss_weights),
            target_count: sum(&loss_weights.gt(0.0)),
            rows,
            targets,
            teacher,
            loss_weights,
        })
    }

    /// Adds the gradient of the batch's total loss to that of the `leaves`, which
    /// sum it over the processes as it is completed.
    pub fn backward(
        &self,
        leaves: &Buckets,
        batch: &PreparedBatch,
        watch: &mut Stopwatch,
    ) -> Losses {
        let count = batch.rows.size()[0];
        let size = (count + self.accumulate - 1) / self.accumulate;
        let mut all: Option<Losses> = None;
        for start in (0..count).step_by(size as usize) {
            let micro_batch = batch.narrow(start, size.min(count - start));
            let weights = leaves.weights(self.kind, self.model.parameters());
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

    /// The network's outputs and losses with `parameters`, f32 `[parameters]`,
    /// without a gradient.
    pub fn evaluate(&self, parameters: &Tensor, batch: &PreparedBatch) -> (Outputs, Losses) {
        let weights = Weights::from_flat(&parameters.to_kind(self.kind), self.model.parameters());
        self.losses(&weights, batch)
    }

    /// The network's outputs and their losses, through which gradients can flow.
    fn losses(&self, weights: &Weights, batch: &PreparedBatch) -> (Outputs, Losses) {
        let rows = Positions::Rows(&batch.rows);
        let outputs = self
            .model
            .forward(weights, rows, self.wanted, &Tap::default());
        let losses = losses(&outputs, batch, &self.weights, self.label_smoothing);
        (outputs, losses)
    }
}

#[cfg(test)]
pub(super) mod tests;
