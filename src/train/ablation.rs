//! Ablations: variants of one configuration, trained in the same way and compared.

mod table;

use super::config::{ConfigError, Override, TrainConfig};
use super::config_file::parse;
use super::history::History;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub use table::table;

/// An ablation, as described by its TOML file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ablation {
    /// The table's title.
    pub title: String,
    /// Names of the validation metrics in the table. Metrics whose names end in `accuracy` are
    /// shares in 0…1.
    pub metrics: Vec<String>,
    /// Minutes of training per variant. The number of steps, and with it the schedule, is derived
    /// from the variant's speed. If unset, all variants are trained for the same number of steps.
    pub minutes: Option<f64>,
    /// Source of the variants' reference values.
    pub source: Option<String>,
    /// The configuration that all variants start from.
    pub base: toml::Table,
    /// The variants. The table shows each variant's difference from the first one.
    pub variants: Vec<Variant>,
}

/// One of the compared configurations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The name of the variant and of its folder.
    pub name: String,
    /// The keys that differ from the base, with their values. A key is written like
    /// `"model.position"`.
    #[serde(default)]
    pub set: toml::Table,
    /// Published reference values, by metric.
    #[serde(default)]
    pub reference: BTreeMap<String, f64>,
}

/// Why an ablation cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum AblationError {
    /// The file or a variant's configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A variant's configuration is invalid.
    #[error("variant `{variant}`: {source}")]
    Variant {
        /// The variant.
        variant: String,
        /// The problem.
        source: ConfigError,
    },
    /// Two variants have the same name, or a name cannot be used for a folder.
    #[error("`{0}` cannot be a variant's name: each needs its own, of letters, digits, - and _")]
    Name(String),
    /// A metric or a list is missing.
    #[error("`{0}` is empty: an ablation needs at least one")]
    Empty(&'static str),
    /// `minutes` is not a positive number.
    #[error("minutes is {0}, but must be a positive number")]
    Minutes(f64),
}

/// The result of a variant.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The variant.
    pub variant: String,
    /// Number of the network's parameters.
    pub parameters: i64,
    /// The network's multiply–accumulates per evaluation.
    pub macs: i64,
    /// Number of steps taken.
    pub steps: u64,
    /// Number of samples seen.
    pub samples: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Metrics of the last validation, averaged over the seeds.
    pub measured: BTreeMap<String, f64>,
    /// These metrics for each seed.
    pub by_seed: BTreeMap<String, Vec<f64>>,
    /// Published reference values, by metric.
    pub reference: BTreeMap<String, f64>,
}

impl Row {
    /// Combines the results of one variant with several seeds. Returns `None` without any. The
    /// steps, samples and seconds are those of one run, on average.
    pub fn of_seeds(rows: Vec<Row>) -> Option<Row> {
        let count = rows.len();
        let seconds = rows.iter().map(|row| row.seconds).sum::<f64>() / count.max(1) as f64;
        let combined = rows.into_iter().reduce(|mut combined, row| {
            for (name, values) in row.by_seed {
                combined.by_seed.entry(name).or_default().extend(values);
            }
            combined
        })?;
        let measured = combined.by_seed.iter().map(|(name, values)| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (name.clone(), mean)
        });
        Some(Row {
            measured: measured.collect(),
            seconds,
            ..combined
        })
    }
}

impl Ablation {
    /// Reads an ablation file.
    ///
    /// # Errors
    /// [`AblationError`], naming the file and the problem.
    pub fn read(path: &Path) -> Result<Ablation, AblationError> {
        let ablation: Ablation = parse(path)?;
        ablation.check()?;
        Ok(ablation)
    }

    fn check(&self) -> Result<(), AblationError> {
        if self.metrics.is_empty() {
            return Err(AblationError::Empty("metrics"));
        }
        if self.variants.is_empty() {
            return Err(AblationError::Empty("variants"));
        }
        let mut seen = BTreeSet::new();
        for Variant { name, .. } in &self.variants {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            if name.is_empty() || !name.chars().all(is_plain) || !seen.insert(name) {
                return Err(AblationError::Name(name.clone()));
            }
        }
        match self.minutes {
            Some(minutes) if !(minutes > 0.0 && minutes.is_finite()) => {
                Err(AblationError::Minutes(minutes))
            }
            _ => Ok(()),
        }
    }

