//! Configuration of data augmentation.

use serde::{Deserialize, Serialize};

/// Data augmentation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentConfig {
    /// Share of the positions without castling rights to mirror left to right, with
    /// their moves. Without castling the mirrored game has the same rules. In 0…1.
    pub mirror: f64,
    /// For networks that read whole games: the share of games with hidden ratings, so that the
    /// network also plays without them. In 0…1.
    pub hide_ratings: f64,
    /// The same for results, which callers can request. In 0…1.
    pub hide_result: f64,
    /// For networks that read whole games: the share of games continued with random legal moves
    /// from a random ply, in 0…1. Variety teaches the rules.
    pub random_moves: f64,
    /// Seed of the random choices.
    pub seed: u64,
}
