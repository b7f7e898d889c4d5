//! The sizes of a denoiser of futures.

use crate::network::chessformer::{self, EmbeddingConfig, ModelConfig, PositionConfig};
use serde::{Deserialize, Serialize};

/// Most plies that a network looks ahead.
pub const LONGEST_HORIZON: i64 = 7;

/// The sizes of a denoiser of futures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiffusionConfig {
    /// How boards and moves are put to it.
    #[serde(default)]
    pub kind: DenoiserKind,
    /// Plies that it looks ahead, up to [`LONGEST_HORIZON`]. With 0 it is its trunk.
    #[serde(default = "default_horizon")]
    pub horizon: i64,
    /// What stands where a square is not known.
    #[serde(default)]
    pub noise: NoiseKind,
    /// What of the future it imagines.
    #[serde(default)]
    pub futures: FuturesKind,
    /// How many times as much a square that changes weighs in training as one that stays
    /// as it is, at least 1. By as much its logits favour change, which decoding takes
    /// back.
    #[serde(default = "default_changed")]
    pub changed: i64,
    /// Whether it weighs candidates: it is told first moves in training, and looks at what
    /// they lead to in the evaluations behind the first. A grid can.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weighs: bool,
    /// The Chessformer that every board of a grid goes through. Of a sequence it gives the
    /// layers, their width, heads and feed-forward networks, and positions are absolute.
    pub trunk: ModelConfig,
}

fn default_horizon() -> i64 {
    4
}

fn default_changed() -> i64 {
    8
}

/// How boards and moves are put to a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DenoiserKind {
    /// As boards of 64 squares, each through a Chessformer.
    #[default]
    Grid,
    /// As one sequence of tokens, as DiffuSearch does.
    Sequence,
}

/// What stands where a square is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseKind {
    /// A mark that says so, on what stands there now.
    #[default]
    Absorbing,
    /// A class drawn at random, without a mark.
    Uniform,
}

/// What of the future is foreseen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FuturesKind {
    /// Boards and the moves between them.
    #[default]
    #[serde(rename = "states+moves")]
    StatesAndMoves,
    /// Moves; boards stay unknown.
    #[serde(rename = "moves")]
    Moves,
    /// Boards; moves stay unknown.
    #[serde(rename = "states")]
    States,
}

impl FuturesKind {
    /// Whether boards are foreseen.
    #[must_use]
    pub fn has_states(self) -> bool {
        self != FuturesKind::Moves
    }

    /// Whether moves behind the first are foreseen.
    #[must_use]
    pub fn has_moves(self) -> bool {
        self != FuturesKind::States
    }
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
    /// A sequence has no values of future boards.
    #[error("a sequence weighs no candidates: leave `weighs` out")]
    Weighs,
    /// A sequence has no use for what the trunk asks for.
    #[error("a sequence takes sizes alone: leave `trunk.{0}` out, and positions \"absolute\"")]
    Sequence(&'static str),
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
        if self.kind == DenoiserKind::Sequence {
            if self.weighs {
                return Err(DiffusionConfigError::Weighs);
            }
            self.trunk.check()?;
            let trunk = &self.trunk;
            for (key, is_asked) in [
                ("position", trunk.position != PositionConfig::Absolute),
                ("embedding", trunk.embedding != EmbeddingConfig::Token),
                ("attacks", trunk.attacks),
                ("attack_bias", trunk.attack_bias),
                ("elo", trunk.elo),
                ("optimistic_policy", trunk.optimistic_policy),
            ] {
                if is_asked {
                    return Err(DiffusionConfigError::Sequence(key));
                }
            }
        }
        Ok(())
    }
}
