//! How samples are varied before they are learned.

use serde::{Deserialize, Serialize};

/// What is done to samples as they come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentConfig {
    /// Share of the positions without castling rights that are mirrored left
    /// to right, moves and all: the game is the same there. In 0…1.
    pub mirror: f64,
    /// Seed of the choice.
    pub seed: u64,
}
