//! Plain gradient descent.

use super::rule::{Memory, Rule};
use crate::train::threads::Threads;
use tch::Tensor;

/// A rule that uses the gradient itself as the step.
#[derive(Debug)]
pub(super) struct Sgd;

impl Rule for Sgd {
    fn direct(&mut self, gradient: &Tensor, direction: &mut Tensor, _step: u64, _: &Threads) {
        direction.copy_(gradient);
    }

    fn memory(&self) -> Memory {
        Memory::new()
    }
}
