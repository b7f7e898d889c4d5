//! A batch that is ready on the device.

use super::objective::Narrow;
use tch::{Kind, Tensor};

/// A batch on the device, together with everything that its losses need.
#[derive(Debug)]
pub(super) struct PreparedBatch<S> {
    /// The samples.
    pub samples: S,
    /// The weight of each sample in each term, f32 [L, B]; 0 if the sample lacks the target.
    pub loss_weights: Tensor,
    /// For each term, the total weight of the samples that have its target, f32 `[L]`; the term's
    /// sum is divided by this weight. [`PreparedBatch::new`] counts only the samples of this batch;
    /// with several replicas or processes, the weight is then summed over all of them.
    pub target_weight: Tensor,
    /// For each term, the number of samples that have its target, f32 `[L]`.
    pub target_count: Tensor,
}

impl<S> PreparedBatch<S> {
    /// Returns a batch whose samples have these weights, f32 [L, B].
    pub fn new(samples: S, loss_weights: Tensor) -> PreparedBatch<S> {
        let sum = |weights: &Tensor| weights.sum_dim_intlist([1i64].as_slice(), false, Kind::Float);
        PreparedBatch {
            samples,
            target_weight: sum(&loss_weights),
            target_count: sum(&loss_weights.gt(0.0)),
            loss_weights,
        }
    }

    /// Returns the number of samples.
    pub fn len(&self) -> i64 {
        self.loss_weights.size()[1]
    }
}

impl<S: Narrow> PreparedBatch<S> {
    /// Returns a micro-batch. Its losses are still divided by the target weights of the whole
    /// batch.
    pub fn narrow(&self, start: i64, count: i64) -> PreparedBatch<S> {
        PreparedBatch {
            samples: self.samples.narrow(start, count),
            loss_weights: self.loss_weights.narrow(1, start, count),
            target_weight: self.target_weight.shallow_clone(),
            target_count: self.target_count.shallow_clone(),
        }
    }
}
