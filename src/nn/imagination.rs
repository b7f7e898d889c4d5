//! Looking ahead without the rules: what a network that has learned them is asked.

use super::{BackendError, Value};
use crate::encode::Input;
use std::sync::Arc;

/// A board as a network imagines it, with what attention over time keeps of the step that
/// led there: numbers that mean something to that network alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Latent {
    bytes: Box<[u8]>,
    has_step: bool,
}

impl Latent {
    /// One of these bytes; without a step it is that of a true position.
    #[must_use]
    pub fn new(bytes: &[u8], has_step: bool) -> Latent {
        let bytes = bytes.into();
        Latent { bytes, has_step }
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether a step led to it.
    #[must_use]
    pub fn has_step(&self) -> bool {
        self.has_step
    }
}

/// What is to be imagined.
#[derive(Clone, Debug)]
pub enum Scene {
    /// A true position, of which the entries of the policy of some moves are of interest.
    Present {
        /// The position.
        input: Input,
        /// The moves, by the policy's entries.
        moves: Vec<u16>,
    },
    /// What comes of a move.
    After {
        /// The boards on the way there, the latest first, no more than the context; the
        /// last may be that of a true position.
        path: Vec<Arc<Latent>>,
        /// The move, by its entry of the policy.
        mv: u16,
    },
}

/// What a network makes of a scene.
#[derive(Clone, Debug)]
pub struct Imagined {
    /// The board.
    pub latent: Arc<Latent>,
    /// Its value for the side to move.
    pub value: Value,
    /// Probability that the game has ended there.
    pub ended: f32,
    /// Moves by the policy's entries, with logits that count how likely they are to be
    /// legal: those of interest of a true position in their order, else the likeliest,
    /// the best first.
    pub moves: Vec<(u16, f32)>,
    /// The likeliest of all moves, legal or not.
    pub likeliest: u16,
}

/// A network that looks ahead in imagination. Called from many threads at once.
pub trait Imagination: Send + Sync {
    /// Bytes of a [`Latent`].
    fn bytes(&self) -> usize;

    /// Most boards of a path that make a difference.
    fn context(&self) -> usize;

    /// Imagines scenes, with so many moves each of those that are no true position.
    ///
    /// # Errors
    /// [`BackendError`] if the network fails.
    fn imagine(&self, scenes: &[Scene], most: usize) -> Result<Vec<Imagined>, BackendError>;
}
