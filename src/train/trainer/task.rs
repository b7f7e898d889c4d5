//! The part of training that depends on the family: which objective it is.

use super::{Evaluation, Progress, RunOptions, Summary, Trainer};
use crate::network::ArchitectureConfig;
use crate::train::config::TrainConfig;
use crate::train::error::TrainError;
use crate::train::objective::{Games, Group, Horizon, Objective, Positions, Term, Unroll};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a trainer asks of its objective, whichever it is.
pub(super) trait Task: Debug + Send + Sync {
    /// The terms that it measures.
    fn terms(&self, config: &TrainConfig) -> Vec<Term>;

    /// Groups of them that are balanced.
    fn balanced(&self, config: &TrainConfig) -> Vec<Group>;

    /// As [`Trainer::run`].
    fn run(
        &self,
        trainer: &mut Trainer,
        options: &RunOptions,
        report: &mut dyn FnMut(&Progress),
    ) -> Result<Summary, TrainError>;

    /// As [`Trainer::evaluate`].
    fn evaluate(&self, trainer: &Trainer, threads: usize) -> Result<Evaluation, TrainError>;
}

/// The task of a family: here its objective is chosen, once.
pub(super) fn of(architecture: &ArchitectureConfig) -> Arc<dyn Task> {
    match architecture {
        ArchitectureConfig::Gpt { .. } => Arc::new(Of::<Games>(PhantomData)),
        ArchitectureConfig::Diffusion { .. } => Arc::new(Of::<Horizon>(PhantomData)),
        ArchitectureConfig::World { .. } => Arc::new(Of::<Unroll>(PhantomData)),
        ArchitectureConfig::Chessformer { .. }
        | ArchitectureConfig::Lc0 { .. }
        | ArchitectureConfig::Maia3 { .. } => Arc::new(Of::<Positions>(PhantomData)),
        #[cfg(test)]
        ArchitectureConfig::Toy { .. } => Arc::new(Of::<Positions>(PhantomData)),
    }
}

/// The task of an objective.
#[derive(Debug)]
struct Of<O>(PhantomData<fn() -> O>);

impl<O: Objective> Task for Of<O> {
    fn terms(&self, config: &TrainConfig) -> Vec<Term> {
        O::terms(config)
    }

    fn balanced(&self, config: &TrainConfig) -> Vec<Group> {
        O::balanced(config)
    }

    fn run(
        &self,
        trainer: &mut Trainer,
        options: &RunOptions,
        report: &mut dyn FnMut(&Progress),
    ) -> Result<Summary, TrainError> {
        trainer.run_with::<O>(options, report)
    }

    fn evaluate(&self, trainer: &Trainer, threads: usize) -> Result<Evaluation, TrainError> {
        trainer.evaluate_with::<O>(threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::chessformer::ModelConfig;
    use crate::network::maia3::Maia3Config;
    use tch::Device;

    /// The table of the families says which of them are trained.
    #[test]
    fn families_are_trained_as_their_table_says() {
        let table = include_str!("../../network.rs");
        let chessformer = ArchitectureConfig::Chessformer {
            model: ModelConfig::preset("cf-1m-gab").unwrap(),
        };
        let maia3 = ArchitectureConfig::Maia3 {
            model: Maia3Config::preset("maia3-3m").unwrap(),
        };
        let gpt = toml::from_str(
            "family = \"gpt\"\n[model]\nlayers = 1\nwidth = 8\nheads = 1\nfeed_forward = 8",
        )
        .unwrap();
        for (family, architecture) in [("Chessformer", chessformer), ("Maia3", maia3), ("Gpt", gpt)]
        {
            let config = "name = \"x\"\nsteps = 1\nbatch = 1\npreset = \"cf-1m-gab\"\n[data]";
            let config: TrainConfig = toml::from_str(config).unwrap();
            let trainer = Trainer::new(&config.with_architecture(architecture), Device::Cpu);
            let row = table
                .lines()
                .find(|line| line.contains(&format!("| [`{family}`] |")));
            let trained = row.unwrap().rsplit('|').nth(1).unwrap().trim();
            assert_eq!(trainer.is_err(), trained.starts_with("no"), "{family}");
        }
    }
}
