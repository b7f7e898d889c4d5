//! The interface between network families and their users.

use super::config::ArchitectureConfig;
use super::exported::ExportedProgram;
use super::outputs::{Output, OutputSet, Outputs};
use super::parameters::{Builder, Parameter, Weights, initialise};
use super::size::Size;
use super::taps::Tap;
use crate::backend::{Decoding, PredictedFuture};
use std::any::Any;
use std::fmt::Debug;
use tch::Tensor;

/// The parts that every family has.
#[derive(Debug)]
pub struct Structure {
    /// The network's configuration.
    pub config: ArchitectureConfig,
    /// The parameters, in the order of the weights.
    pub parameters: Vec<Parameter>,
    /// The network's size.
    pub size: Size,
}

impl Structure {
    /// Returns the common parts, with the parameters that `builder` has collected.
    pub(super) fn new(config: ArchitectureConfig, builder: Builder) -> Structure {
        let (parameters, size) = builder.finish();
        Structure {
            config,
            parameters,
            size,
        }
    }
}

/// The structure of a network of any family: everything except its tensors, which are in
/// [`Weights`](super::Weights).
///
/// Because structure and tensors are separate, training can keep all parameters in one flat vector,
/// and an export can run the same forward pass on the parameters of a TorchScript module.
/// [`Evaluator`] describes the inputs and outputs of networks that evaluate positions.
pub trait Architecture: Any + Debug + Send {
    /// Returns the network's configuration, parameters and size.
    fn structure(&self) -> &Structure;

    /// Returns the tensors, by name, that the forward pass reads in addition to the parameters.
    /// They keep their dtype, and network files store them as buffers.
    fn constants(&self) -> Vec<(&str, &Tensor)>;

    /// Returns the program that is stored in the network file.
    fn exported(&self) -> ExportedProgram<'_>;

    /// Returns the architecture as an [`Evaluator`].
    ///
    /// # Errors
    /// [`NotAnEvaluator`] if the family does not evaluate positions.
    fn into_evaluator(self: Box<Self>) -> Result<Box<dyn Evaluator>, NotAnEvaluator> {
        Err(NotAnEvaluator(self.config().family()))
    }

    /// Returns the network's configuration.
    fn config(&self) -> ArchitectureConfig {
        self.structure().config.clone()
    }

    /// Returns the network's parameters, in the order of its weights.
    fn parameters(&self) -> &[Parameter] {
        &self.structure().parameters
    }

    /// Returns the network's size.
    fn size(&self) -> Size {
        self.structure().size
    }

    /// Returns the constants in the form in which network files store them.
    fn buffers(&self) -> Vec<(String, Tensor)> {
        let constants = self.constants().into_iter();
        let named = |(name, tensor): (&str, &Tensor)| (name.to_owned(), tensor.shallow_clone());
        constants.map(named).collect()
    }

    /// Returns freshly initialised parameters, concatenated into one f32 vector on the CPU. The
    /// values depend only on libtorch's seed.
    fn initial_weights(&self) -> Tensor {
        initialise(self.parameters())
    }
}

/// An architecture that evaluates individual positions. Search, explanations and exports require an
/// `Evaluator`.
pub trait Evaluator: Architecture {
    /// Returns the network's inputs and outputs.
    fn interface(&self) -> Interface;

    /// Returns whether the network has an output, including outputs that are only used in training.
    fn has(&self, output: Output) -> bool;

    /// Returns the outputs of an exported network, in order.
    fn exported_outputs(&self) -> Vec<Output> {
        let exported = Output::ALL[..Output::PolicySoft as usize].iter().copied();
        exported.filter(|&output| self.has(output)).collect()
    }

    /// Evaluates positions. Returns at least the wanted outputs that the network has.
    fn forward(&self, weights: &Weights, pass: &Pass) -> Outputs;

    /// Evaluates positions, given as rows, as in play. A network that predicts futures evaluates them
    /// in the decoding's steps and also returns these futures.
    fn play(
        &self,
        weights: &Weights,
        rows: &Tensor,
        _decoding: Decoding,
    ) -> (Outputs, Vec<PredictedFuture>) {
        let wanted = self.interface().outputs.into_iter().collect();
        let pass = Pass::new(Positions::Rows(rows), wanted);
        (self.forward(weights, &pass), Vec::new())
    }

    /// Computes the outputs from the positions' tokens, [B, 64, width], after the last or an
    /// earlier layer.
    fn read(&self, weights: &Weights, tokens: &Tensor, pass: &Pass) -> Outputs;

    /// Returns weights in which one attention head has no effect on the tokens, or `None` if that
    /// head does not exist. Layers and heads are counted from 0.
    fn without_head(&self, _weights: &Weights, _layer: usize, _head: usize) -> Option<Weights> {
        None
    }
}

/// B positions, in one of the two forms that a forward pass accepts.
#[derive(Clone, Copy, Debug)]
pub enum Positions<'a> {
    /// Rows of words i64 [B, 104 + scalars], in the layout of [`crate::encode::Input`] and in the
    /// network's format. Words beyond the network's scalars are ignored.
    Rows(&'a Tensor),
    /// The inputs that [`Interface::planes`] lists. For a Chessformer that reads ratings, the
    /// mover's and the opponent's ratings, f32 `[B]`, may follow.
    Planes(&'a [Tensor]),
}

/// The inputs and the wanted outputs of a forward pass.
#[derive(Clone, Debug)]
pub struct Pass<'a> {
    /// The positions to evaluate.
    pub positions: Positions<'a>,
    /// The outputs to compute.
    pub wanted: OutputSet,
    /// Collects or changes intermediate tensors.
    pub tap: Tap<'a>,
}

impl<'a> Pass<'a> {
    /// Returns a pass whose intermediate tensors nobody watches.
    pub fn new(positions: Positions<'a>, wanted: OutputSet) -> Pass<'a> {
        Pass {
            positions,
            wanted,
            tap: Tap::default(),
        }
    }
}

/// A network's inputs and outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The encoding of the boards in a row, as
    /// [`InputFormat::number`](crate::encode::InputFormat::number).
    pub format: u32,
    /// The words of a row after the bitboards, a subset of [`crate::encode::SCALARS`].
    pub scalars: Vec<&'static str>,
    /// The outputs of an exported network, in order.
    pub outputs: Vec<Output>,
    /// The names and the shapes per position of the inputs that replace rows in exports to other
    /// programs. All are f32.
    pub planes: Vec<(&'static str, Vec<i64>)>,
}

impl Interface {
    /// Returns the name and the shape of Lc0's input planes, which all of its input formats share.
    pub fn lc0_planes() -> Vec<(&'static str, Vec<i64>)> {
        vec![(PLANES, vec![112, 8, 8])]
    }
}

/// The ONNX name of the planes, as in Lc0.
pub(crate) const PLANES: &str = "/input/planes";

/// The error for a family that does not evaluate single positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("networks of the family {0} do not evaluate single positions")]
pub struct NotAnEvaluator(pub &'static str);
