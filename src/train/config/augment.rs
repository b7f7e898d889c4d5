//! Configuration of data augmentation.

use serde::{Deserialize, Serialize};

/// Data augmentation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentConfig {
    /// Share of the positions without castling rights that are mirrored left to right, together
    /// with their moves, in 0…1. Without castling, the mirrored game has the same rules.
    pub mirror: f64,
    /// For networks that read whole games: share of the games whose ratings are hidden, so that the
    /// network can also play without them. In 0…1.
    pub hide_ratings: f64,
    /// Share of the games whose result is hidden; callers can request a result. In 0…1.
    pub hide_result: f64,
    /// For networks that read whole games: share of the games that are continued with random legal
    /// moves from a random ply, in 0…1. This variety teaches the rules.
    pub random_moves: f64,
    /// Seed of all random choices.
    pub seed: u64,
}
