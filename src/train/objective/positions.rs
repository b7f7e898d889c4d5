//! The objective of networks that evaluate positions: to predict the policy, the values and the
//! moves left.
//!
//! Batches are augmented by mirroring. If the configuration names a teacher, it evaluates each
//! batch. The rows of a batch are in the network's input format, so the teacher must read the same
//! format.

mod augment;
mod calibration;
pub(super) mod loss;
mod teacher;
pub(super) mod tensors;

#[cfg(test)]
pub(in crate::train) use augment::tests::batch;

use super::{Narrow, Objective, Term};
use crate::data::examples::PositionExamples;
use crate::data::loader::Batch;
use crate::encode::{InputFormat, SCALARS};
use crate::network::{
    ArchitectureConfig, Evaluator, Output, OutputSet, Outputs, Parameter, Pass, Positions, Weights,
};
use crate::torch;
use crate::train::config::{AugmentConfig, ConfigError, LossWeights, TrainConfig};
use crate::train::error::TrainError;
pub(super) use calibration::Calibration;
use loss::{Softening, loss_weights, terms, values};
use tch::{Device, Tensor};
use teacher::{Teacher, TeacherOutputs};
use tensors::{Targets, upload};

/// The objective of networks that evaluate positions.
#[derive(Debug)]
pub(in crate::train) struct PositionObjective {
    model: Box<dyn Evaluator>,
    device: Device,
    /// The input format.
    format: InputFormat,
    /// Indices of the words that the network reads in a row, i64; `None` if these are the row's
    /// first words.
    words: Option<Tensor>,
    /// The outputs that the network should compute.
    pub(super) wanted: OutputSet,
    softening: Softening,
    augment: AugmentConfig,
    teacher: Option<Teacher>,
}

/// Builds the network, without weights, for computing on `device`.
fn build(
    architecture: &ArchitectureConfig,
    device: Device,
) -> Result<Box<dyn Evaluator>, TrainError> {
    let architecture = architecture.build(device).map_err(ConfigError::from)?;
    Ok(architecture.into_evaluator()?)
}

/// Returns the outputs that a network computes during training.
pub(super) fn learned_outputs(model: &dyn Evaluator, loss: &LossWeights) -> OutputSet {
    let is_learned = |output: &Output| match output {
        Output::PolicySoft => model.has(*output) && loss.policy_soft > 0.0,
        _ => model.has(*output),
    };
    Output::ALL.into_iter().filter(is_learned).collect()
}

/// Returns the indices of the bitboards and of these scalars in a row. Returns `None` if these are
/// the row's first words, because a network ignores any further words.
fn words_of(scalars: &[&str]) -> Option<Vec<i64>> {
    torch::words(scalars).filter(|_| !SCALARS.starts_with(scalars))
}

/// A batch of B positions on the device.
#[derive(Debug)]
pub(in crate::train) struct PositionSamples {
    /// The network's input rows, i64 [B, words].
    pub(super) rows: Tensor,
    pub(super) targets: Targets,
    teacher: Option<TeacherOutputs>,
}

impl PositionObjective {
    /// Returns the outputs for positions given by their rows; gradients can flow through them.
    pub(super) fn forward_rows(&self, weights: &Weights, rows: &Tensor) -> Outputs {
        let pass = Pass::new(Positions::Rows(rows), self.wanted);
        self.model.forward(weights, &pass)
    }
}

impl Narrow for PositionSamples {
    fn narrow(&self, start: i64, count: i64) -> PositionSamples {
        let teacher = self.teacher.as_ref();
        PositionSamples {
            rows: self.rows.narrow(0, start, count),
            targets: self.targets.narrow(start, count),
            teacher: teacher.map(|teacher| teacher.narrow(start, count)),
        }
    }
}

impl Objective for PositionObjective {
    type Examples = PositionExamples;
    type Samples = PositionSamples;
    type Outputs = Outputs;
    type Diagnostics = Calibration;

    fn terms(config: &TrainConfig) -> Vec<Term> {
        terms(&config.loss, config.distillation.as_ref())
    }

    fn new(config: &TrainConfig, device: Device) -> Result<PositionObjective, TrainError> {
        let plain = PositionObjective::for_validation(config, device)?;
        let kind = config.precision.kind();
        let load = |teacher| Teacher::load(teacher, config.code, plain.format, device, kind);
        let teacher = config.distillation.as_ref().map(load).transpose()?;
        Ok(PositionObjective {
            augment: match plain.format.is_canonical() {
                // In canonical formats, a position and its mirror image have the same row.
                true => AugmentConfig::default(),
                false => config.augment.clone(),
            },
            teacher,
            ..plain
        })
    }

    fn for_validation(
        config: &TrainConfig,
        device: Device,
    ) -> Result<PositionObjective, TrainError> {
        let model = build(&config.architecture()?, device)?;
        let interface = model.interface();
        let format = InputFormat::from_number(interface.format);
        let words = words_of(&interface.scalars);
        Ok(PositionObjective {
            format: format.ok_or(TrainError::Format(interface.format))?,
            words: words.map(|words| Tensor::from_slice(&words).to_device(device)),
            wanted: learned_outputs(&*model, &config.loss),
            model,
            device,
            softening: Softening::of(&config.loss, config.distillation.as_ref()),
            augment: AugmentConfig::default(),
            teacher: None,
        })
    }

    fn replica(&self) -> Result<PositionObjective, TrainError> {
        Ok(PositionObjective {
            model: build(&self.model.config(), self.device)?,
            words: self.words.as_ref().map(Tensor::shallow_clone),
            augment: self.augment.clone(),
            teacher: self.teacher.as_ref().map(Teacher::share),
            ..*self
        })
    }

    fn examples(&self, config: &TrainConfig) -> PositionExamples {
        PositionExamples {
            format: self.format,
            variations: config.data.variations(),
        }
    }

    fn parameters(&self) -> &[Parameter] {
        self.model.parameters()
    }

    fn prepare(&self, mut batch: Batch) -> Result<(PositionSamples, Tensor), TrainError> {
        self.augment.apply(&mut batch);
        let (rows, targets) = upload(&batch.columns, self.device);
        let teacher = self.teacher.as_ref();
        let teacher = teacher.map(|teacher| teacher.evaluate(&rows, &targets));
        let teacher = teacher.transpose()?;
        let loss_weights = loss_weights(&targets, teacher.as_ref(), self.wanted);
        let samples = PositionSamples {
            rows: match &self.words {
                Some(words) => rows.index_select(1, words),
                None => rows,
            },
            targets,
            teacher,
        };
        Ok((samples, loss_weights))
    }

    fn forward(&self, weights: &Weights, samples: &PositionSamples) -> Outputs {
        self.forward_rows(weights, &samples.rows)
    }

    fn values(&self, outputs: &Outputs, samples: &PositionSamples) -> Vec<Tensor> {
        let teacher = samples.teacher.as_ref();
        values(outputs, &samples.targets, teacher, self.softening)
    }
}
