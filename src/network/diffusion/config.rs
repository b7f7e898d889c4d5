//! The sizes of a denoiser of futures.

use crate::network::chessformer::{self, ModelConfig};
use serde::{Deserialize, Serialize};

/// Most plies that a network looks ahead.
pub const LONGEST_HORIZON: i64 = 7;

/// The sizes of a denoiser of futures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffusionConfig {
    /// Plies that it looks ahead, up to [`LONGEST_HORIZON`]. With 0 it is its trunk.
    #[serde(default = "default_horizon")]
    pub horizon: i64,
    /// How many times as much a square that changes weighs in training as one that stays
    /// as it is, at least 1. By as much its logits favour change, which decoding takes
    /// back.
    #[serde(default = "default_changed")]
    pub changed: i64,
    /// Whether it weighs candidates: it is told first moves in training, and looks at what
    /// they lead to in the evaluations behind the first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weighs: bool,
    /// The Chessformer that every board goes through.
    pub trunk: ModelConfig,
    /// `grid`, as files of earlier versions say: they could say `sequence`.
    #[serde(default, skip_serializing)]
    pub(super) kind: Kind,
    /// `absorbing`: files could say `uniform`.
    #[serde(default, skip_serializing)]
    pub(super) noise: Noise,
    /// `states+moves`: files could say `states` or `moves`.
    #[serde(default, skip_serializing)]
    pub(super) futures: Futures,
}

fn default_horizon() -> i64 {
    4
}

fn default_changed() -> i64 {
    8
}

/// What is left of the kinds of denoisers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    #[default]
    Grid,
}

/// What is left of the kinds of noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Noise {
    #[default]
    Absorbing,
}

/// What is left of the kinds of futures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Futures {
    #[default]
    #[serde(rename = "states+moves")]
    StatesAndMoves,
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
    Trunk(#[from] chessformer::ConfigError),
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
