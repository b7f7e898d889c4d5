//! The objective of networks that evaluate positions: policy, values and moves left.
//!
//! A batch is augmented by mirroring and evaluated by the teacher if there is one.

mod augment;
mod calibration;
mod loss;
mod teacher;
mod tensors;

#[cfg(test)]
pub(in crate::train) use augment::tests::batch;
pub use teacher::TeacherError;

use super::{Narrow, Objective, Term};
use crate::data::examples;
use crate::data::loader::Batch;
use crate::encode::InputFormat;
use crate::network::{
    Architecture, ArchitectureConfig, Output, OutputSet, Outputs, Parameter, Tap, Weights,
};
use crate::train::config::{AugmentConfig, ConfigError, TrainConfig};
use crate::train::error::TrainError;
use calibration::Calibration;
use loss::{Softening, loss_weights, terms, values};
use tch::{Device, Tensor};
use teacher::{Teacher, TeacherOutputs};
use tensors::{Targets, upload};

/// What a network that evaluates positions learns.
#[derive(Debug)]
pub(in crate::train) struct Positions {
    architecture: ArchitectureConfig,
    model: Box<dyn Architecture>,
    device: Device,
    /// The outputs that the network is to compute.
    wanted: OutputSet,
    softening: Softening,
    augment: AugmentConfig,
    teacher: Option<Teacher>,
}

/// B positions on the device.
#[derive(Debug)]
pub(in crate::train) struct PositionSamples {
    /// i64 [B, WIDTH].
    rows: Tensor,
    targets: Targets,
    teacher: Option<TeacherOutputs>,
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

impl Objective for Positions {
    type Examples = examples::Positions;
    type Samples = PositionSamples;
    type Outputs = Outputs;
    type Diagnostics = Calibration;

    fn terms(config: &TrainConfig) -> Vec<Term> {
        terms(&config.loss, config.distillation.as_ref())
    }

    fn new(config: &TrainConfig, device: Device) -> Result<Positions, TrainError> {
        let kind = config.precision.kind();
        let teacher = config.distillation.as_ref();
        let teacher = teacher.map(|teacher| Teacher::load(teacher, config.code, device, kind));
        Ok(Positions {
            augment: config.augment.clone(),
            teacher: teacher.transpose()?,
            ..Positions::for_validation(config, device)?
        })
    }

    fn for_validation(config: &TrainConfig, device: Device) -> Result<Positions, TrainError> {
        let architecture = config.architecture()?;
        let model = architecture.build(device).map_err(ConfigError::from)?;
        let is_wanted = |output: &Output| match output {
            Output::PolicySoft => config.loss.policy_soft > 0.0,
            _ => true,
        };
        let outputs = Output::ALL.into_iter().filter(|&it| model.has(it));
        Ok(Positions {
            wanted: outputs.filter(is_wanted).collect(),
            architecture,
            model,
            device,
            softening: Softening::of(&config.loss, config.distillation.as_ref()),
            augment: AugmentConfig::default(),
            teacher: None,
        })
    }

    fn replica(&self) -> Result<Positions, TrainError> {
        let model = self.architecture.build(self.device);
        Ok(Positions {
            architecture: self.architecture.clone(),
            model: model.map_err(ConfigError::from)?,
            augment: self.augment.clone(),
            teacher: self.teacher.as_ref().map(Teacher::share),
            ..*self
        })
    }

    fn examples(&self, config: &TrainConfig) -> examples::Positions {
        examples::Positions {
            format: InputFormat::Classical,
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
            rows,
            targets,
            teacher,
        };
        Ok((samples, loss_weights))
    }

    fn forward(&self, weights: &Weights, samples: &PositionSamples) -> Outputs {
        let rows = crate::network::Positions::Rows(&samples.rows);
        self.model
            .forward(weights, rows, self.wanted, &Tap::default())
    }

    fn values(&self, outputs: &Outputs, samples: &PositionSamples) -> Vec<Tensor> {
        values(outputs, samples, self.softening)
    }
}
