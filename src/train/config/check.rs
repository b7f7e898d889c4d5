//! What must hold of a configuration besides its types.

use super::{AverageConfig, OverrideError, TrainConfig, nearest};
use crate::model::{self, Chessformer};
use crate::train::pattern::matches;
use std::path::PathBuf;
use tch::Device;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not what a run is configured by.
    #[error("{path}: {}{}", .source.to_string().trim_end(), nearest::hint(.source.message()))]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        source: Box<toml::de::Error>,
    },
    /// A key cannot be set as the command line asks.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// The file together with what the command line sets is not what a run is
    /// configured by.
    #[error("{key}: {reason}{}", nearest::hint(.reason))]
    Key {
        /// Where it shows.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// Neither or both of `preset` and `model` are there.
    #[error("a run needs either `preset = \"cf-6m-gab\"` or a [model] table, and not both")]
    Architecture,
    /// The architecture does not fit together.
    #[error(transparent)]
    Model(#[from] model::ConfigError),
    /// A number must be at least 1.
    #[error("`{0}` must be at least 1")]
    Zero(&'static str),
    /// A number is out of its range.
    #[error("`{name}` is {value}, but must be {expected}")]
    Range {
        /// The key.
        name: &'static str,
        /// What it is.
        value: f64,
        /// What it must be.
        expected: &'static str,
    },
    /// A pattern names nothing.
    #[error("no parameter matches `{0}`: `train describe --parameters` lists them")]
    Pattern(String),
    /// The optimistic policy is half there.
    #[error(
        "`model.optimistic_policy` and a `loss.policy_optimistic` above 0 go together: \
         a head that learns nothing would be exported, and one that is not there cannot learn"
    )]
    Optimism,
}

impl TrainConfig {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// [`ConfigError`], naming the field.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_counts()?;
        self.check_ranges()?;
        let architecture = self.architecture()?;
        if architecture.optimistic_policy != (self.loss.policy_optimistic > 0.0) {
            return Err(ConfigError::Optimism);
        }
        let model = Chessformer::new(&architecture, Device::Cpu)?;
        let decay = self.optimizer.decay.iter().map(|rule| &rule.pattern);
        let mut patterns = self.frozen.iter().chain(decay);
        let names_nothing = |pattern: &&String| {
            let mut parameters = model.parameters().iter();
            !parameters.any(|parameter| matches(pattern, &parameter.name))
        };
        match patterns.find(names_nothing) {
            Some(pattern) => Err(ConfigError::Pattern(pattern.clone())),
            None => Ok(()),
        }
    }

    fn check_counts(&self) -> Result<(), ConfigError> {
        let mut counts = vec![
            ("steps", self.steps),
            ("batch", self.batch as u64),
            ("accumulate", self.accumulate as u64),
            ("log_every", self.log_every),
            ("validate_every", self.validate_every),
            ("validation_samples", self.validation_samples as u64),
            ("checkpoint_every", self.checkpoint_every),
            ("keep.newest", self.keep.newest as u64),
            ("optimizer.soap_frequency", self.optimizer.soap_frequency),
        ];
        if let AverageConfig::Stochastic { every, most } = self.average {
            counts.push(("average.every", every));
            counts.push(("average.most", most));
        }
        match counts.into_iter().find(|(_, count)| *count == 0) {
            Some((name, _)) => Err(ConfigError::Zero(name)),
            None => Ok(()),
        }
    }

    fn check_ranges(&self) -> Result<(), ConfigError> {
        const SHARE: &str = "at least 0 and at most 1";
        const BELOW_ONE: &str = "at least 0 and below 1";
        const POSITIVE: &str = "above 0";
        const WEIGHT: &str = "a number of at least 0";
        let is_weight = |value: f64| value.is_finite() && value >= 0.0;
        let (smoothing, mirror) = (self.loss.label_smoothing, self.augment.mirror);
        let mut values = vec![
            (
                "loss.label_smoothing",
                smoothing,
                (0.0..1.0).contains(&smoothing),
                BELOW_ONE,
            ),
            (
                "augment.mirror",
                mirror,
                (0.0..=1.0).contains(&mirror),
                SHARE,
            ),
        ];
        if let AverageConfig::Exponential { decay } = self.average {
            let holds = (0.0..1.0).contains(&decay);
            values.push(("average.decay", decay, holds, BELOW_ONE));
        }
        if let Some(distillation) = &self.distillation {
            let temperature = distillation.temperature;
            let holds = temperature.is_finite() && temperature > 0.0;
            values.push(("distillation.temperature", temperature, holds, POSITIVE));
            for (name, weight) in [
                ("distillation.policy", distillation.policy),
                ("distillation.result", distillation.result),
                ("distillation.q", distillation.q),
            ] {
                values.push((name, weight, is_weight(weight), WEIGHT));
            }
        }
        for rule in &self.optimizer.decay {
            let decay = rule.weight_decay;
            values.push((
                "optimizer.decay.weight_decay",
                decay,
                is_weight(decay),
                WEIGHT,
            ));
        }
        match values.into_iter().find(|&(_, _, holds, _)| !holds) {
            Some((name, value, _, expected)) => Err(ConfigError::Range {
                name,
                value,
                expected,
            }),
            None => Ok(()),
        }
    }
}
