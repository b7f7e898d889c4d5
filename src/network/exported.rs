//! What a network file runs, for Python and other programs.

use crate::backend::metadata::EncoderSpec;
use crate::torch::TracedMethod;

/// What a network is told of a game, and what it computes of that.
pub struct ExportedProgram<'a> {
    /// What it is told.
    pub encoder: EncoderSpec,
    /// What it computes.
    pub methods: Vec<TracedMethod<'a>>,
}

impl ExportedProgram<'_> {
    /// Whether a method returns an output of this name.
    #[must_use]
    pub fn has_output(&self, name: &str) -> bool {
        let outputs = self.methods.iter().flat_map(|method| &method.outputs);
        outputs.into_iter().any(|output| output.name == name)
    }
}
