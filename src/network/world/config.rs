//! Every size of a world model, as a configuration file states it.

use crate::network::chessformer::{ConfigError, ModelConfig};
use serde::{Deserialize, Serialize};

/// Most blocks of a step, and most steps that it looks back on.
const MOST: i64 = 1024;

/// A world model's architecture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorldConfig {
    /// The Chessformer that represents positions, and whose heads are read off every
    /// latent board.
    pub encoder: ModelConfig,
    /// Blocks of a step.
    #[serde(default = "default_blocks")]
    pub blocks: i64,
    /// Most steps, the new one included, that attention over time sees.
    #[serde(default = "default_context")]
    pub context: i64,
}

fn default_blocks() -> i64 {
    2
}

fn default_context() -> i64 {
    8
}

/// Why sizes make no world model.
#[derive(Debug, thiserror::Error)]
pub enum WorldConfigError {
    /// Those of the encoder do not fit each other.
    #[error("its encoder: {0}")]
    Encoder(#[from] ConfigError),
    /// A size is out of range.
    #[error("its {field} is {value}, but must be in 1…{MOST}")]
    OutOfRange {
        /// The field of [`WorldConfig`].
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// Attention over time turns features of heads in pairs.
    #[error("its encoder's width ({width}) is no even multiple of its heads ({heads})")]
    Heads {
        /// Width of a token.
        width: i64,
        /// Attention heads.
        heads: i64,
    },
}

impl WorldConfig {
    /// Layers of the encoder and blocks of a step.
    pub(in crate::network) fn layers(&self) -> i64 {
        self.encoder.layers.saturating_add(self.blocks)
    }

    /// Checks that there can be a network of these sizes.
    ///
    /// # Errors
    /// [`WorldConfigError`] naming the field.
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
