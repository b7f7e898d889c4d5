//! The sizes of a Maia-3 network, its parameters, and what it costs.

use crate::encode::HISTORY;
use crate::model::Size;
use serde::{Deserialize, Serialize};

/// Kinds of pieces, ours and theirs: what a square of a board is told as.
pub(super) const PIECES: i64 = 12;
/// Kinds of pieces a pawn can become.
pub(super) const PROMOTIONS: i64 = 4;
/// Sizes beyond which no network goes, so that products of sizes fit.
const LARGEST: i64 = 1 << 16;
const DEEPEST: i64 = 1 << 10;

/// The published networks by the names of their files.
pub const PRESETS: [&str; 4] = ["maia3-3m", "maia3-5m", "maia3-23m", "maia3-79m"];

/// The sizes of a Maia-3 network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Maia3Config {
    /// Encoder layers.
    pub layers: i64,
    /// Width of a token.
    pub width: i64,
    /// Attention heads; they divide the width.
    pub heads: i64,
    /// Width of the feed-forward blocks.
    pub feed_forward: i64,
    /// Positions it reads, the current one included: 1…8.
    pub history: i64,
    /// Width of the embedding of a rating.
    pub rating: i64,
    /// Width of the heads' hidden layers, and of the squares that a move goes
    /// from and to.
    pub hidden: i64,
    /// How attention learns where the squares are.
    pub gab: GabConfig,
}

/// Sizes of the geometric attention bias.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GabConfig {
    /// Features of each square it reads; where there are none it reads the mean
    /// of all squares.
    pub compress: Option<i64>,
    /// Width of the summary of the board.
    pub hidden: i64,
    /// Width of what generates each head's biases.
    pub generator: i64,
}

/// Why sizes make no Maia-3 network.
#[derive(Debug, thiserror::Error)]
pub enum Maia3ConfigError {
    /// A size is out of range.
    #[error("its {field} is {value}, but must be in 1…{most}")]
    OutOfRange {
        /// The field of [`Maia3Config`].
        field: &'static str,
        /// Its value.
        value: i64,
        /// The most it may be.
        most: i64,
    },
    /// The heads do not divide the width.
    #[error("its width ({width}) is not a multiple of its heads ({heads})")]
    Heads {
        /// Width of a token.
        width: i64,
        /// Attention heads.
        heads: i64,
    },
}

impl Maia3Config {
    /// A published network's sizes, by its name.
    #[must_use]
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

