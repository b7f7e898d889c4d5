//! A Chessformer's sizes, as configuration files state them.

use crate::network::removed::only_left;
use crate::serde_default::number;
use serde::{Deserialize, Deserializer, Serialize};

/// The normalisation in a network's layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormKind {
    /// Root mean square, without centring or bias, as in the paper.
    #[default]
    Rms,
    /// Layer norm with bias, as in GPT-2, which Lc0's native format can express.
    Layer,
}

/// The position encoding of attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum PositionConfig {
    /// A learned vector added to each token before every attention (eq. 4).
    Absolute,
    /// A learned bias for each head and displacement (eq. 5, in two dimensions).
    Relative,
    /// Learned vectors for each displacement, added to queries, keys and values
    /// (Shaw et al.; eq. 6 and 7).
    Shaw,
    /// A bias [heads, 64, 64] generated from the whole board (GAB, smolgen).
    Gab {
        /// Features kept per square.
        compress: i64,
        /// Width of the board summary.
        hidden: i64,
        /// Width of the vector from which each head's 64 × 64 biases are generated. All layers
        /// share the generating weights.
        generator: i64,
    },
}

impl Default for PositionConfig {
    fn default() -> PositionConfig {
        PositionConfig::Gab {
            compress: 8,
            hidden: 64,
            generator: 32,
        }
    }
}

/// The embedding of 112 features per square into a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum EmbeddingConfig {
    /// One projection, shared by all squares.
    #[default]
    Token,
    /// The token also includes features of the whole board, which one dense layer computes from the
    /// 12 × 64 piece planes. A feed-forward block follows the projection.
    Global {
        /// Number of features of the whole board that each square receives.
        board: i64,
        /// Width of the feed-forward block.
        feed_forward: i64,
    },
}

/// A network's architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Number of encoder layers.
    pub layers: i64,
    /// Width of a token.
    pub width: i64,
    /// Number of attention heads, which must divide the width.
    pub heads: i64,
    /// Width of the feed-forward blocks.
    pub feed_forward: i64,
    /// The normalisation of encoder layers.
    #[serde(default)]
    pub norm: NormKind,
    /// The position encoding of attention; by default `gab` with the smallest preset's sizes.
    #[serde(default)]
    pub position: PositionConfig,
    /// The embedding of features into tokens.
    #[serde(default)]
    pub embedding: EmbeddingConfig,
    /// Whether each square also receives features computed by the rules: the number of attackers of
    /// each kind, and the squares from which the kings can be attacked.
    #[serde(default)]
    pub attacks: bool,
    /// Whether attention has a bias for attacks between squares, with weights that each head
    /// learns.
    #[serde(default)]
    pub attack_bias: bool,
    /// Whether the network reads both players' ratings, as soft embeddings.
    #[serde(default)]
    pub elo: bool,
    /// Features per square that a value head reads (d_value in the paper).
    #[serde(default = "number::<32, _>")]
    pub value_features: i64,
    /// Width of a value head's hidden layer.
    #[serde(default = "number::<128, _>")]
    pub value_hidden: i64,
    /// Number of buckets into which the categorical value heads divide −1…1.
    #[serde(default = "number::<32, _>")]
    pub buckets: i64,
    /// Whether the network has a soft-policy head.
    #[serde(default = "default_soft_policy")]
    pub soft_policy: bool,
    /// Always `false`. Earlier versions had a head for KataGo's optimistic policy.
    #[serde(default, skip_serializing, deserialize_with = "optimistic_policy")]
    pub optimistic_policy: (),
}

fn optimistic_policy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    only_left(deserializer, "optimistic_policy", false)
}

fn default_soft_policy() -> bool {
    true
}

/// Why an architecture cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A size is zero or negative.
    #[error("model.{field} is {value}, but must be at least 1")]
    NotPositive {
        /// The field's name in the configuration.
        field: &'static str,
        /// The stated value.
        value: i64,
    },
    /// The heads do not divide the width.
    #[error("model.width ({width}) is not a multiple of model.heads ({heads})")]
    Heads {
        /// Width of a token.
        width: i64,
        /// Attention heads.
        heads: i64,
    },
    /// No preset has this name.
    #[error("there is no preset `{0}`; the presets are: {list}", list = PRESETS.join(", "))]
    Preset(String),
}

