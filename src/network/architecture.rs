//! The seam between families of networks and all who use them.

use super::evaluator::Evaluator;
use super::exported::ExportedProgram;
use super::family::ArchitectureConfig;
use super::parameters::{Parameter, initialise};
use super::size::Size;
use std::any::Any;
use std::fmt::Debug;
use tch::Tensor;

/// The structure of a network of any family: all of it but its tensors, which are
/// [`Weights`](super::Weights).
///
/// Structure without tensors lets training keep all parameters in one flat
/// vector, and lets an export run the same forward pass over the parameters of a
/// TorchScript module. What the network reads and computes is each kind's own:
/// see [`Evaluator`].
pub trait Architecture: Any + Debug + Send {
    /// What it is built from.
    fn config(&self) -> ArchitectureConfig;

    /// Its parameters, in the order of its weights.
    fn parameters(&self) -> &[Parameter];

    /// The tensors besides the parameters that the forward pass reads, by name. They
    /// keep their type, and in a network file they are buffers.
    fn buffers(&self) -> Vec<(String, Tensor)>;

    /// How large it is.
    fn size(&self) -> Size;

    /// What its network file runs.
    fn exported(&self) -> ExportedProgram<'_>;

    /// The same as what evaluates positions.
    ///
    /// # Errors
    /// [`NotAnEvaluator`] if it does not.
    fn into_evaluator(self: Box<Self>) -> Result<Box<dyn Evaluator>, NotAnEvaluator> {
        Err(NotAnEvaluator(self.config().family()))
    }

    /// Fresh parameters, end to end in one f32 vector on the CPU; decided by
    /// libtorch's seed alone.
    fn initial_weights(&self) -> Tensor {
        initialise(self.parameters())
    }
}

/// The family of a network that evaluates no single positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("networks of the family {0} do not evaluate single positions")]
pub struct NotAnEvaluator(pub &'static str);
