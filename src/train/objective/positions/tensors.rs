//! Uploads batches as tensors to the training device.

use crate::data::examples::{Columns, PositionColumns};
use crate::encode::{POLICY_SIZE, WIDTH};
use crate::train::objective::send;
use tch::{Device, Kind, Tensor};

/// The targets of B positions, all from the perspective of the side to move.
#[derive(Debug)]
pub(in crate::train) struct Targets {
    /// Marks the legal moves, bool [B, 1858].
    pub legal: Tensor,
    /// Policy probabilities, f32 [B, 1858]; a row of zeros means no target.
    pub policy: Tensor,
    /// The result, i64 `[B]`: 0 for a win, 1 for a draw, 2 for a loss, −1 without a target.
    pub result: Tensor,
    /// The value q in −1…1, f32 `[B]`; NaN without a target.
    pub q: Tensor,
    /// The short-term value in −1…1, f32 `[B]`; NaN without a target.
    pub short_term: Tensor,
    /// Number of plies to the end of the game, f32 `[B]`; NaN without a target.
    pub moves_left: Tensor,
    /// The weight of each sample, f32 `[B]`.
    pub weight: Tensor,
}

/// A logit whose softmax is 0.
const MASKED: f64 = -1e9;

impl Targets {
    /// Returns the targets of `count` positions from `start`.
    pub fn narrow(&self, start: i64, count: i64) -> Targets {
        self.map(|tensor| tensor.narrow(0, start, count))
    }

    /// Applies `change` to every tensor.
    pub fn map(&self, change: impl Fn(&Tensor) -> Tensor) -> Targets {
        Targets {
            legal: change(&self.legal),
            policy: change(&self.policy),
            result: change(&self.result),
            q: change(&self.q),
            short_term: change(&self.short_term),
            moves_left: change(&self.moves_left),
            weight: change(&self.weight),
        }
    }

    /// Returns policy logits [B, 1858] with illegal moves masked.
    pub fn masked(&self, logits: &Tensor) -> Tensor {
        logits.masked_fill(&self.legal.logical_not(), MASKED)
    }
}

/// Uploads rows, i64 [B, WIDTH], with their targets.
pub(in crate::train::objective) fn upload(
    batch: &PositionColumns,
    device: Device,
) -> (Tensor, Targets) {
    let count = batch.len() as i64;
    let integers = |values: &[i64]| send(values, device);
    let floats = |values: &[f32]| send(values, device);

    let bits = Tensor::arange(64, (Kind::Int64, device));
    let legal = integers(batch.legal_words())
        .view([count, -1, 1])
        .bitwise_right_shift(&bits)
        .bitwise_and(1)
        .view([count, -1])
        .narrow(1, 0, POLICY_SIZE as i64)
        .to_kind(Kind::Bool);
    let mut policy = Tensor::zeros([count, POLICY_SIZE as i64], (Kind::Float, device));
    let places = [
        Some(integers(&batch.policy.row)),
        Some(integers(&batch.policy.index)),
    ];
    let _ = policy.index_put_(&places, &floats(&batch.policy.probability), false);
    let targets = Targets {
        legal,
        policy,
        result: integers(&batch.result),
        q: floats(&batch.q),
        short_term: floats(&batch.short_term),
        moves_left: floats(&batch.moves_left),
        weight: floats(&batch.weight),
    };
    let rows = integers(batch.input_words()).view([count, WIDTH as i64]);
    (rows, targets)
}
