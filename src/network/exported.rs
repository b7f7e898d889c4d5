//! The programs in network files, for Python and other readers.

use crate::backend::metadata::EncoderSpec;
use crate::torch::TracedMethod;

/// A network's input and methods.
pub struct ExportedProgram<'a> {
    /// The network's input.
    pub encoder: EncoderSpec,
    /// The network's methods.
    pub methods: Vec<TracedMethod<'a>>,
}

impl ExportedProgram<'_> {
    /// Returns whether any method returns an output with this name.
    pub fn has_output(&self, name: &str) -> bool {
        let outputs = self.methods.iter().flat_map(|method| &method.outputs);
        outputs.into_iter().any(|output| output.name == name)
    }
}
