//! Configuration of the loss weights.

use crate::network::only_left;
use serde::{Deserialize, Deserializer, Serialize};

/// The weight of each loss in the total. The defaults follow the appendix of the Chessformer paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LossWeights {
    /// Cross-entropy of the policy.
    pub policy: f64,
    /// Cross-entropy of the softened policy.
    pub policy_soft: f64,
    /// Cross-entropy of the win, draw and loss probabilities.
    pub result: f64,
    /// Squared error of q.
    pub q: f64,
    /// Cross-entropy of q, divided into buckets.
    pub q_categorical: f64,
    /// Squared error of the predicted error of q.
    pub q_error: f64,
    /// Squared error of the short-term value.
    pub short_term: f64,
    /// Cross-entropy of the short-term value, divided into buckets.
    pub short_term_categorical: f64,
    /// Squared error of the predicted error of the short-term value.
    pub short_term_error: f64,
    /// Huber loss of the moves-left head, as in Lc0.
    pub moves_left: f64,
    /// For networks that read whole games: the negative logarithm of the total probability of the
    /// legal moves. This loss uses every legal move, whereas the policy loss uses only the move
    /// played.
    pub legality: f64,
    /// For networks that read whole games: cross-entropy of the pieces on the squares, averaged
    /// over the board.
    pub board: f64,
    /// Share of the policy target that is spread evenly over all legal moves, at least 0 and below
    /// 1.
    pub label_smoothing: f64,
    /// Accepts only 0; earlier versions had KataGo's optimistic policy.
    #[serde(skip_serializing, deserialize_with = "policy_optimistic")]
    pub policy_optimistic: (),
}

fn policy_optimistic<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    only_left(deserializer, "policy_optimistic", 0.0)
}

impl Default for LossWeights {
    fn default() -> LossWeights {
        LossWeights {
            policy: 1.0,
            policy_soft: 8.0,
            result: 1.0,
            q: 1.0,
            q_categorical: 0.1,
            q_error: 1.0,
            short_term: 1.0,
            short_term_categorical: 0.1,
            short_term_error: 1.0,
            moves_left: 1.0,
            legality: 0.0,
            board: 0.0,
            label_smoothing: 0.0,
            policy_optimistic: (),
        }
    }
}
