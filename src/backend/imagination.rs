//! The interface for search in imagination, which needs a network that has learned the rules.

use super::{BackendError, Value};
use crate::encode::Input;
use std::sync::Arc;

/// An imagined board, with the attention keys and values of the step that produced it, which later
/// steps need. Only the network that wrote the bytes can interpret them.
#[derive(Clone, Debug, PartialEq)]
pub struct ImaginedBoard {
    bytes: Box<[u8]>,
    has_step: bool,
}

impl ImaginedBoard {
    /// Wraps these bytes. If `has_step` is false, they represent a true position.
    pub fn new(bytes: &[u8], has_step: bool) -> ImaginedBoard {
        let bytes = bytes.into();
        ImaginedBoard { bytes, has_step }
    }

    /// Returns the board's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns whether a step produced the board.
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
        /// The board before the move.
        from: Arc<ImaginedBoard>,
        /// The boards that the step attends to: `from` and its predecessors, latest first.
        path: Vec<Arc<ImaginedBoard>>,
        /// The move, as a policy index.
        mv: u16,
    },
}

/// A network's prediction for a scene. Move logits take the probability of legality into account.
#[derive(Clone, Debug)]
pub struct Imagined {
    /// The imagined board.
    pub board: Arc<ImaginedBoard>,
    /// The board's value for the side to move.
    pub value: Value,
    /// Probability that the game is over.
    pub ended: f32,
    /// The logits of the requested moves.
    pub logits: Vec<f32>,
    /// The likeliest moves, best first, as policy indices with their logits. The list contains only
    /// moves that the network predicts to be legal, or the single best move if it predicts none.
    pub likeliest: Vec<(u16, f32)>,
}

/// A network that looks ahead in imagination. Many threads may call it concurrently.
pub trait Imagination: Send + Sync {
    /// Returns the size of an [`ImaginedBoard`] in bytes.
    fn bytes(&self) -> usize;

    /// Returns the maximum number of boards that a step attends to, including its own.
    fn context(&self) -> usize;

    /// Imagines scenes and returns at most `most` of the likeliest moves for each.
    ///
    /// # Errors
    /// [`BackendError`] if the network fails.
    fn imagine(&self, scenes: &[Scene], most: usize) -> Result<Vec<Imagined>, BackendError>;
}
