//! The sizes of a Maia-3 network.

use crate::encode::HISTORY;
use serde::{Deserialize, Serialize};

/// Number of piece kinds, ours and theirs, in the encoding of a square.
pub(crate) const PIECES: i64 = 12;
/// Number of pieces that a pawn can promote to.
pub(in crate::network) const PROMOTIONS: i64 = 4;
/// Upper bound on every size, so that products of sizes do not overflow.
const LARGEST: i64 = 1 << 16;
const DEEPEST: i64 = 1 << 10;

/// The published networks by file name.
pub const PRESETS: [&str; 4] = ["maia3-3m", "maia3-5m", "maia3-23m", "maia3-79m"];

/// The sizes of a Maia-3 network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maia3Config {
    /// Number of encoder layers.
    pub layers: i64,
    /// Width of a token.
    pub width: i64,
    /// Number of attention heads, which must divide the width.
    pub heads: i64,
    /// Width of the feed-forward blocks.
    pub feed_forward: i64,
    /// Number of positions that the network reads, including the current one: 1…8.
    pub history: i64,
    /// Width of the rating embedding.
    pub rating: i64,
    /// Width of the heads' hidden layers, and of the embeddings of a move's origin and
    /// destination squares.
    pub hidden: i64,
    /// The position encoding of attention.
    pub gab: GabConfig,
}

/// Sizes of the geometric attention bias.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GabConfig {
    /// Number of features that GAB reads per square. If absent, it reads the mean of all squares.
    pub compress: Option<i64>,
    /// Width of the board summary.
    pub hidden: i64,
    /// Width of the vector that generates each head's biases.
    pub generator: i64,
}

/// Why the sizes of a Maia-3 network are invalid.
#[derive(Debug, thiserror::Error)]
pub enum Maia3ConfigError {
    /// A size is out of range.
    #[error("its {field} is {value}, but must be in 1…{most}")]
    OutOfRange {
        /// The field of [`Maia3Config`].
        field: &'static str,
        /// The field's value.
        value: i64,
        /// The maximum.
        most: i64,
    },
    /// The heads do not divide the width.
    #[error("its width ({width}) is not a multiple of its heads ({heads})")]
    Heads {
        /// Width of a token.
        width: i64,
        /// Number of attention heads.
        heads: i64,
    },
}

impl Maia3Config {
    /// Returns a published network's sizes, by its name.
    pub fn preset(name: &str) -> Option<Maia3Config> {
        let preset = |width, compress, hidden, generator| Maia3Config {
            layers: 8,
            width,
            heads: width / 32,
            feed_forward: 2 * width,
            history: HISTORY as i64,
            rating: 128,
            hidden: width,
            gab: GabConfig {
                compress,
                hidden,
                generator,
            },
        };
        Some(match name {
            "maia3-3m" => preset(192, None, 64, 64),
            "maia3-5m" => preset(256, None, 64, 64),
            "maia3-23m" => preset(512, Some(32), 128, 128),
            "maia3-79m" => preset(1024, Some(32), 128, 128),
            _ => return None,
        })
    }

    /// Returns the name of the published network with these sizes.
    pub fn preset_name(&self) -> Option<&'static str> {
        PRESETS
            .into_iter()
            .find(|name| Maia3Config::preset(name).as_ref() == Some(self))
    }

    /// Checks that the sizes are valid.
    ///
    /// # Errors
    /// [`Maia3ConfigError`], which names the field.
    pub fn check(&self) -> Result<(), Maia3ConfigError> {
        let generated = self.heads.saturating_mul(self.gab.generator);
        let sizes = [
            ("layers", self.layers, DEEPEST),
            ("width", self.width, LARGEST),
            ("heads", self.heads, LARGEST),
            ("feed_forward", self.feed_forward, LARGEST),
            ("history", self.history, HISTORY as i64),
            ("rating", self.rating, LARGEST),
            ("hidden", self.hidden, LARGEST),
            ("gab.compress", self.gab.compress.unwrap_or(1), LARGEST),
            ("gab.hidden", self.gab.hidden, LARGEST),
            ("gab.generator", self.gab.generator, LARGEST),
            ("product of heads and gab.generator", generated, LARGEST),
        ];
        for (field, value, most) in sizes {
            if !(1..=most).contains(&value) {
                return Err(Maia3ConfigError::OutOfRange { field, value, most });
            }
        }
        if self.width % self.heads != 0 {
            return Err(Maia3ConfigError::Heads {
                width: self.width,
                heads: self.heads,
            });
        }
        Ok(())
    }

    /// Returns the number of features per square, apart from the players' ratings.
    pub(in crate::network) fn planes(&self) -> i64 {
        PIECES * self.history
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Architecture, Maia3, Size};
    use tch::Device;

    fn size(config: &Maia3Config) -> Size {
        Maia3::new(config, Device::Cpu).unwrap().size()
    }

    #[test]
    fn presets_have_the_published_sizes() {
        let published = [3_152_964, 5_230_084, 22_936_580, 78_899_716];
        for (name, published) in PRESETS.into_iter().zip(published) {
            let config = Maia3Config::preset(name).unwrap();
            config.check().unwrap();
            assert_eq!(config.preset_name(), Some(name));
            assert_eq!(size(&config).parameters, published);
            let json = serde_json::to_string(&config).unwrap();
            assert_eq!(serde_json::from_str::<Maia3Config>(&json).unwrap(), config);
        }
        assert!(Maia3Config::preset("maia3-4m").is_none());
    }

    /// In the body, every matrix parameter is used once per square.
    #[test]
    fn the_cost_is_what_the_parameters_say() {
        let config = Maia3Config::preset("maia3-23m").unwrap();
        let dense = |name: &str| {
            let body = ["in_proj", "out_proj", "linear1", "linear2", "proj_sq_"];
            body.iter().any(|part| name.contains(part)) && name.ends_with("weight")
        };
        let network = Maia3::new(&config, Device::Cpu).unwrap();
        let parameters = network.parameters().iter();
        let counted: i64 = parameters
            .filter(|parameter| dense(&parameter.name))
            .map(|parameter| 64 * parameter.count())
            .sum();
        assert_eq!(size(&config).macs, counted);
        assert!(size(&config).macs_total > counted);
    }

    #[test]
    fn sizes_that_do_not_fit_are_named() {
        let good = Maia3Config::preset("maia3-5m").unwrap();
        let heads = Maia3Config {
            heads: 7,
            ..good.clone()
        };
        let history = Maia3Config {
            history: 9,
            ..good.clone()
        };
        let width = Maia3Config {
            width: 1 << 17,
            ..good.clone()
        };
        let layers = Maia3Config {
            layers: 1 << 40,
            ..good.clone()
        };
        let mut largest = good.clone();
        (largest.width, largest.heads, largest.gab.generator) = (1 << 16, 1 << 8, 1 << 8);
        (largest.layers, largest.feed_forward, largest.gab.hidden) = (1 << 10, 1 << 16, 1 << 16);
        largest.check().unwrap();
        assert!(size(&largest).macs_total > 0);
        let mut generator = largest;
        generator.gab.generator += 1;
        for (config, told) in [
            (heads, "heads (7)"),
            (layers, "layers is 1099511627776"),
            (generator, "product of heads and gab.generator is 65792"),
            (history, "history is 9, but must be in 1…8"),
            (width, "width is 131072"),
        ] {
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
