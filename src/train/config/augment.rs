//! Configuration of data augmentation.

use serde::{Deserialize, Serialize};

/// Data augmentation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AugmentConfig {
    /// Share of the positions without castling rights that are mirrored left to right, together
    /// with their moves, in 0…1. Apart from castling, the rules of chess are symmetric in this way.
    pub mirror: f64,
    /// For networks that read whole games: share of the games whose ratings are hidden, in 0…1, so
    /// that the network can also play without ratings.
    pub hide_ratings: f64,
    /// For networks that read whole games: share of the games whose result is hidden, in 0…1. The
    /// other games teach the network to play for a requested result.
    pub hide_result: f64,
    /// For networks that read whole games: share of the games that are continued with random legal
    /// moves from a random ply, in 0…1. The unusual positions teach the rules.
    pub random_moves: f64,
    /// Seed of all random choices.
    pub seed: u64,
}
