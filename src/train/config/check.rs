//! Checks the ranges and combinations of a configuration's values.

use super::{OverrideError, TrainConfig, UnrollConfig, nearest};
use crate::network::ArchitectureError;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use tch::Device;
use wildmatch::WildMatch;

/// Why a configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a valid configuration.
    #[error("{path}: {}{}", .source.to_string().trim_end(), nearest::hint(.source.message()))]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The problem and its location.
        source: Box<toml::de::Error>,
    },
    /// An override on the command line is invalid.
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// The file is not a valid configuration once its overrides are applied.
    #[error("{key}: {reason}{}", nearest::hint(.reason))]
    Key {
        /// The key.
        key: String,
        /// The problem.
        reason: String,
    },
    /// More or fewer than one of `preset`, `model` and `network` are set.
    #[error(
        "a run needs either `preset = \"cf-6m-gab\"`, a [model] or a [network] table, or the `init` \
         of a network to continue from, and not several"
    )]
    Architecture,
    /// The architecture cannot be taken from `init`.
    #[error("cannot take the architecture from {path}: {reason}")]
    Init {
        /// The network that `init` names.
        path: PathBuf,
        /// The network's problem.
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
    Zero(String),
    /// A number is out of its range.
    #[error("`{name}` is {value}, but must be {expected}")]
    Range {
        /// The key.
        name: String,
        /// The key's value.
        value: f64,
        /// The constraint.
        expected: &'static str,
    },
    /// All loss weights are 0.
    #[error("all weights under [loss] are 0: there is nothing to learn")]
    NothingToLearn,
    /// A pattern matches no parameter.
    #[error("no parameter matches `{0}`: `tessera-train size --parameters` lists them")]
    Pattern(String),
}

/// Rejects NaN and infinite numbers. Checkpoints store the configuration as JSON, which has
/// neither.
pub(in crate::train) fn refuse_infinite(table: &toml::Table) -> Result<(), ConfigError> {
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
            reason: format!("is {number}, which is not a finite number"),
        }),
    }
}

impl TrainConfig {
    /// Checks ranges and combinations of keys.
    ///
    /// # Errors
    /// [`ConfigError`], naming the key.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.name.trim().is_empty() {
            return Err(ConfigError::NoName);
        }
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

    /// Checks that at least one loss has a weight.
    fn check_losses(&self) -> Result<(), ConfigError> {
        let numbers = numbers_of(&self.loss);
        let mut weights = numbers.iter().filter(|(key, _)| key != "label_smoothing");
        match self.distillation.is_some() || weights.any(|&(_, weight)| weight > 0.0) {
            true => Ok(()),
            false => Err(ConfigError::NothingToLearn),
        }
    }

    fn check_ranges(&self) -> Result<(), ConfigError> {
        for (key, value) in numbers_of(self) {
            let rule = RULES
                .iter()
                .find(|(keys, _)| WildMatch::new(keys).matches(&key));
            let Some((_, rule)) = rule else { continue };
            match rule.expected() {
                _ if rule.holds(value) => {}
                None => return Err(ConfigError::Zero(key)),
                Some(expected) => {
                    return Err(ConfigError::Range {
                        name: key,
                        value,
                        expected,
                    });
                }
            }
        }
        match self.accumulate <= self.batch {
            true => Ok(()),
            false => Err(ConfigError::Range {
                name: "accumulate".to_owned(),
                value: self.accumulate as f64,
                expected: "at most `batch`",
            }),
        }
    }
}

/// A constraint on a number.
#[derive(Clone, Copy)]
enum Rule {
    /// An integer of at least 1.
    Count,
    Share,
    BelowOne,
    Positive,
    Weight,
    Plies,
}

use Rule::{BelowOne, Count, Plies, Positive, Share, Weight};

/// The rules by key; the first match applies.
const RULES: [(&str, Rule); 34] = [
    ("steps", Count),
    ("batch", Count),
    ("accumulate", Count),
    ("log_every", Count),
    ("validate_every", Count),
    ("validation_samples", Count),
    ("checkpoint_every", Count),
    ("keep.newest", Count),
    ("average.every", Count),
    ("average.most", Count),
    ("average.decay", BelowOne),
    ("augment.seed", Weight),
    ("augment.*", Share),
    ("diffusion.own_steps", Count),
    ("diffusion.unknown", Share),
    ("diffusion.own", Share),
    ("diffusion.told", Share),
    ("diffusion.*", Weight),
    ("distillation.temperature", Positive),
    ("distillation.*", Weight),
    ("loss.label_smoothing", BelowOne),
    ("loss.*", Weight),
    ("optimizer.beta1", BelowOne),
    ("optimizer.beta2", BelowOne),
    ("optimizer.muon_momentum", BelowOne),
    ("optimizer.epsilon", Positive),
    ("optimizer.soap_frequency", Count),
    ("optimizer.*", Weight),
    ("schedule.peak", Weight),
    ("schedule.shape.decay", Share),
    ("schedule.shape.last", Share),
    ("schedule.shape.drops", Weight),
    ("unroll.plies", Plies),
    ("unroll.*", Weight),
];

impl Rule {
    fn holds(self, value: f64) -> bool {
        match self {
            Count => value >= 1.0,
            Share => (0.0..=1.0).contains(&value),
            BelowOne => (0.0..1.0).contains(&value),
            Positive => value.is_finite() && value > 0.0,
            Weight => value.is_finite() && value >= 0.0,
            Plies => (1.0..=UnrollConfig::MOST as f64).contains(&value),
        }
    }

    /// Returns the allowed range, for error messages, or `None` for counts.
    fn expected(self) -> Option<&'static str> {
        match self {
            Count => None,
            Share => Some("at least 0 and at most 1"),
            BelowOne => Some("at least 0 and below 1"),
            Positive => Some("above 0"),
            Weight => Some("a number of at least 0"),
            Plies => Some("at least 1 and at most 16"),
        }
    }
}

/// Returns all numbers in a configuration with their keys; the numbers in a list have the list's
/// key.
fn numbers_of(config: &impl Serialize) -> Vec<(String, f64)> {
    fn add(key: &str, value: &Value, found: &mut Vec<(String, f64)>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| match key {
                "" => add(name, value, found),
                key => add(&format!("{key}.{name}"), value, found),
            }),
            Value::Array(values) => values.iter().for_each(|value| add(key, value, found)),
            Value::Number(number) => {
                found.push((key.to_owned(), number.as_f64().unwrap_or(f64::NAN)));
            }
            // serde_json converts NaN to null.
            Value::Null => found.push((key.to_owned(), f64::NAN)),
            Value::Bool(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    let config = serde_json::to_value(config).expect("plain data");
    add("", &config, &mut found);
    found
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
