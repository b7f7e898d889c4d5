//! The interface of optimizer rules.

use crate::train::threads::Threads;
use tch::Tensor;

/// The state of the rules: tensors by name.
pub(in crate::train) type Memory = Vec<(String, Tensor)>;

/// A rule computes steps from gradients, at learning rate 1.
pub(super) trait Rule: std::fmt::Debug {
    /// Writes the steps of the rule's parameters into `direction`, given the
    /// gradient of all; both `[parameters]`. `step` counts from 1.
    fn direct(&mut self, gradient: &Tensor, direction: &mut Tensor, step: u64, threads: &Threads);

    /// Returns the rule's whole state other than the number of steps; the tensors are not copies.
    fn memory(&self) -> Memory;
}
