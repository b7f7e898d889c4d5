//! Futures as networks foresee them.

use crate::encode::Squares;

/// The future of a position as a network foresees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Foreseen {
    /// The board after each ply, as the side sees it that is to move then.
    pub boards: Vec<Squares>,
    /// The moves behind the first: policy indices, with how likely each is.
    pub moves: Vec<(u16, f32)>,
}

/// How a network foresees futures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoding {
    /// Evaluations of a position with its future, at least 1. With 1 the future stays
    /// unknown to the move.
    pub steps: usize,
    /// Most plies that are foreseen; 0 stands for all that the network can.
    pub horizon: usize,
    /// What is revealed first.
    pub order: RevealOrder,
    /// How much the policy counts that knows nothing of the future, the first step's, in
    /// percent; the rest is that of the last step. Logits are mixed.
    pub unaided: u8,
}

/// What of a future is revealed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum RevealOrder {
    /// What leads the next likeliest by most.
    #[default]
    Margin,
    /// What is likeliest.
    Probability,
}

impl Default for Decoding {
    fn default() -> Decoding {
        Decoding {
            steps: 10,
            horizon: 0,
            order: RevealOrder::default(),
            unaided: 0,
        }
    }
}
