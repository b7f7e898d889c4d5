//! Validation: what the averaged weights make of games kept apart.

use super::{TrainError, Trainer};
use crate::data::loader::{Loader, Position, Split};
use crate::train::calibration::Calibration;
use crate::train::config::ConfigError;
use crate::train::lessons::Lessons;
use crate::train::loss::NAMES;
use crate::train::teacher::TeacherError;
use crate::train::threads::Threads;
use crate::train::window::{Averages, Window};
use serde_json::{Map, Value};

/// What a validation found.
pub(super) struct Validation {
    pub averages: Averages,
    pub calibration: Map<String, Value>,
}

impl Trainer {
    /// Losses of the averaged weights over the validation games, which `decoders`
    /// threads decode; each of the `threads` measures its part of every batch.
    pub(super) fn validate(
        &self,
        decoders: usize,
        threads: &Threads,
    ) -> Result<Validation, TrainError> {
        let _guard = tch::no_grad_guard();
        let mut window = Window::new(self.device);
        let mut calibration = Calibration::new(self.device);
        let lessons = |_| {
            let model = self.model.config().build(self.device);
            let model = model.map_err(ConfigError::from)?;
            Ok(Lessons::plain(&self.config, model, self.device))
        };
        let lessons: Result<Vec<Lessons>, TrainError> = (0..threads.count()).map(lessons).collect();
        let mut lessons = lessons?;
        let batches = Loader::sharing(
            &self.config.data,
            Split::Validation,
            self.config.batch,
            Position::default(),
            self.share(),
            decoders,
        )?;
        for batch in batches {
            let batch = batch?;
            window.count(batch.joint);
            let parts = batch.split(threads.count()).into_iter();
            let parts = parts.filter(|part| !part.is_empty());
            let items = lessons.iter_mut().zip(parts);
            let items = items.map(|(lessons, part)| (lessons, part, self.average.shallow_clone()));
            let measured = threads.map(items.collect(), |(lessons, part, average)| {
                let _guard = tch::no_grad_guard();
                let lesson = lessons.prepare(part)?;
                let (outputs, losses) = lessons.measure(&average, &lesson);
                Ok::<_, TeacherError>((lesson, outputs, losses))
            });
            for part in measured {
                let (lesson, outputs, losses) = part?;
                calibration.add(&outputs, &lesson.targets);
                let carriers = (&lesson.carried, &lesson.counts);
                window.add(&losses, carriers, &losses.total);
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

    /// Validates as a run does: each loss by name, where it had a target.
    ///
    /// # Errors
    /// [`TrainError`] if the data cannot be read.
    pub fn evaluate(&self, threads: usize) -> Result<Vec<(&'static str, Option<f64>)>, TrainError> {
        let validation = self.validate(threads, &self.threads(threads)?)?;
        Ok(NAMES.into_iter().zip(validation.averages).collect())
    }
}
