//! Checks of a configuration beyond its types.

use super::{AverageConfig, OverrideError, ScheduleShape, TrainConfig, UnrollConfig, nearest};
use crate::network::ArchitectureError;
use std::path::PathBuf;
use tch::Device;
use wildmatch::WildMatch;

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
    /// The file is not a valid configuration.
    #[error("{path}: {}{}", .source.to_string().trim_end(), nearest::hint(.source.message()))]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        source: Box<toml::de::Error>,
    },
    /// An override on the command line is invalid.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// The file with its overrides is not a valid configuration.
    #[error("{key}: {reason}{}", nearest::hint(.reason))]
    Key {
        /// Where it shows.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// Several or none of `preset`, `model` and `network` are set.
    #[error(
        "a run needs either `preset = \"cf-6m-gab\"`, a [model] or a [network] table, or the `init` \
         of a network that it goes on with, and not several"
    )]
    Architecture,
    /// The architecture cannot be taken from `init`.
    #[error("cannot take the architecture from {path}: {reason}")]
    Init {
        /// What `init` names.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The architecture is invalid.
    #[error(transparent)]
    Model(#[from] ArchitectureError),
    /// The run has no name.
    #[error("`name` is empty: it names the run's network and folder")]
    NoName,
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
    /// All loss weights are 0.
    #[error("all weights under [loss] are 0: there is nothing to learn")]
    NothingToLearn,
    /// A pattern matches no parameter.
    #[error("no parameter matches `{0}`: `train describe --parameters` lists them")]
    Pattern(String),
}

/// Refuses NaN and infinite numbers: files of JSON, as checkpoints have, hold
/// neither infinity nor NaN.
pub(super) fn refuse_infinite(table: &toml::Table) -> Result<(), ConfigError> {
    fn infinite(key: String, value: &toml::Value) -> Option<(String, f64)> {
        match value {
            toml::Value::Float(number) if !number.is_finite() => Some((key, *number)),
            toml::Value::Array(values) => values
                .iter()
                .enumerate()
                .find_map(|(number, value)| infinite(format!("{key}.{number}"), value)),
            toml::Value::Table(table) => table
                .iter()
                .find_map(|(name, value)| infinite(format!("{key}.{name}"), value)),
            _ => None,
        }
    }
    let found = table
        .iter()
        .find_map(|(name, value)| infinite(name.clone(), value));
    match found {
        None => Ok(()),
        Some((key, number)) => Err(ConfigError::Key {
            key,
            reason: format!("is {number}, which is no finite number"),
        }),
    }
}

impl TrainConfig {
    /// Checks ranges and combinations of keys.
    ///
    /// # Errors
    /// [`ConfigError`], naming the field.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.name.trim().is_empty() {
            return Err(ConfigError::NoName);
        }
        self.check_counts()?;
        self.check_ranges()?;
        self.check_losses()?;
        let model = self.architecture()?.build(Device::Cpu)?;
        let decay = self.optimizer.decay.iter().map(|rule| &rule.pattern);
        let rates = self.optimizer.rates.iter().map(|rule| &rule.pattern);
        let mut patterns = self.frozen.iter().chain(decay).chain(rates);
        let names_nothing = |pattern: &&String| {
            let pattern = WildMatch::new(pattern);
            let mut parameters = model.parameters().iter();
            !parameters.any(|parameter| pattern.matches(&parameter.name))
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
            ("diffusion.own_steps", self.diffusion.own_steps as u64),
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

    /// Checks that some loss has a weight.
    fn check_losses(&self) -> Result<(), ConfigError> {
        let mut weights = self.loss.weights().into_iter().map(|(_, weight)| weight);
        match self.distillation.is_some() || weights.any(|weight| weight > 0.0) {
            true => Ok(()),
            false => Err(ConfigError::NothingToLearn),
        }
    }

    fn check_ranges(&self) -> Result<(), ConfigError> {
        const SHARE: &str = "at least 0 and at most 1";
        const BELOW_ONE: &str = "at least 0 and below 1";
        const POSITIVE: &str = "above 0";
        const WEIGHT: &str = "a number of at least 0";
        let is_weight = |value: f64| value.is_finite() && value >= 0.0;
        let below_one = |name, value: f64| (name, value, (0.0..1.0).contains(&value), BELOW_ONE);
        let weight = |name, value: f64| (name, value, is_weight(value), WEIGHT);
        let positive = |name, value: f64| {
            let holds = value.is_finite() && value > 0.0;
            (name, value, holds, POSITIVE)
        };
        let share = |name, value: f64| (name, value, (0.0..=1.0).contains(&value), SHARE);
        let (optimizer, schedule) = (&self.optimizer, &self.schedule);
        let mut values = vec![
            below_one("loss.label_smoothing", self.loss.label_smoothing),
            share("augment.mirror", self.augment.mirror),
            share("augment.hide_ratings", self.augment.hide_ratings),
            share("augment.random_moves", self.augment.random_moves),
            share("augment.hide_result", self.augment.hide_result),
            share("diffusion.unknown", self.diffusion.unknown),
            share("diffusion.own", self.diffusion.own),
            share("diffusion.told", self.diffusion.told),
            below_one("optimizer.beta1", optimizer.beta1),
            below_one("optimizer.beta2", optimizer.beta2),
            below_one("optimizer.muon_momentum", optimizer.muon_momentum),
            positive("optimizer.epsilon", optimizer.epsilon),
            weight("optimizer.weight_decay", optimizer.weight_decay),
            weight("optimizer.clip_norm", optimizer.clip_norm),
            weight("schedule.peak", schedule.peak),
        ];
        match &schedule.shape {
            ScheduleShape::Stable { decay } => values.push(share("schedule.shape.decay", *decay)),
            ScheduleShape::Cosine { last } => values.push(share("schedule.shape.last", *last)),
            ScheduleShape::Stepped { drops } => {
                values.extend(
                    drops
                        .iter()
                        .map(|drop| weight("schedule.shape.drops", drop.1)),
                );
            }
        }
        let future = self.diffusion.weights();
        values.extend(future.map(|(name, value)| weight(name, value)));
        let plies = self.unroll.plies;
        let fits = (1..=UnrollConfig::MOST).contains(&plies);
        values.push(("unroll.plies", plies as f64, fits, UnrollConfig::PLIES));
        let losses = self.unroll.weights();
        values.extend(losses.map(|(name, value)| weight(name, value)));
        let losses = self.loss.weights();
        values.extend(losses.map(|(name, value)| weight(name, value)));
        let pieces = self.accumulate as f64;
        let fit = self.accumulate <= self.batch;
        values.push(("accumulate", pieces, fit, "at most `batch`"));
        if let AverageConfig::Exponential { decay } = self.average {
            values.push(below_one("average.decay", decay));
        }
        if let Some(distillation) = &self.distillation {
            let temperature = distillation.temperature;
            values.push(positive("distillation.temperature", temperature));
            values.extend([
                weight("distillation.policy", distillation.policy),
                weight("distillation.result", distillation.result),
                weight("distillation.q", distillation.q),
            ]);
        }
        for rule in &self.optimizer.rates {
            values.push(weight("optimizer.rates.factor", rule.factor));
        }
        for rule in &self.optimizer.decay {
            let decay = rule.weight_decay;
            values.push(weight("optimizer.decay.weight_decay", decay));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_none_are_refused_by_their_key() {
        for (text, refused) in [
            ("[guard]\ndeviations = inf", "guard.deviations: is inf"),
            ("[optimizer]\nrate = -inf", "optimizer.rate: is -inf"),
            (
                "[[data.shards]]\n[[data.shards]]\nrate = nan",
                "data.shards.1.rate: is NaN",
            ),
        ] {
            let error = refuse_infinite(&text.parse().unwrap()).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with(refused), "{error}");
        }
        refuse_infinite(&"steps = 3\nrate = 1e300".parse().unwrap()).unwrap();
    }

    #[test]
    fn a_run_needs_a_name() {
        let text = "name = ' '\nsteps = 1\nbatch = 1\npreset = \"cf-1m-gab\"\n[data]";
        let config: TrainConfig = toml::from_str(text).unwrap();
        assert!(matches!(config.check(), Err(ConfigError::NoName)));
    }
}
