//! Configuration of data augmentation.

use serde::{Deserialize, Serialize};

/// Data augmentation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentConfig {
    /// Share of the positions without castling rights to mirror left to right, with
    /// their moves. Without castling the mirrored game has the same rules. In 0…1.
    pub mirror: f64,
    /// Seed of the random choice.
    pub seed: u64,
}
