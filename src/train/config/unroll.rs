//! Configuration of world-model training.

use serde::{Deserialize, Serialize};

/// Settings for unrolling world models in training. The losses of the encoder's heads are under
/// `loss`, as for other networks that evaluate positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnrollConfig {
    /// Moves of the game to unroll from a position, at most 16.
    pub plies: usize,
    /// Training steps after which it unrolls one more move, starting from one; 0 unrolls all
    /// moves from the start.
    pub every: u64,
    /// Weight of the negative log-probability of legal moves under the policy times legality.
    pub illegal: f64,
    /// Weight of the cross-entropy of the game's end.
    pub end: f64,
    /// Weight of the cross-entropy of move legality, summed over the moves.
    pub legality: f64,
    /// Weight of the cross-entropy of the squares' pieces, summed over the board.
    pub board: f64,
    /// Weight of the mean squared difference between normalised latents and those that the
    /// averaged weights compute for the true position.
    pub latent: f64,
    /// Whether the losses of the encoder's heads, the rules and the latents are balanced against
    /// each other, so that weights apply only within each group.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub harmony: bool,
}

impl UnrollConfig {
    /// Maximum number of moves.
    pub(in crate::train) const MOST: usize = 16;

    /// Returns whether it is the default, used if a configuration does not state it.
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
