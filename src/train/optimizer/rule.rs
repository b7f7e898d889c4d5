//! The interface of the optimizer's rules.

use crate::train::threads::Threads;
use tch::Tensor;

/// The state of the rules: tensors by name.
pub(in crate::train) type Memory = Vec<(String, Tensor)>;

/// A rule that computes steps from gradients, at a learning rate of 1.
pub(super) trait Rule: std::fmt::Debug {
    /// Writes the steps of the rule's parameters into `direction`, given the gradient of all
    /// parameters; both are `[parameters]`. `step` counts from 1.
    fn direct(&mut self, gradient: &Tensor, direction: &mut Tensor, step: u64, threads: &Threads);

    /// Returns the rule's whole state except the number of steps; the tensors are not copies.
    fn memory(&self) -> Memory;
}