/// The named architectures.
pub const PRESETS: [&str; 6] = [
    "cf-1m-gab",
    "cf-2m-gab",
    "cf-6m-gab",
    "cf-6m-shaw",
    "cf-240m-gab",
    "cf-240m-shaw",
];

impl ModelConfig {
    /// Returns an architecture by name: the paper's two sizes, each with two position encodings,
    /// and smaller architectures.
    ///
    /// # Errors
    /// [`ConfigError::Preset`], which lists the presets.
    pub fn preset(name: &str) -> Result<ModelConfig, ConfigError> {
        let gab = |compress, hidden, generator| PositionConfig::Gab {
            compress,
            hidden,
            generator,
        };
        let model = |layers, width, heads, feed_forward, position| ModelConfig {
            layers,
            width,
            heads,
            feed_forward,
            norm: NormKind::Rms,
            position,
            embedding: EmbeddingConfig::Token,
            attacks: false,
            attack_bias: false,
            elo: false,
            value_features: 32,
            value_hidden: 128,
            buckets: 32,
            soft_policy: default_soft_policy(),
            optimistic_policy: (),
        };
        let global = |config| ModelConfig {
            embedding: EmbeddingConfig::Global {
                board: 512,
                feed_forward: 4096,
            },
            ..config
        };
        Ok(match name {
            "cf-1m-gab" => model(4, 128, 4, 128, gab(8, 64, 32)),
            "cf-2m-gab" => model(6, 192, 6, 192, gab(8, 96, 32)),
            "cf-6m-gab" => model(8, 256, 8, 256, gab(16, 128, 32)),
            "cf-6m-shaw" => model(8, 256, 8, 256, PositionConfig::Shaw),
            "cf-240m-gab" => global(model(15, 1024, 32, 4096, gab(32, 128, 128))),
            "cf-240m-shaw" => global(model(15, 1024, 32, 4096, PositionConfig::Shaw)),
            _ => return Err(ConfigError::Preset(name.to_owned())),
        })
    }

    /// Returns the width of one attention head.
    pub fn head_width(&self) -> i64 {
        self.width / self.heads
    }

    /// Checks that the sizes fit each other.
    ///
    /// # Errors
    /// [`ConfigError`] naming the field.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut sizes = vec![
            ("layers", self.layers),
            ("width", self.width),
            ("heads", self.heads),
            ("feed_forward", self.feed_forward),
            ("value_features", self.value_features),
            ("value_hidden", self.value_hidden),
            ("buckets", self.buckets),
        ];
        if let PositionConfig::Gab {
            compress,
            hidden,
            generator,
        } = self.position
        {
            sizes.push(("position.compress", compress));
            sizes.push(("position.hidden", hidden));
            sizes.push(("position.generator", generator));
        }
        if let EmbeddingConfig::Global {
            board,
            feed_forward,
        } = self.embedding
        {
            sizes.push(("embedding.board", board));
            sizes.push(("embedding.feed_forward", feed_forward));
        }
        if let Some(&(field, value)) = sizes.iter().find(|(_, value)| *value < 1) {
            return Err(ConfigError::NotPositive { field, value });
        }
        if self.width % self.heads != 0 {
            return Err(ConfigError::Heads {
                width: self.width,
                heads: self.heads,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_survive_toml_and_pass_their_check() {
        for name in PRESETS {
            let config = ModelConfig::preset(name).unwrap();
            config.check().unwrap();
            let text = toml::to_string(&config).unwrap();
            assert_eq!(toml::from_str::<ModelConfig>(&text).unwrap(), config);
        }
        let error = ModelConfig::preset("cf-7m").unwrap_err();
        assert!(error.to_string().contains("cf-6m-gab"));
    }

    #[test]
    fn sizes_that_do_not_fit_are_named() {
        let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
        config.heads = 5;
        assert!(
            config
                .check()
                .unwrap_err()
                .to_string()
                .contains("model.heads")
        );
        config.heads = 0;
        assert!(
            config
                .check()
                .unwrap_err()
                .to_string()
                .contains("model.heads")
        );
    }
}
