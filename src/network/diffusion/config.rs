//! The sizes of a denoiser of futures.

use crate::network::chessformer::{ConfigError, ModelConfig};
use crate::network::removed::only_left;
use serde::{Deserialize, Deserializer, Serialize};

/// Most plies that a network looks ahead.
pub const LONGEST_HORIZON: i64 = 7;

/// The sizes of a denoiser of futures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffusionConfig {
    /// Plies that it looks ahead, up to [`LONGEST_HORIZON`]. With 0 it is its trunk.
    #[serde(default = "default_horizon")]
    pub horizon: i64,
    /// The weight in training of a square that changes, relative to one that stays the same, at
    /// least 1. The weight makes the logits favour change, which decoding corrects.
    #[serde(default = "default_changed")]
    pub changed: i64,
    /// Whether it weighs candidates: it is given first moves in training, and evaluates their
    /// consequences after the first evaluation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weighs: bool,
    /// The Chessformer that every board goes through.
    pub trunk: ModelConfig,
    /// `grid`: earlier versions knew `sequence` too.
    #[serde(default, skip_serializing, deserialize_with = "kind")]
    pub(super) kind: (),
    /// `absorbing`: earlier versions knew `uniform` too.
    #[serde(default, skip_serializing, deserialize_with = "noise")]
    pub(super) noise: (),
    /// `states+moves`: earlier versions knew `states` and `moves` too.
    #[serde(default, skip_serializing, deserialize_with = "futures")]
    pub(super) futures: (),
}

fn default_horizon() -> i64 {
    4
}

fn default_changed() -> i64 {
    8
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

/// Why sizes make no denoiser.
#[derive(Debug, thiserror::Error)]
pub enum DiffusionConfigError {
    /// It would look too far ahead.
    #[error("its horizon is {0}, but must be in 0…{LONGEST_HORIZON}")]
    Horizon(i64),
    /// A weight is no weight.
    #[error("its weight of changed squares, `changed`, is {0}, but must be at least 1")]
    Changed(i64),
    /// The sizes of the trunk do not fit each other.
    #[error("its trunk: {0}")]
    Trunk(#[from] ConfigError),
}

impl DiffusionConfig {
    /// Checks what the trunk does not check.
    pub(super) fn check(&self) -> Result<(), DiffusionConfigError> {
        if !(0..=LONGEST_HORIZON).contains(&self.horizon) {
            return Err(DiffusionConfigError::Horizon(self.horizon));
        }
        if self.changed < 1 {
            return Err(DiffusionConfigError::Changed(self.changed));
        }
        Ok(())
    }
}
