//! What a network file runs, for Python and other programs.

use crate::nn::metadata::EncoderSpec;
use crate::nn::torch::TracedMethod;

/// What a network is told of a game, and what it computes of that.
pub struct Program<'a> {
    /// What it is told.
    pub encoder: EncoderSpec,
    /// What it computes.
    pub methods: Vec<TracedMethod<'a>>,
}