    /// The name of the published network that has these sizes.
    #[must_use]
    pub fn preset_name(&self) -> Option<&'static str> {
        PRESETS
            .into_iter()
            .find(|name| Maia3Config::preset(name).as_ref() == Some(self))
    }

    /// Checks that there can be a network of these sizes.
    ///
    /// # Errors
    /// [`Maia3ConfigError`] naming the field.
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

    /// Features of a square that are not the players' ratings.
    pub(super) fn planes(&self) -> i64 {
        PIECES * self.history
    }

    /// Its parameters: the names that published checkpoints use, and shapes.
    #[must_use]
    pub fn parameters(&self) -> Vec<(String, Vec<i64>)> {
        let mut list = List::default();
        let (width, hidden) = (self.width, self.hidden);
        let inputs = self.planes() + 2 * self.rating;
        list.add("elo_embedding_low.weight", &[1, self.rating]);
        list.add("elo_embedding_high.weight", &[1, self.rating]);
        list.linear("token_projection", inputs, width);
        list.add("gab_shared_weight", &[64 * 64, self.gab.generator]);
        for layer in 0..self.layers {
            let path = format!("transformer.layers.{layer}");
            self.add_attention(&mut list, &format!("{path}.self_attn"));
            list.linear(&format!("{path}.linear1"), width, self.feed_forward);
            list.linear(&format!("{path}.linear2"), self.feed_forward, width);
            list.add(format!("{path}.norm1.weight"), &[width]);
            list.add(format!("{path}.norm2.weight"), &[width]);
        }
        list.norm("transformer.norm", width);
        list.norm("last_ln", width);
        list.linear("fc_value_hid", width, hidden);
        list.linear("fc_value", hidden, 3);
        list.linear("fc_ponder_hid", width, hidden);
        list.linear("fc_ponder", hidden, 1);
        list.add("proj_sq_from.weight", &[hidden, width]);
        list.add("proj_sq_to.weight", &[hidden, width]);
        list.add("promo_bias_proj.weight", &[PROMOTIONS, hidden]);
        list.0
    }

    fn add_attention(&self, list: &mut List, path: &str) {
        let (width, gab) = (self.width, &self.gab);
        let generated = self.heads * gab.generator;
        list.add(format!("{path}.mha.in_proj_weight"), &[3 * width, width]);
        list.add(format!("{path}.mha.out_proj.weight"), &[width, width]);
        let summarised = match gab.compress {
            Some(compress) => {
                list.linear(&format!("{path}.sm1"), width, compress);
                64 * compress
            }
            None => width,
        };
        list.linear(&format!("{path}.sm2"), summarised, gab.hidden);
        list.norm(&format!("{path}.ln1"), gab.hidden);
        list.linear(&format!("{path}.sm3"), gab.hidden, generated);
        list.norm(&format!("{path}.ln2"), generated);
    }

    /// How large a network of these sizes is.
    #[must_use]
    pub fn size(&self) -> Size {
        let count = |(_, shape): &(String, Vec<i64>)| shape.iter().product::<i64>();
        let parameters = self.parameters().iter().map(count).sum();
        let (width, hidden, gab) = (self.width, self.hidden, &self.gab);
        let layer = 64 * (4 * width * width + 2 * width * self.feed_forward);
        let moves = 2 * 64 * width * hidden;
        let main = self.layers * layer + moves;

        let embedding = 64 * self.planes() * width + 2 * self.rating * width;
        let products = 2 * 64 * 64 * width;
        let summary = match gab.compress {
            Some(compress) => 64 * compress * (width + gab.hidden),
            None => width * gab.hidden,
        };
        let generated = self.heads * gab.generator;
        let biases = summary + gab.hidden * generated + generated * 64 * 64;
        let pairs = 64 * 64 * hidden + 8 * PROMOTIONS * hidden;
        let value = width * hidden + 3 * hidden;
        let other = embedding + self.layers * (products + biases) + pairs + value;
        Size {
            parameters,
            macs: main,
            macs_total: main + other,
        }
    }
}

/// Parameters as they are listed.
#[derive(Default)]
struct List(Vec<(String, Vec<i64>)>);

impl List {
    fn add(&mut self, name: impl Into<String>, shape: &[i64]) {
        self.0.push((name.into(), shape.to_vec()));
    }

    fn linear(&mut self, path: &str, input: i64, output: i64) {
        self.add(format!("{path}.weight"), &[output, input]);
        self.add(format!("{path}.bias"), &[output]);
    }

    fn norm(&mut self, path: &str, width: i64) {
        self.add(format!("{path}.weight"), &[width]);
        self.add(format!("{path}.bias"), &[width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_published_sizes() {
        let published = [3_152_964, 5_230_084, 22_936_580, 78_899_716];
        for (name, published) in PRESETS.into_iter().zip(published) {
            let config = Maia3Config::preset(name).unwrap();
            config.check().unwrap();
            assert_eq!(config.preset_name(), Some(name));
            assert_eq!(config.size().parameters, published);
            let json = serde_json::to_string(&config).unwrap();
            assert_eq!(serde_json::from_str::<Maia3Config>(&json).unwrap(), config);
        }
        assert!(Maia3Config::preset("maia3-4m").is_none());
    }

    /// Of the body, every parameter of a matrix is used once a square.
    #[test]
    fn the_cost_is_what_the_parameters_say() {
        let config = Maia3Config::preset("maia3-23m").unwrap();
        let dense = |name: &str| {
            let body = ["in_proj", "out_proj", "linear1", "linear2", "proj_sq_"];
            body.iter().any(|part| name.contains(part)) && name.ends_with("weight")
        };
        let counted: i64 = config
            .parameters()
            .iter()
            .filter(|(name, _)| dense(name))
            .map(|(_, shape)| 64 * shape.iter().product::<i64>())
            .sum();
        assert_eq!(config.size().macs, counted);
        assert!(config.size().macs_total > counted);
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
        assert!(largest.size().macs_total > 0);
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