    /// Returns a variant's configuration: the base with the overrides in `sets` and then those of
    /// the variant applied.
    ///
    /// # Errors
    /// [`AblationError::Variant`], naming the key.
    pub fn config(
        &self,
        variant: &Variant,
        sets: &[Override],
    ) -> Result<TrainConfig, AblationError> {
        let own = variant.set.iter().map(|(key, value)| Override {
            key: key.clone(),
            value: value.clone(),
        });
        let sets: Vec<Override> = sets.iter().cloned().chain(own).collect();
        let read = TrainConfig::from_table(self.base.clone(), &sets);
        let mut config = read.map_err(|source| AblationError::Variant {
            variant: variant.name.clone(),
            source,
        })?;
        config.name = format!("{}-{}", config.name, variant.name);
        Ok(config)
    }

    /// Returns the result of a variant's run. Before the run's first validation, the result has no
    /// metrics.
    pub fn row(&self, variant: &Variant, parameters: i64, macs: i64, run: &History) -> Row {
        let (train, validation) = (run.last("train"), run.last("validation"));
        let number = |name: &str| train.and_then(|line| line[name].as_f64()).unwrap_or(0.0);
        let metrics = self.metrics.iter();
        let measured: BTreeMap<String, f64> = metrics
            .filter_map(|name| Some((name.clone(), validation?[name].as_f64()?)))
            .collect();
        let by_seed = measured
            .iter()
            .map(|(name, &value)| (name.clone(), vec![value]));
        Row {
            by_seed: by_seed.collect(),
            variant: variant.name.clone(),
            parameters,
            macs,
            steps: number("step") as u64,
            samples: number("samples") as u64,
            seconds: number("seconds"),
            measured,
            reference: variant.reference.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
title = "widths"
metrics = ["policy"]
[base]
name = "w"
preset = "cf-1m-gab"
steps = 10
batch = 2
data.shards = [{ path = "a.shard" }]
[[variants]]
name = "narrow"
[[variants]]
name = "wide"
set = { preset = "cf-6m-gab", "optimizer.beta1" = 0.8 }
reference = { policy = 0.5 }
"#;

    fn read(text: &str) -> Result<Ablation, AblationError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ablation.toml");
        std::fs::write(&path, text).unwrap();
        Ablation::read(&path)
    }

    #[test]
    fn variants_differ_from_the_base_as_they_say() {
        let ablation = read(FILE).unwrap();
        let sets = [
            "batch=4".parse().unwrap(),
            "optimizer.beta1=0.7".parse().unwrap(),
        ];
        let configs: Vec<TrainConfig> = ablation
            .variants
            .iter()
            .map(|variant| ablation.config(variant, &sets).unwrap())
            .collect();
        assert_eq!(configs[0].name, "w-narrow");
        assert_eq!(configs[1].preset.as_deref(), Some("cf-6m-gab"));
        assert!(configs.iter().all(|config| config.batch == 4));
        let betas: Vec<f64> = configs
            .iter()
            .map(|config| config.optimizer.beta1)
            .collect();
        assert_eq!(betas, [0.7, 0.8]);
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [
            (FILE.replace("\"wide\"", "\"narrow\""), "narrow"),
            (FILE.replace("\"wide\"", "\"../wide\""), "../wide"),
            (FILE.replace("[\"policy\"]", "[]"), "metrics"),
            (FILE.replace("metrics", "metric"), "did you mean `metrics`?"),
        ];
        for (text, named) in cases {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
        let ablation = read(&FILE.replace("optimizer.beta1", "optimizer.beta")).unwrap();
        let error = ablation.config(&ablation.variants[1], &[]).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("wide") && error.contains("optimizer.beta"),
            "{error}"
        );
    }

    #[test]
    fn the_papers_ablation_can_be_run() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("nets/configs/ablation.toml");
        let ablation = Ablation::read(&path).unwrap();
        let names: Vec<&str> = ablation.variants.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(
            names[..3],
            ["absolute", "relative", "shaw"],
            "the table's rows"
        );
        for variant in &ablation.variants {
            ablation.config(variant, &[]).unwrap();
        }
    }
}
