//! The embedding of a move as one vector.

use super::move_marks::KINDS;
use crate::network::parameters::{Builder, Initial, Slot, Weights};
use tch::Tensor;

/// Initial standard deviation of each of the three parts, so that their sum has a deviation near 1.
const PART: f64 = 0.6;

/// The sum of three vectors: the move's origin square, its destination square and the promotion.
#[derive(Debug)]
pub(in crate::network) struct MoveEmbedding {
    /// [64, width].
    from: Slot,
    /// [64, width].
    to: Slot,
    /// [4, width].
    promotion: Slot,
    /// The tensor from [`move_parts`](super::move_parts).
    parts: Tensor,
}

impl MoveEmbedding {
    /// Builds an embedding of this width. `parts` is the tensor from
    /// [`move_parts`](super::move_parts).
    pub fn build(builder: &mut Builder, width: i64, parts: &Tensor) -> MoveEmbedding {
        let mut table = |name, rows| builder.add(name, &[rows, width], Initial::Normal(PART));
        MoveEmbedding {
            from: table("from", 64),
            to: table("to", 64),
            promotion: table("promotion", KINDS),
            parts: parts.shallow_clone(),
        }
    }

    /// Returns the vectors [B, width] of moves, given as policy indices i64 `[B]`.
    pub fn forward(&self, weights: &Weights, moves: &Tensor) -> Tensor {
        let parts = self.parts.index_select(1, moves);
        let part = |table: Slot, part| weights[table].index_select(0, &parts.select(0, part));
        part(self.from, 0) + part(self.to, 1) + part(self.promotion, 2)
    }
}
