//! The seam between families of networks and all who use them.

use super::config::ArchitectureConfig;
use super::exported::ExportedProgram;
use super::outputs::{Output, OutputSet, Outputs};
use super::parameters::{Builder, Parameter, Weights, initialise};
use super::size::Size;
use super::taps::Tap;
use std::any::Any;
use std::fmt::Debug;
use tch::Tensor;

/// The parts that all families share.
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
    /// A structure with the parameters that were collected.
    pub(super) fn new(config: ArchitectureConfig, builder: Builder) -> Structure {
        let (parameters, size) = builder.finish();
        Structure {
            config,
            parameters,
            size,
        }
    }
}

/// The structure of a network of any family: all of it but its tensors, which are
/// [`Weights`](super::Weights).
///
/// Structure without tensors lets training keep all parameters in one flat
/// vector, and lets an export run the same forward pass over the parameters of a
/// TorchScript module. What the network reads and computes is each kind's own:
/// see [`Evaluator`].
pub trait Architecture: Any + Debug + Send {
    /// Returns its configuration, parameters and size.
    fn structure(&self) -> &Structure;

    /// The tensors besides the parameters that the forward pass reads, by name. They
    /// keep their type, and in a network file they are buffers.
    fn constants(&self) -> Vec<(&str, &Tensor)>;

    /// Returns the program of its network file.
    fn exported(&self) -> ExportedProgram<'_>;

    /// The same as what evaluates positions.
    ///
    /// # Errors
    /// [`NotAnEvaluator`] if it does not.
    fn into_evaluator(self: Box<Self>) -> Result<Box<dyn Evaluator>, NotAnEvaluator> {
        Err(NotAnEvaluator(self.config().family()))
    }

    /// Returns its configuration.
    fn config(&self) -> ArchitectureConfig {
        self.structure().config.clone()
    }

    /// Its parameters, in the order of its weights.
    fn parameters(&self) -> &[Parameter] {
        &self.structure().parameters
    }

    /// Its size.
    fn size(&self) -> Size {
        self.structure().size
    }

    /// Its constants as a network file keeps them.
    fn buffers(&self) -> Vec<(String, Tensor)> {
        let constants = self.constants().into_iter();
        let named = |(name, tensor): (&str, &Tensor)| (name.to_owned(), tensor.shallow_clone());
        constants.map(named).collect()
    }

    /// Fresh parameters, end to end in one f32 vector on the CPU; decided by
    /// libtorch's seed alone.
    fn initial_weights(&self) -> Tensor {
        initialise(self.parameters())
    }
}

/// An architecture that evaluates positions, each by itself. It is what searches,
/// explanations and exports need.
pub trait Evaluator: Architecture {
    /// Returns its inputs and outputs.
    fn interface(&self) -> Interface;

    /// Returns whether it can compute an output, be it exported or for training only.
    fn has(&self, output: Output) -> bool;

    /// Evaluates positions: those of the `wanted` outputs that it has, and maybe
    /// others. `tap` collects what is inside.
    fn forward(
        &self,
        weights: &Weights,
        positions: Positions,
        wanted: OutputSet,
        tap: &Tap,
    ) -> Outputs;

    /// Reads the outputs off the tokens of these positions, [B, 64, width]: those
    /// after the last layer, or after an earlier one.
    fn read(
        &self,
        weights: &Weights,
        tokens: &Tensor,
        positions: Positions,
        wanted: OutputSet,
    ) -> Outputs;

    /// Weights in which one attention head adds nothing to the tokens; `None` if there
    /// is no such head. Layers and heads count from 0.
    fn without_head(&self, _weights: &Weights, _layer: usize, _head: usize) -> Option<Weights> {
        None
    }
}

/// B positions, in one of the two ways that a forward pass reads them.
#[derive(Clone, Copy, Debug)]
pub enum Positions<'a> {
    /// Rows of words i64 [B, 104 + scalars], as [`crate::encode::Input`] lays them
    /// out in the network's format; words beyond its scalars are not looked at.
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
    /// Planes as Lc0 fills them in the network's format.
    #[must_use]
    pub fn lc0_planes() -> Vec<(&'static str, Vec<i64>)> {
        vec![(PLANES, vec![112, 8, 8])]
    }
}

/// The name of the planes in ONNX: Lc0's.
pub(crate) const PLANES: &str = "/input/planes";

/// The family of a network that evaluates no single positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("networks of the family {0} do not evaluate single positions")]
pub struct NotAnEvaluator(pub &'static str);
