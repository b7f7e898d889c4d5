//! What to load, as a training configuration says it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::data::replay::VariationWeight;

use super::LoaderError;

/// A shard, or a place where chunks lie, and how much of it to use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The shard; or a chunk, a tar of chunks or a folder of either.
    pub path: PathBuf,
    /// How often an epoch uses each of its samples: below 1 a share of them,
    /// which each epoch draws anew, above 1 some or all of them repeatedly.
    #[serde(default = "Source::whole")]
    pub rate: f64,
}

impl Source {
    fn whole() -> f64 {
        1.0
    }
}

/// Samples that surprise in place of those that go as expected: the positions
/// after blunders, the refutations. Lc0's trainer drops samples likewise (its
/// diff focus), by what the search changed in the network's view.
///
/// A sample whose value is S from what was expected of it (0 to 2, see
/// [`crate::data::label`]) is drawn with the probability least + slope · S, at
/// most 1; one of which that is not known always is. Validation is of all samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Focus {
    /// The share of the samples without any surprise that is drawn, above 0 and
    /// at most 1.
    pub least: f64,
    /// What is added for each unit of surprise, 0 or more.
    pub slope: f64,
}

impl Focus {
    /// The share of samples of such a surprise that is drawn.
    pub(super) fn share(self, surprise: Option<f32>) -> f64 {
        let share = |surprise: f32| self.least + self.slope * f64::from(surprise);
        surprise.map_or(1.0, share).min(1.0)
    }
}

/// What to train on: the part of a training configuration that this module
/// reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// The shards.
    pub shards: Vec<Source>,
    /// Chunks of Lc0, versions 6 and 7.
    pub chunks: Vec<Source>,
    /// Whether a record that cannot be used stops the training instead of
    /// being skipped and counted.
    pub strict: bool,
    /// Weight of a variation's first move, next to 1 for a game's own moves.
    pub variation_weight: f32,
    /// Factor on that weight for each further ply of the variation.
    pub variation_decay: f32,
    /// Draws fewer of the samples that do not surprise; without it, all. What an
    /// epoch and a group are said to hold is before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub focus: Option<Focus>,
    /// Share of the games kept for validation: by the hash of their moves, so
    /// that equal games always fall on the same side, and of chunks by that of
    /// their file names.
    pub validation: f64,
    /// How far the samples of a game lie apart: an epoch goes through all blocks
    /// so many times and takes another slice of every game's samples each time.
    /// Positions of one game share its result; many of them in a group let a
    /// network learn which game it looks at. Decoding costs as many times more,
    /// less what is skipped of each game. 1 takes games whole.
    pub spread: u32,
    /// Samples that are shuffled together. Two groups lie in memory at a time,
    /// at 1.2 to 1.6 kB a sample.
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
            focus: None,
            validation: 1.0 / 200.0,
            spread: 16,
            group: 1_000_000,
            seed: 0,
        }
    }
}

impl Sampling {
    /// Whether both draw the same samples in the same order: all that counts is
    /// equal, though files may have been moved to another folder.
    #[must_use]
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

    pub(super) fn variations(&self) -> VariationWeight {
        VariationWeight {
            first: self.variation_weight,
            decay: self.variation_decay,
        }
    }

    /// Whether batches can be made by these settings.
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
        if let Some(Focus { least, slope }) = self.focus {
            let is_share = least > 0.0 && least <= 1.0;
            settings.push(("focus.least", least, is_share, "above 0 and at most 1"));
            let is_slope = slope.is_finite() && slope >= 0.0;
            settings.push(("focus.slope", slope, is_slope, WEIGHT));
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
            shards: vec![Source {
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
