//! The interface for looking ahead in imagination, with a network that has learned the rules.

use super::{BackendError, Value};
use crate::encode::Input;
use std::sync::Arc;

/// An imagined board, with the keys and values of its step for attention over time. The bytes
/// have meaning only to the network that wrote them.
#[derive(Clone, Debug, PartialEq)]
pub struct ImaginedBoard {
    bytes: Box<[u8]>,
    has_step: bool,
}

impl ImaginedBoard {
    /// Wraps these bytes; without a step they represent a true position.
    #[must_use]
    pub fn new(bytes: &[u8], has_step: bool) -> ImaginedBoard {
        let bytes = bytes.into();
        ImaginedBoard { bytes, has_step }
    }

    /// Returns its bytes.
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

/// A position to imagine.
#[derive(Clone, Debug)]
pub enum Scene {
    /// A true position and the moves whose logits are requested, as policy indices.
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
        /// The boards that the step attends to, from that one on, the latest first.
        path: Vec<Arc<ImaginedBoard>>,
        /// The move, as a policy index.
        mv: u16,
    },
}

/// A network's prediction for a scene. The logits of moves include the probability that the moves
/// are legal.
#[derive(Clone, Debug)]
pub struct Imagined {
    /// The board.
    pub board: Arc<ImaginedBoard>,
    /// Its value for the side to move.
    pub value: Value,
    /// Probability that the game has ended there.
    pub ended: f32,
    /// The logits of the requested moves.
    pub logits: Vec<f32>,
    /// The likeliest moves as policy indices with their logits, the best first. Only moves that
    /// the network predicts to be legal, or the first if none is.
    pub likeliest: Vec<(u16, f32)>,
}

/// A network that looks ahead in imagination. Called concurrently by many threads.
pub trait Imagination: Send + Sync {
    /// Returns the size of an [`ImaginedBoard`] in bytes.
    fn bytes(&self) -> usize;

    /// Returns the maximum number of boards that a step attends to, including itself.
    fn context(&self) -> usize;

    /// Imagines scenes, with at most `most` of the likeliest moves of each.
    ///
    /// # Errors
    /// [`BackendError`] if the network fails.
    fn imagine(&self, scenes: &[Scene], most: usize) -> Result<Vec<Imagined>, BackendError>;
}
