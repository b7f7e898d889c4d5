//! The environment of a search: the positions along a path, their known outcomes, and their
//! evaluation.
//!
//! Each search thread owns one environment, which is at the root between descents. [`Rules`] is
//! chess itself, and [`Latent`] is a network's imagination. Methods receive nodes for the sake of
//! environments with per-node state, such as a learned model's latents.

mod latent;
mod rules;

pub(crate) use latent::Latent;
pub use latent::WorldOptions;
pub(crate) use rules::Rules;

use super::tree::arena::Index;
use super::tree::header::Outcome;
use crate::backend::{BackendError, Value};

/// The environment of a search.
pub(crate) trait Environment {
    /// The moves of a position.
    type Moves;

    /// Plays a move from the node `from`; the environment must be at that node's position.
    fn play(&mut self, from: Index, mv: u16);

    /// Takes back the last move.
    fn undo(&mut self);

    /// Returns the key of the position's node. If the search detects transpositions, all paths to a
    /// position lead to one node.
    fn key(&self) -> u64;

    /// Returns whether the position is a draw because of the preceding moves rather than by itself.
    fn is_drawn_by_history(&self) -> bool;

    /// Returns the moves of the node `at`, in numerical order; the environment must be at that
    /// node's position.
    fn moves(&self, at: Index) -> Self::Moves;

    /// Returns the move with this number in the form that an edge stores.
    fn packed(moves: &Self::Moves, number: usize) -> u16;

    /// Returns the outcome for the side to move, and the number of plies to it, if they are known
    /// without an evaluation; `None` if the position needs one.
    fn outcome(&self, moves: &Self::Moves) -> Option<(Outcome, u8)>;

    /// Returns the number of plies to a mate, if a search limited to checks finds one.
    fn mate_by_checks(&mut self) -> Option<u8>;

    /// Corrects the policy logits of the environment's position, given in the order of its moves;
    /// returns whether they have changed.
    fn correct(&self, moves: &Self::Moves, logits: &mut [f32]) -> bool;

    /// Clears the batch.
    fn clear(&mut self);

    /// Returns the number of positions in the batch.
    fn gathered(&self) -> usize;

    /// Adds the position of the node `at` to the batch and returns its slot.
    ///
    /// # Errors
    /// [`BackendError`] if the backend cannot evaluate the position; the batch is then unchanged.
    fn push(&mut self, at: Index, moves: &Self::Moves) -> Result<usize, BackendError>;

    /// Evaluates the batch.
    ///
    /// # Errors
    /// [`BackendError`] if the backend fails.
    fn evaluate(&mut self) -> Result<(), BackendError>;

    /// Returns the value of a position in the batch, for its side to move.
    fn value(&self, slot: usize) -> Value;

    /// Returns the policy logits of a position in the batch, in the order of its moves.
    fn logits(&self, slot: usize) -> &[f32];
}
