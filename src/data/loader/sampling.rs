//! The `data` table of a training configuration, which determines what to load.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::data::replay::VariationWeight;

use super::LoaderError;

/// A source of samples, and how often an epoch uses each sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceConfig {
    /// The path of a shard, a chunk, a tar of chunks, or a folder of chunks and tars.
    pub path: PathBuf,
    /// Number of uses of each sample per epoch. A rate below 1 uses a random share of the samples,
    /// selected separately in each epoch. With a rate above 1, some or all samples are used
    /// repeatedly.
    #[serde(default = "SourceConfig::whole")]
    pub rate: f64,
}

impl SourceConfig {
    fn whole() -> f64 {
        1.0
    }
}

/// The `data` table of a training configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// The shards.
    pub shards: Vec<SourceConfig>,
    /// Lc0 chunks, versions 6 and 7.
    pub chunks: Vec<SourceConfig>,
    /// Whether an unusable record stops training instead of being skipped and counted.
    pub strict: bool,
    /// Weight of a variation's first move, compared with 1 for a game's own moves.
    pub variation_weight: f32,
    /// Factor applied to `variation_weight` for each further ply of the variation.
    pub variation_decay: f32,
    /// Share of the games that are held out for validation. Games in shards are selected by a hash
    /// of their moves, so that identical games are always in the same split; chunks are selected by
    /// a hash of their file names.
    pub validation: f64,
    /// Number of passes over all blocks per epoch, each with a different slice of every game's
    /// samples. More passes distribute the samples of a game over the epoch: if a group contained
    /// many of them, the network could recognise the game and recall its result. The cost of
    /// decoding grows by up to this factor. With 1, a pass uses all samples of each game.
    pub spread: u32,
    /// Number of samples that are shuffled together. Two such groups are in memory at a time, at
    /// 1.2 to 1.6 kB per sample.
    pub group: u64,
    /// Seed of every random choice.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling {
            shards: Vec::new(),
            chunks: Vec::new(),
            strict: false,
            variation_weight: 0.5,
            variation_decay: 0.95,
            validation: 1.0 / 200.0,
            spread: 16,
            group: 1_000_000,
            seed: 0,
        }
    }
}

impl Sampling {
    /// Returns whether both configurations select the same samples in the same order. The files may
    /// have moved to another folder.
    pub fn draws_like(&self, other: &Sampling) -> bool {
        let plain = |sampling: &Sampling| {
            let mut plain = sampling.clone();
            for source in plain.shards.iter_mut().chain(&mut plain.chunks) {
                source.path = source.path.file_name().unwrap_or_default().into();
            }
            plain.strict = false;
            plain
        };
        plain(self) == plain(other)
    }

    /// Returns the weight of positions in variations.
    pub fn variations(&self) -> VariationWeight {
        VariationWeight {
            first: self.variation_weight,
            decay: self.variation_decay,
        }
    }

    /// Checks the ranges of all settings.
    pub(super) fn check(&self, batch_size: usize) -> Result<(), LoaderError> {
        const POSITIVE: &str = "at least 1";
        const RATE: &str = "above 0 and at most 1000";
        const BELOW_ONE: &str = "at least 0 and below 1";
        const WEIGHT: &str = "a number of at least 0";
        const MAX_SPREAD: f64 = 1000.0;
        let size = batch_size as f64;
        let sources = (self.shards.len() + self.chunks.len()) as f64;
        let group = self.group as f64;
        let spread = f64::from(self.spread);
        let validation = self.validation;
        let mut settings = vec![
            ("the batch size", size, size >= 1.0, POSITIVE),
            (
                "the number of shards and chunks",
                sources,
                sources >= 1.0,
                POSITIVE,
            ),
            ("group", group, group >= 1.0, POSITIVE),
            (
                "spread",
                spread,
                (1.0..=MAX_SPREAD).contains(&spread),
                "between 1 and 1000",
            ),
            (
                "validation",
                validation,
                (0.0..1.0).contains(&validation),
                BELOW_ONE,
            ),
        ];
        for source in self.shards.iter().chain(&self.chunks) {
            let rate = source.rate;
            settings.push(("rate", rate, rate > 0.0 && rate <= 1000.0, RATE));
        }
        for (name, weight) in [
            ("variation_weight", self.variation_weight),
            ("variation_decay", self.variation_decay),
        ] {
            let is_weight = weight.is_finite() && weight >= 0.0;
            settings.push((name, weight.into(), is_weight, WEIGHT));
        }
        match settings.into_iter().find(|&(_, _, holds, _)| !holds) {
            None => Ok(()),
            Some((name, value, _, expected)) => Err(LoaderError::Setting {
                name,
                value,
                expected,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_with_defaults_and_without_tolerance() {
        let text =
            "seed = 3\n[[shards]]\npath = \"a.shard\"\n[[shards]]\npath = \"b.shard\"\nrate = 0.5";
        let sampling: Sampling = toml::from_str(text).unwrap();
        let rates: Vec<f64> = sampling.shards.iter().map(|source| source.rate).collect();
        assert_eq!((sampling.seed, rates), (3, vec![1.0, 0.5]));
        assert_eq!(sampling.group, Sampling::default().group);
        assert!(toml::from_str::<Sampling>("sed = 3").is_err());
    }

    #[test]
    fn shards_may_move_but_not_change() {
        let sampling = |path: &str, rate: f64| Sampling {
            shards: vec![SourceConfig {
                path: path.into(),
                rate,
            }],
            ..Sampling::default()
        };
        let here = sampling("here/a.shard", 1.0);
        assert!(here.draws_like(&sampling("there/a.shard", 1.0)));
        assert!(!here.draws_like(&sampling("here/b.shard", 1.0)));
        assert!(!here.draws_like(&sampling("here/a.shard", 0.5)));
    }
}
