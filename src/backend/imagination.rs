//! Looking ahead without the rules: what a network that has learned them is asked.

use super::{BackendError, Value};
use crate::encode::Input;
use std::sync::Arc;

/// A board as a network imagines it, with what its attention over time keeps of the step
/// that led there: numbers that mean something to that network alone.
#[derive(Clone, Debug, PartialEq)]
pub struct ImaginedBoard {
    bytes: Box<[u8]>,
    has_step: bool,
}

impl ImaginedBoard {
    /// One of these bytes; without a step it is that of a true position.
    #[must_use]
    pub fn new(bytes: &[u8], has_step: bool) -> ImaginedBoard {
        let bytes = bytes.into();
        ImaginedBoard { bytes, has_step }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns whether a step led to it.
    #[must_use]
    pub fn has_step(&self) -> bool {
        self.has_step
    }
}

/// A step to imagine.
#[derive(Clone, Debug)]
pub enum Scene {
    /// A true position, of which the logits of these moves, entries of the policy, are
    /// wanted.
    Present {
        /// The position.
        input: Box<Input>,
        /// The moves.
        moves: Vec<u16>,
    },
    /// The position after a move.
    After {
        /// The board before it.
        from: Arc<ImaginedBoard>,
        /// The boards that are looked back on, from that one on, the latest first.
        path: Vec<Arc<ImaginedBoard>>,
        /// The move, by its entry of the policy.
        mv: u16,
    },
}

/// A network's answer to a scene. The logits of moves include how likely the moves are to be
/// legal.
#[derive(Clone, Debug)]
pub struct Imagined {
    /// The board.
    pub board: Arc<ImaginedBoard>,
    /// Its value for the side to move.
    pub value: Value,
    /// Probability that the game has ended there.
    pub ended: f32,
    /// The logits of the moves that were asked for.
    pub logits: Vec<f32>,
    /// The likeliest of all moves by the policy's entries, with their logits; the best
    /// first. Only those that are legal rather than not, as the network sees it, or else
    /// the first.
    pub likeliest: Vec<(u16, f32)>,
}

/// A network that looks ahead in imagination. Called from many threads at once.
pub trait Imagination: Send + Sync {
    /// Bytes of an [`ImaginedBoard`].
    fn bytes(&self) -> usize;

    /// Most boards that a step looks back on, itself included.
    fn context(&self) -> usize;

    /// Imagines scenes, with at most `most` of the likeliest moves of each.
    ///
    /// # Errors
    /// [`BackendError`] if the network fails.
    fn imagine(&self, scenes: &[Scene], most: usize) -> Result<Vec<Imagined>, BackendError>;
}
