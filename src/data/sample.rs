//! A training sample: a position and its targets.

use crate::encode::Input;

use super::legal::Legal;

/// A game's result for one of its players.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wdl {
    /// The player won.
    Win,
    /// Neither did.
    Draw,
    /// The player lost.
    Loss,
}

impl Wdl {
    /// The same ending as the opponent sees it.
    #[must_use]
    pub fn reversed(self) -> Wdl {
        match self {
            Wdl::Win => Wdl::Loss,
            Wdl::Draw => Wdl::Draw,
            Wdl::Loss => Wdl::Win,
        }
    }

    /// W − L: 1, 0 or −1.
    #[must_use]
    pub fn q(self) -> f32 {
        match self {
            Wdl::Win => 1.0,
            Wdl::Draw => 0.0,
            Wdl::Loss => -1.0,
        }
    }
}

/// The target of the policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// No target.
    Unknown,
    /// One move is right: its policy index.
    Move(u16),
    /// Probabilities by policy index; they sum to 1.
    Distribution(Vec<(u16, f32)>),
}

/// One position with its targets, all from the mover's view.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The position and its history, with the players' ratings where they are known.
    pub input: Input,
    /// The legal moves.
    pub legal: Legal,
    /// The target of the policy.
    pub policy: Policy,
    /// The game's result, where it is a target.
    pub result: Option<Wdl>,
    /// The position's value W − L in −1…1, as an engine judged it.
    pub q: Option<f32>,
    /// The short-term value in −1…1: a moving average of the values that
    /// follow in the game, see [`super::label`].
    pub short_term: Option<f32>,
    /// Plies to the end of the game.
    pub moves_left: Option<f32>,
    /// Weight in the loss; 1 for moves of the main line.
    pub weight: f32,
}
