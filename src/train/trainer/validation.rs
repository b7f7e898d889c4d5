//! Validation: losses of the averaged weights on the validation games.

use super::Trainer;
use crate::data::loader::{Cursor, Loader, Split};
use crate::train::calibration::Calibration;
use crate::train::config::ConfigError;
use crate::train::error::TrainError;
use crate::train::loss::NAMES;
use crate::train::objective::Objective;
use crate::train::teacher::TeacherError;
use crate::train::threads::Threads;
use crate::train::window::{Averages, Window};
use serde_json::{Map, Value};

/// Result of a validation.
pub(super) struct Validation {
    pub averages: Averages,
    pub calibration: Map<String, Value>,
}

impl Trainer {
    /// Evaluates the averaged weights on the validation games. `decoders` threads
    /// decode; each of the `threads` evaluates its part of every batch.
    pub(super) fn validate(
        &self,
        decoders: usize,
        threads: &Threads,
    ) -> Result<Validation, TrainError> {
        let _guard = tch::no_grad_guard();
        let mut window = Window::new(self.device);
        let mut calibration = Calibration::new(self.device);
        let objective = |_| {
            let model = self.model.config().build(self.device);
            let model = model.map_err(ConfigError::from)?;
            Ok(Objective::for_validation(&self.config, model, self.device))
        };
        let objectives: Result<Vec<Objective>, TrainError> =
            (0..threads.count()).map(objective).collect();
        let mut objectives = objectives?;
        let batches = Loader::for_rank(
            &self.config.data,
            Split::Validation,
            self.config.batch,
            Cursor::default(),
            self.shard(),
            decoders,
        )?;
        for batch in batches {
            let batch = batch?;
            window.count(batch.global_batch);
            let parts = batch.split(threads.count()).into_iter();
            let parts = parts.filter(|part| !part.is_empty());
            let items = objectives.iter_mut().zip(parts);
            let items =
                items.map(|(objective, part)| (objective, part, self.average.shallow_clone()));
            let measured = threads.map(items.collect(), |(objective, part, average)| {
                let _guard = tch::no_grad_guard();
                let prepared = objective.prepare(part)?;
                let (outputs, losses) = objective.evaluate(&average, &prepared);
                Ok::<_, TeacherError>((prepared, outputs, losses))
            });
            for part in measured {
                let (prepared, outputs, losses) = part?;
                calibration.add(&outputs, &prepared.targets);
                let targets = (&prepared.target_weight, &prepared.target_count);
                window.add(&losses, targets, &losses.total);
            }
            if window.samples() >= self.config.validation_samples {
                break;
            }
        }
        Ok(Validation {
            averages: window.close(&self.world)?.averages,
            calibration: calibration.finish(&self.world)?,
        })
    }

    /// Validates as a run does: the mean of each loss by name, `None` where no
    /// sample has its target.
    ///
    /// # Errors
    /// [`TrainError`] if the data cannot be read.
    pub fn evaluate(&self, threads: usize) -> Result<Vec<(&'static str, Option<f64>)>, TrainError> {
        let validation = self.validate(threads, &self.threads(threads)?)?;
        Ok(NAMES.into_iter().zip(validation.averages).collect())
    }
}
