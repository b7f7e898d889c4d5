//! Predicted futures.

use crate::encode::Squares;

/// A network's predicted future of a position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PredictedFuture {
    /// The board after each ply, from the view of its side to move.
    pub boards: Vec<Squares>,
    /// The moves after the first: policy indices with their probabilities.
    pub moves: Vec<(u16, f32)>,
}

/// Settings for predicting futures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoding {
    /// Number of times that a position is evaluated together with its future, at least 1. With 1
    /// the move is chosen without a future. A network that weighs candidates uses each further
    /// evaluation for one candidate.
    pub steps: usize,
    /// Maximum number of predicted plies. 0 means as many as the network supports.
    pub horizon: usize,
    /// Weight of the candidates' values in networks that weigh candidates: the increase of a move's
    /// logit per unit of W − L, in tenths. With 0, futures are revealed step by step, as in other
    /// networks.
    pub trust: u16,
}

impl Default for Decoding {
    fn default() -> Decoding {
        Decoding {
            steps: 10,
            horizon: 2,
            trust: 20,
        }
    }
}

impl Decoding {
    /// Returns settings that reveal one future, up to the network's horizon, in this number of
    /// steps.
    pub fn step_by_step(steps: usize) -> Decoding {
        Decoding {
            steps,
            horizon: 0,
            trust: 0,
        }
    }

    /// Returns the increase of a candidate's logit per unit of W − L.
    pub fn logits_of_value(&self) -> f32 {
        f32::from(self.trust) / 10.0
    }
}
