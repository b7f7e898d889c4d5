//! A batch on the device.

use super::teacher::TeacherOutputs;
use super::tensors::Targets;
use tch::Tensor;

/// A batch on the device with everything that its losses need.
#[derive(Debug)]
pub(super) struct PreparedBatch {
    /// i64 [B, WIDTH].
    pub rows: Tensor,
    pub targets: Targets,
    pub teacher: Option<TeacherOutputs>,
    /// Weight of each sample in each loss, f32 [L, B]; 0 without the target.
    pub loss_weights: Tensor,
    /// Total weight of the samples that have each loss's target, f32 [L]: the
    /// divisor of the loss's sum. It covers this batch alone until it is summed
    /// over replicas and processes.
    pub target_weight: Tensor,
    /// Number of samples that have each loss's target, f32 [L].
    pub target_count: Tensor,
}

impl PreparedBatch {
    /// A micro-batch, whose losses are still divided by the target weights of the
    /// whole batch.
    pub fn narrow(&self, start: i64, count: i64) -> PreparedBatch {
        PreparedBatch {
            rows: self.rows.narrow(0, start, count),
            targets: self.targets.narrow(start, count),
            teacher: self
                .teacher
                .as_ref()
                .map(|teacher| teacher.narrow(start, count)),
            loss_weights: self.loss_weights.narrow(1, start, count),
            target_weight: self.target_weight.shallow_clone(),
            target_count: self.target_count.shallow_clone(),
        }
    }
}
