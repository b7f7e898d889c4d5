//! From a batch to the gradient of its losses.
//!
//! A batch becomes a [`Lesson`] on the device: mirrored here and there, judged
//! by the teacher if there is one, with the weights that its samples have for
//! each loss. Learning it takes one or several pieces through the network.
//! Every loss is divided by [`Lesson::carried`], the weight that carries its
//! target in the whole batch, so that the pieces' gradients add up to the joined
//! batch's, and likewise the gradients of several replicas and processes once
//! `carried` has been summed over them.

use super::config::{AugmentConfig, TrainConfig};
use super::distributed::Buckets;
use super::loss::{Losses, Weights as LossVector, losses, weighing};
use super::stopwatch::{Part, Stopwatch};
use super::teacher::{Advice, Teacher, TeacherError};
use super::tensors::{Targets, upload};
use crate::data::loader::Batch;
use crate::network::{Architecture, Output, OutputSet, Outputs, Positions, Tap, Weights};
use tch::{Device, Kind, Tensor};

/// How batches are taught, to a network of this structure.
#[derive(Debug)]
pub(super) struct Lessons {
    model: Box<dyn Architecture>,
    device: Device,
    kind: Kind,
    /// The outputs that it is to compute.
    wanted: OutputSet,
    weights: LossVector,
    label_smoothing: f64,
    pieces: i64,
    augment: AugmentConfig,
    teacher: Option<Teacher>,
}

/// A batch on the device with all that its losses need.
#[derive(Debug)]
pub(super) struct Lesson {
    /// i64 [B, WIDTH].
    pub rows: Tensor,
    pub targets: Targets,
    pub advice: Option<Advice>,
    /// Weight of each sample for each loss, f32 [losses, B].
    pub weighing: Tensor,
    /// Weight that carries each loss's target, f32 [losses]: the divisor of its
    /// sum. Of this batch alone, until it is summed over replicas and processes.
    pub carried: Tensor,
    /// Samples that carry each loss's target, f32 [losses].
    pub counts: Tensor,
}

impl Lessons {
    /// The lessons of a run, with the teacher if there is one.
    pub fn new(
        config: &TrainConfig,
        model: Box<dyn Architecture>,
        device: Device,
        teacher: Option<Teacher>,
    ) -> Lessons {
        Lessons {
            augment: config.augment.clone(),
            teacher,
            ..Lessons::plain(config, model, device)
        }
    }

    /// The lessons of a validation: samples as they are, and no teacher.
    pub fn plain(config: &TrainConfig, model: Box<dyn Architecture>, device: Device) -> Lessons {
        let is_wanted = |output: &Output| match output {
            Output::PolicySoft => config.loss.policy_soft > 0.0,
            _ => true,
        };
        let outputs = Output::ALL.into_iter().filter(|&it| model.has(it));
        Lessons {
            device,
            kind: config.precision.kind(),
            wanted: outputs.filter(is_wanted).collect(),
            weights: LossVector::new(&config.loss, config.distillation.as_ref(), device),
            label_smoothing: config.loss.label_smoothing,
            pieces: config.accumulate as i64,
            augment: AugmentConfig::default(),
            teacher: None,
            model,
        }
    }

    /// Readies a batch.
    ///
    /// # Errors
    /// [`TeacherError`] if the teacher fails.
    pub fn prepare(&self, mut batch: Batch) -> Result<Lesson, TeacherError> {
        self.augment.apply(&mut batch);
        let (rows, targets) = upload(&batch, self.device);
        let advice = self.teacher.as_ref();
        let advice = advice.map(|teacher| teacher.advise(&rows, &targets));
        let advice = advice.transpose()?;
        let weighing = weighing(&targets, advice.as_ref(), self.wanted);
        let sum =
            |weighing: &Tensor| weighing.sum_dim_intlist([1i64].as_slice(), false, Kind::Float);
        Ok(Lesson {
            carried: sum(&weighing),
            counts: sum(&weighing.gt(0.0)),
            rows,
            targets,
            advice,
            weighing,
        })
    }

    /// Adds the gradient of the lesson's total loss to that of the `leaves`, and
    /// lets them sum it over the processes as it is completed.
    pub fn learn(&self, leaves: &Buckets, lesson: &Lesson, watch: &mut Stopwatch) -> Losses {
        let count = lesson.rows.size()[0];
        let size = (count + self.pieces - 1) / self.pieces;
        let mut all: Option<Losses> = None;
        for start in (0..count).step_by(size as usize) {
            let piece = lesson.narrow(start, size.min(count - start));
            let weights = leaves.weights(self.kind, self.model.parameters());
            let (_, losses) = self.losses(&weights, &piece);
            watch.mark(Part::Forward);
            if start + size >= count {
                leaves.arm();
            }
            losses.total.backward();
            watch.mark(Part::Backward);
            let losses = losses.detached();
            all = Some(match all {
                Some(before) => before.plus(&losses),
                None => losses,
            });
        }
        all.expect("a batch is never empty")
    }

    /// The lesson's losses with `parameters`, f32 `[parameters]`, for nothing but
    /// to know them.
    pub fn measure(&self, parameters: &Tensor, lesson: &Lesson) -> (Outputs, Losses) {
        let weights = Weights::from_flat(&parameters.to_kind(self.kind), self.model.parameters());
        self.losses(&weights, lesson)
    }

    /// What the network answers to the lesson, and the losses of that, through
    /// which gradients can flow.
    fn losses(&self, weights: &Weights, lesson: &Lesson) -> (Outputs, Losses) {
        let rows = Positions::Rows(&lesson.rows);
        let outputs = self
            .model
            .forward(weights, rows, self.wanted, &Tap::default());
        let losses = losses(&outputs, lesson, &self.weights, self.label_smoothing);
        (outputs, losses)
    }
}

impl Lesson {
    /// A part of the batch, whose losses are still divided by what the whole
    /// batch carries.
    fn narrow(&self, start: i64, count: i64) -> Lesson {
        Lesson {
            rows: self.rows.narrow(0, start, count),
            targets: self.targets.narrow(start, count),
            advice: self
                .advice
                .as_ref()
                .map(|advice| advice.narrow(start, count)),
            weighing: self.weighing.narrow(1, start, count),
            carried: self.carried.shallow_clone(),
            counts: self.counts.shallow_clone(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
