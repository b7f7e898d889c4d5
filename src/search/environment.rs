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

    /// Follows a move from the node `from`, at whose position it stands.
    fn play(&mut self, from: Index, mv: u16);

    /// Takes the last move back.
    fn undo(&mut self);

    /// The key of the position as a node: all ways to it lead to one, where the search
    /// looks for transpositions.
    fn key(&self) -> u64;

    /// Returns whether the moves before, and not the position, make this a draw.
    fn is_drawn_by_history(&self) -> bool;

    /// The moves of the node `at`, at whose position it stands, in the order of their
    /// numbers.
    fn moves(&self, at: Index) -> Self::Moves;

    /// The move of this number, as an edge keeps it.
    fn packed(moves: &Self::Moves, number: usize) -> u16;

    /// The position's outcome without an evaluation, for the side to move, and the plies to it;
    /// `None` if it needs an evaluation.
    fn outcome(&self, moves: &Self::Moves) -> Option<(Outcome, u8)>;

    /// The plies to a mate that a look at checks alone finds.
    fn mate_by_checks(&mut self) -> Option<u8>;

    /// Empties the batch.
    fn clear(&mut self);

    /// Positions in the batch.
    fn gathered(&self) -> usize;

    /// Adds the position of the node `at` to the batch; its place there.
    ///
    /// # Errors
    /// [`BackendError`] where the backend cannot be asked about it. The batch is as it was.
    fn push(&mut self, at: Index, moves: &Self::Moves) -> Result<usize, BackendError>;

    /// Evaluates the batch.
    ///
    /// # Errors
    /// [`BackendError`] if the backend fails.
    fn evaluate(&mut self) -> Result<(), BackendError>;

    /// The value of a position of the batch, for its side to move.
    fn value(&self, slot: usize) -> Value;

    /// The policy's logits of a position of the batch, in the order of its moves.
    fn logits(&self, slot: usize) -> &[f32];
}
