//! The part of training that depends on the family: which objective it is.

use super::{Measurements, Progress, RunOptions, Summary, Trainer};
use crate::network::Architecture;
use crate::train::config::TrainConfig;
use crate::train::error::TrainError;
use crate::train::objective::{Objective, Positions, Term};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a trainer asks of its objective, whichever it is.
pub(super) trait Task: Debug + Send + Sync {
    /// The terms that it measures.
    fn terms(&self, config: &TrainConfig) -> Vec<Term>;

    /// As [`Trainer::run`].
    fn run(
        &self,
        trainer: &mut Trainer,
        options: &RunOptions,
        report: &mut dyn FnMut(&Progress),
    ) -> Result<Summary, TrainError>;

    /// As [`Trainer::evaluate`].
    fn evaluate(&self, trainer: &Trainer, threads: usize) -> Result<Measurements, TrainError>;
}

/// The task of a network: here its objective is chosen, once.
pub(super) fn of(_model: &dyn Architecture) -> Arc<dyn Task> {
    Arc::new(Of::<Positions>(PhantomData))
}

/// The task of an objective.
#[derive(Debug)]
struct Of<O>(PhantomData<fn() -> O>);

impl<O: Objective> Task for Of<O> {
    fn terms(&self, config: &TrainConfig) -> Vec<Term> {
        O::terms(config)
    }

    fn run(
        &self,
        trainer: &mut Trainer,
        options: &RunOptions,
        report: &mut dyn FnMut(&Progress),
    ) -> Result<Summary, TrainError> {
        trainer.run_with::<O>(options, report)
    }

    fn evaluate(&self, trainer: &Trainer, threads: usize) -> Result<Measurements, TrainError> {
        trainer.evaluate_with::<O>(threads)
    }
}
