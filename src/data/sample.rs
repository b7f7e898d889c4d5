//! A training sample: a position and its targets.

use crate::encode::Input;
use shakmaty::Color;

use super::legal::Legal;

/// A game's result from one player's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wdl {
    /// The player won.
    Win,
    /// The game was drawn.
    Draw,
    /// The player lost.
    Loss,
}

impl Wdl {
    /// Returns the result from the opponent's view.
    #[must_use]
    pub fn reversed(self) -> Wdl {
        match self {
            Wdl::Win => Wdl::Loss,
            Wdl::Draw => Wdl::Draw,
            Wdl::Loss => Wdl::Win,
        }
    }

    /// Returns White's result from the view of this player, or this player's result from the view
    /// of White.
    #[must_use]
    pub fn seen_by(self, color: Color) -> Wdl {
        color.fold_wb(self, self.reversed())
    }

    /// Returns W − L, which is 1, 0 or −1.
    pub fn q(self) -> f32 {
        match self {
            Wdl::Win => 1.0,
            Wdl::Draw => 0.0,
            Wdl::Loss => -1.0,
        }
    }
}

/// A policy target.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// The position has no policy target.
    Unknown,
    /// A single target move, given by its policy index.
    Move(u16),
    /// Probabilities by policy index, which sum to 1.
    Distribution(Vec<(u16, f32)>),
}

/// A position with its targets, all from the perspective of the side to move.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The position and its history, with the players' ratings if known.
    pub input: Input,
    /// The legal moves.
    pub legal: Legal,
    /// The policy target.
    pub policy: Policy,
    /// The game's result, if it is a target.
    pub result: Option<Wdl>,
    /// The position's value W − L in −1…1, as estimated by an engine.
    pub q: Option<f32>,
    /// The short-term value in −1…1: an exponential average of the values from this position on,
    /// see [`super::label`].
    pub short_term: Option<f32>,
    /// Number of plies to the end of the game.
    pub moves_left: Option<f32>,
    /// The sample's weight in the loss, 1 on the main line.
    pub weight: f32,
}
