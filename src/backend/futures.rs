//! Futures as networks predict them.

use crate::encode::Squares;

/// The future of a position as a network predicts it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PredictedFuture {
    /// The board after each ply, as the side sees it that is to move then.
    pub boards: Vec<Squares>,
    /// The moves behind the first: policy indices, with how likely each is.
    pub moves: Vec<(u16, f32)>,
}

/// Settings for predicting futures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoding {
    /// Evaluations of a position with its future, at least 1. With 1 the move is chosen without a
    /// future. A network that weighs candidates gets one in each of the others.
    pub steps: usize,
    /// Most plies that are predicted; 0 stands for all that the network can.
    pub horizon: usize,
    /// How much the values of candidates count in networks that weigh them: what a change
    /// of W − L by 1 adds to a move's logit, in tenths. With 0 futures are revealed step by
    /// step, as by other networks.
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
    /// One future up to the network's horizon, revealed in a number of steps.
    #[must_use]
    pub fn step_by_step(steps: usize) -> Decoding {
        Decoding {
            steps,
            horizon: 0,
            trust: 0,
        }
    }

    /// Returns how much a change of W − L by 1 adds to a candidate's logit.
    #[must_use]
    pub fn logits_of_value(&self) -> f32 {
        f32::from(self.trust) / 10.0
    }
}
