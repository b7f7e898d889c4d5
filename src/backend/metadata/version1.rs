//! Network files of contract version 1. Their network maps one row of words to a tuple of named
//! outputs, and `meta()` describes the row and the outputs.

use super::{CONTRACT, EncoderSpec, FORWARD, Metadata, Method, PlanesSpec, TensorSpec};
use serde::Deserialize;

/// The version 1 metadata.
#[derive(Deserialize)]
pub(super) struct Version1 {
    name: String,
    architecture: serde_json::Value,
    input_format: u32,
    history: u32,
    scalars: Vec<String>,
    outputs: Vec<String>,
    search_value: String,
    parameters: u64,
    macs: u64,
    training: serde_json::Value,
    licence: String,
    hash: String,
}

impl From<Version1> for Metadata {
    fn from(old: Version1) -> Metadata {
        let planes = PlanesSpec {
            format: old.input_format,
            history: old.history,
            scalars: old.scalars,
        };
        let outputs = old.outputs.iter().map(|name| TensorSpec::of_output(name));
        let forward = Method {
            inputs: vec![planes.rows()],
            outputs: outputs.collect(),
        };
        Metadata {
            contract: CONTRACT,
            name: old.name,
            architecture: old.architecture,
            encoder: EncoderSpec::Planes(planes),
            methods: [(FORWARD.to_owned(), forward)].into(),
            search_value: Some(old.search_value),
            correction: None,
            parameters: old.parameters,
            macs: old.macs,
            training: old.training,
            licence: old.licence,
            hash: old.hash,
        }
    }
}
