//! The interface of the optimizer's rules.

use crate::train::threads::Threads;
use tch::Tensor;

/// The state of the rules: tensors by name.
pub(in crate::train) type Memory = Vec<(String, Tensor)>;

/// A rule that computes steps from gradients. The caller multiplies the steps by the learning rate.
pub(super) trait Rule: std::fmt::Debug {
    /// Writes the steps of the rule's parameters to `direction`, given the gradient of all
    /// parameters. Both vectors are `[parameters]`, and `step` counts from 1.
    fn direct(&mut self, gradient: &Tensor, direction: &mut Tensor, step: u64, threads: &Threads);

    /// Returns the rule's state, except for the number of steps. The tensors share the rule's
    /// memory.
    fn memory(&self) -> Memory;
}
