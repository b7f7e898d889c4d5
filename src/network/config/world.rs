//! The sizes of a world model, in the form in which configuration files state them.

use super::chessformer::{ConfigError, ModelConfig};
use crate::serde_default::number;
use serde::{Deserialize, Serialize};

/// Maximum number of blocks per step, and maximum number of steps in the context.
const MOST: i64 = 1024;

/// Width of the token that represents a board, as a multiple of the encoder's width.
const TOKEN: i64 = 4;

/// The form of the latents that steps read and write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorldState {
    /// The encoder's 64 tokens. A step consists of layers like those of the encoder.
    #[default]
    Squares,
    /// One token, which is fused from the encoder's 64 tokens. A step is a transformer along time,
    /// as in STORM (Zhang et al. 2023) and UniZero (Pu et al. 2024).
    Token,
    /// The encoder's 64 tokens. A step is a diffusion transformer (Peebles and Xie 2023) that is
    /// conditioned on the move instead of on a noise level.
    Dit,
}

impl WorldState {
    /// Returns whether this is the default, which configurations may omit.
    fn is_default(&self) -> bool {
        *self == WorldState::default()
    }
}

/// A world model's architecture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldConfig {
    /// The Chessformer that encodes positions. Its heads also read the latent boards after steps.
    pub encoder: ModelConfig,
    /// The form of the latents.
    #[serde(default, skip_serializing_if = "WorldState::is_default")]
    pub state: WorldState,
    /// Number of blocks per step.
    #[serde(default = "number::<2, _>")]
    pub blocks: i64,
    /// Maximum number of steps to which attention over time attends, including the new step.
    #[serde(default = "number::<8, _>")]
    pub context: i64,
}

/// Why the sizes of a world model are invalid.
#[derive(Debug, thiserror::Error)]
pub enum WorldConfigError {
    /// The encoder's sizes do not fit each other.
    #[error("its encoder: {0}")]
    Encoder(#[from] ConfigError),
    /// A size is out of range.
    #[error("its {field} is {value}, but must be in 1…{MOST}")]
    OutOfRange {
        /// The field of [`WorldConfig`].
        field: &'static str,
        /// The field's value.
        value: i64,
    },
    /// The head width is odd, but attention over time rotates pairs of head features.
    #[error("its encoder's width ({width}) is not an even multiple of its heads ({heads})")]
    Heads {
        /// Width of a token.
        width: i64,
        /// Number of attention heads.
        heads: i64,
    },
}

impl WorldConfig {
    /// Returns the number of squares and the width of latents: 64 squares with the encoder's width,
    /// or one token that is four times as wide.
    pub fn latents(&self) -> [i64; 2] {
        let width = self.encoder.width;
        match self.state {
            WorldState::Squares | WorldState::Dit => [64, width],
            WorldState::Token => [1, TOKEN * width],
        }
    }

    /// Returns the total number of encoder layers and step blocks.
    pub(super) fn layers(&self) -> i64 {
        self.encoder.layers.saturating_add(self.blocks)
    }

    /// Checks that the sizes are valid.
    ///
    /// # Errors
    /// [`WorldConfigError`], which names the field.
    pub fn check(&self) -> Result<(), WorldConfigError> {
        self.encoder.check()?;
        for (field, value) in [("blocks", self.blocks), ("context", self.context)] {
            if !(1..=MOST).contains(&value) {
                return Err(WorldConfigError::OutOfRange { field, value });
            }
        }
        let ModelConfig { width, heads, .. } = self.encoder;
        match width % (2 * heads) {
            0 => Ok(()),
            _ => Err(WorldConfigError::Heads { width, heads }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> WorldConfig {
        toml::from_str(&format!(
            "{text}\n[encoder]\nlayers = 4\nwidth = 128\nheads = 4\nfeed_forward = 128\n\
             position = {{ kind = \"relative\" }}"
        ))
        .unwrap()
    }

    #[test]
    fn squares_are_what_is_not_said() {
        let plain = read("");
        assert_eq!(plain, read("state = \"squares\""));
        let written = serde_json::to_value(&plain).unwrap();
        let keys: Vec<&String> = written.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["blocks", "context", "encoder"]);
        for (name, latents) in [
            ("squares", [64, 128]),
            ("token", [1, 512]),
            ("dit", [64, 128]),
        ] {
            let config = read(&format!("state = \"{name}\""));
            config.check().unwrap();
            assert_eq!(config.latents(), latents);
            let text = serde_json::to_string(&config).unwrap();
            assert_eq!(text.contains(name), name != "squares");
            assert_eq!(serde_json::from_str::<WorldConfig>(&text).unwrap(), config);
        }
    }
}
