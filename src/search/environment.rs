//! The environment of a search: positions along a path, their known outcomes, and their
//! evaluation.
//!
//! A search thread owns one environment, which is at the root between descents. [`Rules`] is chess
//! itself, [`Latent`] a network's imagination. An environment with state per node, such as a
//! learned model's latents, receives the nodes.

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

    /// Plays a move from the node `from`, at whose position the environment is.
    fn play(&mut self, from: Index, mv: u16);

    /// Takes back the last move.
    fn undo(&mut self);

    /// Returns the node key of the position: all paths to a position lead to one node, where the
    /// search detects transpositions.
    fn key(&self) -> u64;

    /// Returns whether the preceding moves, rather than the position, make this a draw.
    fn is_drawn_by_history(&self) -> bool;

    /// Returns the moves of the node `at`, at whose position the environment is, in numerical
    /// order.
    fn moves(&self, at: Index) -> Self::Moves;

    /// Returns the move of this number in the form an edge stores.
    fn packed(moves: &Self::Moves, number: usize) -> u16;

    /// Returns the position's outcome without an evaluation, for the side to move, and the plies
    /// to it; `None` if it needs an evaluation.
    fn outcome(&self, moves: &Self::Moves) -> Option<(Outcome, u8)>;

    /// Returns the plies to a mate found by trying checks only.
    fn mate_by_checks(&mut self) -> Option<u8>;

    /// Clears the batch.
    fn clear(&mut self);

    /// Returns the number of positions in the batch.
    fn gathered(&self) -> usize;

    /// Adds the position of the node `at` to the batch and returns its slot.
    ///
    /// # Errors
    /// [`BackendError`] if the backend cannot evaluate it. The batch is unchanged.
    fn push(&mut self, at: Index, moves: &Self::Moves) -> Result<usize, BackendError>;

    /// Evaluates the batch.
    ///
    /// # Errors
    /// [`BackendError`] if the backend fails.
    fn evaluate(&mut self) -> Result<(), BackendError>;

    /// Returns the value of a position of the batch, for its side to move.
    fn value(&self, slot: usize) -> Value;

    /// Returns the policy logits of a position of the batch, in the order of its moves.
    fn logits(&self, slot: usize) -> &[f32];
}
