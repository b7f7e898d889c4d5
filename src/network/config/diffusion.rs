//! The sizes of a future denoiser.

use super::chessformer::{ConfigError, ModelConfig};
use crate::network::removed::only_left;
use crate::serde_default::number;
use serde::{Deserialize, Deserializer, Serialize};

/// Maximum number of plies that a network can look ahead.
pub const LONGEST_HORIZON: i64 = 7;

/// The sizes of a future denoiser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffusionConfig {
    /// Number of plies that the network looks ahead, up to [`LONGEST_HORIZON`]. With 0, only the
    /// trunk remains.
    #[serde(default = "number::<4, _>")]
    pub horizon: i64,
    /// Training weight of a square whose contents change, relative to a square that stays the same.
    /// At least 1. The weight biases the logits towards change, and decoding corrects this bias.
    #[serde(default = "number::<8, _>")]
    pub changed: i64,
    /// Whether the network evaluates candidate moves. If so, it is also trained on positions with a
    /// given first move, and in play it evaluates the consequences of candidates after its first
    /// evaluation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weighs: bool,
    /// The Chessformer whose layers process all boards.
    pub trunk: ModelConfig,
    /// Always `grid`. Earlier versions also had `sequence`.
    #[serde(default, skip_serializing, deserialize_with = "kind")]
    pub(in crate::network) kind: (),
    /// Always `absorbing`. Earlier versions also had `uniform`.
    #[serde(default, skip_serializing, deserialize_with = "noise")]
    pub(in crate::network) noise: (),
    /// Always `states+moves`. Earlier versions also had `states` and `moves`.
    #[serde(default, skip_serializing, deserialize_with = "futures")]
    pub(in crate::network) futures: (),
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    only_left(deserializer, "kind", "grid".to_owned())
}

fn noise<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    only_left(deserializer, "noise", "absorbing".to_owned())
}

fn futures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    only_left(deserializer, "futures", "states+moves".to_owned())
}

/// Why the sizes of a denoiser are invalid.
#[derive(Debug, thiserror::Error)]
pub enum DiffusionConfigError {
    /// The horizon is out of range.
    #[error("its horizon is {0}, but must be in 0…{LONGEST_HORIZON}")]
    Horizon(i64),
    /// The weight of changed squares is out of range.
    #[error("its weight of changed squares, `changed`, is {0}, but must be at least 1")]
    Changed(i64),
    /// The sizes of the trunk do not fit each other.
    #[error("its trunk: {0}")]
    Trunk(#[from] ConfigError),
}

impl DiffusionConfig {
    /// Checks the sizes outside the trunk.
    pub(in crate::network) fn check(&self) -> Result<(), DiffusionConfigError> {
        if !(0..=LONGEST_HORIZON).contains(&self.horizon) {
            return Err(DiffusionConfigError::Horizon(self.horizon));
        }
        if self.changed < 1 {
            return Err(DiffusionConfigError::Changed(self.changed));
        }
        Ok(())
    }
}
