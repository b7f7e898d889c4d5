//! Validates: measures the terms on the validation games, with the averaged weights.

use super::task::with_objective;
use super::{Evaluation, Measurements, Trainer};
use crate::data::loader::{Cursor, Loader, Split};
use crate::train::error::TrainError;
use crate::train::learner::Learner;
use crate::train::objective::{Diagnostics, Objective};
use crate::train::threads::Threads;
use crate::train::window::{Averages, Window};
use serde_json::{Map, Value};

/// The result of a validation.
pub(super) struct Validation {
    pub averages: Averages,
    /// Additional metrics of the objective.
    pub diagnostics: Map<String, Value>,
}

impl Trainer {
    /// Evaluates the averaged weights on the validation games. `decoders` threads decode the games;
    /// each of the `threads` evaluates a part of every batch.
    pub(super) fn validate<O: Objective>(
        &self,
        decoders: usize,
        threads: &Threads,
    ) -> Result<Validation, TrainError> {
        let _guard = tch::no_grad_guard();
        let mut window = Window::new(self.terms.len(), self.device);
        let mut diagnostics = O::Diagnostics::new(self.device);
        let learner = |_| {
            let objective = O::for_validation(&self.config, self.device)?;
            let mut learner = Learner::new(&self.config, objective, self.device);
            learner.objective.begin(self.step, &self.average);
            Ok(learner)
        };
        let learners: Result<Vec<Learner<O>>, TrainError> =
            (0..threads.count()).map(learner).collect();
        let mut learners = learners?;
        let batches = Loader::for_rank(
            learners[0].objective.examples(&self.config),
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
            let items = learners.iter_mut().zip(parts);
            let items = items.map(|(learner, part)| (learner, part, self.average.shallow_clone()));
            let measured = threads.map(items.collect(), |(learner, part, average)| {
                let _guard = tch::no_grad_guard();
                let prepared = learner.prepare(part)?;
                let (outputs, losses) = learner.evaluate(&average, &prepared);
                Ok::<_, TrainError>((prepared, outputs, losses))
            });
            for part in measured {
                let (prepared, outputs, losses) = part?;
                diagnostics.add(&outputs, &prepared.samples);
                let targets = (&prepared.target_weight, &prepared.target_count);
                window.add(&losses, targets, &losses.total);
            }
            if window.samples >= self.config.validation_samples {
                break;
            }
        }
        Ok(Validation {
            averages: window.close(&self.world)?.averages,
            diagnostics: diagnostics.finish(&self.world)?,
        })
    }

    /// Runs the same validation as a training run.
    ///
    /// # Errors
    /// [`TrainError`] if the data cannot be read.
    pub fn evaluate(&self, threads: usize) -> Result<Evaluation, TrainError> {
        with_objective!(self.task, O => self.evaluate_with::<O>(threads))
    }

    /// Implements [`Trainer::evaluate`] for this objective.
    fn evaluate_with<O: Objective>(&self, threads: usize) -> Result<Evaluation, TrainError> {
        let validation = self.validate::<O>(threads, &self.threads(threads)?)?;
        Ok(Evaluation {
            terms: self.by_name(&validation.averages),
            diagnostics: validation.diagnostics,
        })
    }

    /// Returns the average of each term with its name.
    pub(super) fn by_name(&self, averages: &Averages) -> Measurements {
        let names = self.terms.iter().map(|term| term.name);
        names.zip(averages.iter().copied()).collect()
    }
}
