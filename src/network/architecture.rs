//! The interface between network families and their users.

use super::config::ArchitectureConfig;
use super::exported::ExportedProgram;
use super::outputs::{Output, OutputSet, Outputs};
use super::parameters::{Builder, Parameter, Weights, initialise};
use super::size::Size;
use super::taps::Tap;
use std::any::Any;
use std::fmt::Debug;
use tch::Tensor;

/// The parts common to all families.
#[derive(Debug)]
pub struct Structure {
    /// The network's configuration.
    pub config: ArchitectureConfig,
    /// Its parameters, in the order of its weights.
    pub parameters: Vec<Parameter>,
    /// Its size.
    pub size: Size,
}

impl Structure {
    /// Returns a structure with the collected parameters.
    pub(super) fn new(config: ArchitectureConfig, builder: Builder) -> Structure {
        let (parameters, size) = builder.finish();
        Structure {
            config,
            parameters,
            size,
        }
    }
}

/// The structure of a network of any family: everything except its tensors, which are
/// [`Weights`](super::Weights).
///
/// Separating structure from tensors lets training keep all parameters in one flat vector, and
/// lets an export run the same forward pass over the parameters of a TorchScript module. Inputs
/// and outputs differ by kind: see [`Evaluator`].
pub trait Architecture: Any + Debug + Send {
    /// Returns its configuration, parameters and size.
    fn structure(&self) -> &Structure;

    /// Returns the named tensors, other than parameters, that the forward pass reads. They keep
    /// their dtype, and a network file stores them as buffers.
    fn constants(&self) -> Vec<(&str, &Tensor)>;

    /// Returns the program of its network file.
    fn exported(&self) -> ExportedProgram<'_>;

    /// Returns it as an [`Evaluator`].
    ///
    /// # Errors
    /// [`NotAnEvaluator`] if it does not evaluate positions.
    fn into_evaluator(self: Box<Self>) -> Result<Box<dyn Evaluator>, NotAnEvaluator> {
        Err(NotAnEvaluator(self.config().family()))
    }

    /// Returns its configuration.
    fn config(&self) -> ArchitectureConfig {
        self.structure().config.clone()
    }

    /// Returns its parameters, in the order of its weights.
    fn parameters(&self) -> &[Parameter] {
        &self.structure().parameters
    }

    /// Returns its size.
    fn size(&self) -> Size {
        self.structure().size
    }

    /// Returns its constants as a network file stores them.
    fn buffers(&self) -> Vec<(String, Tensor)> {
        let constants = self.constants().into_iter();
        let named = |(name, tensor): (&str, &Tensor)| (name.to_owned(), tensor.shallow_clone());
        constants.map(named).collect()
    }

    /// Returns fresh parameters, concatenated into one f32 vector on the CPU. They depend only on
    /// libtorch's seed.
    fn initial_weights(&self) -> Tensor {
        initialise(self.parameters())
    }
}

/// An architecture that evaluates individual positions, as search, explanations and exports
/// require.
pub trait Evaluator: Architecture {
    /// Returns its inputs and outputs.
    fn interface(&self) -> Interface;

    /// Returns whether it can compute an output, exported or for training only.
    fn has(&self, output: Output) -> bool;

    /// Evaluates positions and returns at least those `wanted` outputs that it has. `tap`
    /// collects intermediate tensors.
    fn forward(
        &self,
        weights: &Weights,
        positions: Positions,
        wanted: OutputSet,
        tap: &Tap,
    ) -> Outputs;

    /// Computes the outputs from the tokens of these positions, [B, 64, width], after the last
    /// layer or an earlier one.
    fn read(
        &self,
        weights: &Weights,
        tokens: &Tensor,
        positions: Positions,
        wanted: OutputSet,
    ) -> Outputs;

    /// Returns weights in which one attention head adds nothing to the tokens, or `None` if that
    /// head does not exist. Layers and heads count from 0.
    fn without_head(&self, _weights: &Weights, _layer: usize, _head: usize) -> Option<Weights> {
        None
    }
}

/// B positions, in one of the two input forms of a forward pass.
#[derive(Clone, Copy, Debug)]
pub enum Positions<'a> {
    /// Rows of words i64 [B, 104 + scalars], as [`crate::encode::Input`] lays them out in the
    /// network's format; words beyond its scalars are ignored.
    Rows(&'a Tensor),
    /// The inputs that [`Interface::planes`] lists. If a Chessformer reads ratings, the mover's
    /// and the opponent's, f32 `[B]`, may follow.
    Planes(&'a [Tensor]),
}

/// A network's inputs and outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The encoding of a row's boards:
    /// [`InputFormat::number`](crate::encode::InputFormat::number).
    pub format: u32,
    /// The words of a row after the bitboards, of [`crate::encode::SCALARS`].
    pub scalars: Vec<&'static str>,
    /// The outputs of an exported network, in order.
    pub outputs: Vec<Output>,
    /// The inputs that replace rows in exports to other programs: names and the shape of a
    /// position, all f32.
    pub planes: Vec<(&'static str, Vec<i64>)>,
}

impl Interface {
    /// Returns the planes that Lc0 fills in the network's format.
    #[must_use]
    pub fn lc0_planes() -> Vec<(&'static str, Vec<i64>)> {
        vec![(PLANES, vec![112, 8, 8])]
    }
}

/// The ONNX name of the planes, as in Lc0.
pub(crate) const PLANES: &str = "/input/planes";

/// The family of a network that does not evaluate single positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("networks of the family {0} do not evaluate single positions")]
pub struct NotAnEvaluator(pub &'static str);
