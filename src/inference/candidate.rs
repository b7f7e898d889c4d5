//! The families, and the ways to run their networks.

use crate::backend::Way;
use crate::network::ArchitectureConfig;
use crate::torch::ComputeType;
use tch::Kind;

/// The families that differ in the ways in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Chessformers, and world models, whose positions a Chessformer evaluates.
    Chessformer,
    /// Other networks that evaluate positions.
    Evaluator,
    /// Networks that predict futures, which the code in their files does not.
    Diffusion,
    /// Networks that read games, whose files contain no code that evaluates positions.
    Moves,
    /// Unknown families.
    Foreign,
}

impl Family {
    /// Returns the family of an architecture; `None` is an unknown architecture.
    pub fn of(config: Option<&ArchitectureConfig>) -> Family {
        match config {
            Some(ArchitectureConfig::Chessformer { .. } | ArchitectureConfig::World { .. }) => {
                Family::Chessformer
            }
            Some(ArchitectureConfig::Diffusion { .. }) => Family::Diffusion,
            Some(ArchitectureConfig::Gpt { .. }) => Family::Moves,
            Some(_) => Family::Evaluator,
            None => Family::Foreign,
        }
    }
}

/// A way to run a network, and the dtype in which it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub way: Way,
    pub dtype: ComputeType,
}

/// Returns the candidate to whose results those of the others are compared: the way that is trusted
/// most, in f32.
pub(crate) fn reference(candidates: &[Candidate]) -> Option<Candidate> {
    let dtype = Kind::Float.into();
    candidates.last().map(|last| Candidate { dtype, ..*last })
}
