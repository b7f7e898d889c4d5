//! Configuration for training world models.

use serde::{Deserialize, Serialize};

/// Settings for unrolling world models during training. The loss weights of the encoder's heads are
/// in `loss`, as for other networks that evaluate positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnrollConfig {
    /// Number of moves to unroll from a position, at most 16.
    pub plies: usize,
    /// Number of training steps after which each sample is unrolled by one more move, starting with
    /// one move; 0 unrolls all moves from the start.
    pub every: u64,
    /// Weight of the negative logarithm of the total probability of the legal moves. Here, the
    /// policy is multiplied by the predicted legality and normalised.
    pub illegal: f64,
    /// Weight of the cross-entropy of the prediction whether the game has ended.
    pub end: f64,
    /// Weight of the cross-entropy of the moves' legality, summed over the moves.
    pub legality: f64,
    /// Weight of the cross-entropy of the pieces on the squares, summed over the board.
    pub board: f64,
    /// Weight of the mean squared difference between the normalised latents and those that the
    /// averaged weights compute for the true position.
    pub latent: f64,
    /// Whether to balance three groups of losses against each other: those of the encoder's heads,
    /// of the rules and of the latents. Weights then matter only within a group.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub harmony: bool,
}

impl UnrollConfig {
    /// Maximum number of moves.
    pub(in crate::train) const MOST: usize = 16;

    /// Returns whether these are the default settings.
    pub(super) fn is_default(&self) -> bool {
        *self == UnrollConfig::default()
    }

    /// Returns the number of moves to unroll after a number of training steps.
    pub(in crate::train) fn plies_at(&self, steps: u64) -> usize {
        match steps.checked_div(self.every) {
            Some(more) => more.saturating_add(1).min(self.plies as u64) as usize,
            None => self.plies,
        }
    }
}

impl Default for UnrollConfig {
    fn default() -> UnrollConfig {
        UnrollConfig {
            plies: 5,
            every: 0,
            illegal: 1.0,
            end: 1.0,
            legality: 0.1,
            board: 0.1,
            latent: 10.0,
            harmony: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plies_grow_to_all() {
        let config = UnrollConfig {
            plies: 3,
            every: 10,
            ..UnrollConfig::default()
        };
        let plies = [0, 9, 10, 20, 1000, u64::MAX].map(|steps| config.plies_at(steps));
        assert_eq!(plies, [1, 1, 2, 3, 3, 3]);
        assert_eq!(UnrollConfig::default().plies_at(0), 5);
    }
}
