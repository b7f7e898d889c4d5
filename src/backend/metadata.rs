//! Network metadata: the contract between the trainer that writes a network file and the engine
//! that reads it.
//!
//! A network is one TorchScript file. A separate record in its archive contains the [`Metadata`] as
//! JSON, which can be read before any code in the file runs. The `meta()` method returns the same
//! text.

mod tensors;

pub use tensors::{DataType, Dimension, TensorSpec};

use crate::encode::{HISTORY, InputFormat, SCALARS};
use crate::tactics::correction::{Correction, CorrectionError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Contract version that this program reads and writes.
pub const CONTRACT: u32 = 2;
/// Outputs that can rank moves. See [`Metadata::search_value`].
pub const SEARCH_VALUES: [&str; 3] = ["wdl", "q", "st"];
/// The name of a network file's metadata record, below `extra/`.
pub const RECORD: &str = "metadata.json";
/// The method that evaluates positions.
pub const FORWARD: &str = "forward";
/// The tags of [`EncoderSpec`].
const ENCODERS: [&str; 2] = ["planes", "moves"];
/// The method of a move-token model that reads one more token per game.
pub const STEP: &str = "step";

/// The metadata of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// Version of this contract, [`CONTRACT`].
    pub contract: u32,
    /// The network's name.
    pub name: String,
    /// Its family and sizes, from which `crate::network` builds the network.
    pub architecture: serde_json::Value,
    /// The input it reads.
    pub encoder: EncoderSpec,
    /// Its methods, by name.
    ///
    /// [`FORWARD`] takes rows and returns a tuple. The known outputs are the logits `policy` (B ×
    /// 1858) and `wdl` (B × 3), `moves_left` (B) in plies, the values `q` and `st` in −1…1, and
    /// their expected squared errors `q_error` and `st_error`.
    ///
    /// In a move-token model, [`FORWARD`] reads whole games, and [`STEP`] reads one more token per
    /// game, given the keys and values of earlier tokens. See `network::gpt`.
    pub methods: BTreeMap<String, Method>,
    /// The output that ranks moves, one of [`SEARCH_VALUES`]; `wdl` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search_value: Option<String>,
    /// The correction of its policy, if it has one: where it stands for people's moves if the network reads
    /// ratings, and otherwise in a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<Correction>,
    /// Number of parameters, without those of the correction.
    pub parameters: u64,
    /// Multiply–accumulates per evaluation in the dense layers of the body, the embedding's
    /// feed-forward blocks and the policy head.
    pub macs: u64,
    /// Human-readable notes on its training data and method.
    pub training: serde_json::Value,
    /// Licence of the weights, as an SPDX expression.
    pub licence: String,
    /// The [`tensor_hash`](crate::torch::tensor_hash) of its parameters and buffers.
    pub hash: String,
}

/// A network's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum EncoderSpec {
    /// Rows of bitboards and scalars, for networks that evaluate positions.
    Planes(PlanesSpec),
    /// The moves of a game, one token each.
    Moves {
        /// Maximum number of tokens that it reads.
        context: u32,
    },
}

/// Rows of bitboards and scalars.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanesSpec {
    /// The encoding of boards: an [`InputFormat::number`].
    pub format: u32,
    /// Number of positions in a row, including the current one: [`HISTORY`].
    pub history: u32,
    /// Names of the words that follow the bitboards in a row, in order. Each is one of [`SCALARS`].
    /// They include the players' ratings if the network reads them.
    pub scalars: Vec<String>,
}

impl PlanesSpec {
    /// Returns the spec of a format with the standard history.
    pub fn new(format: u32, scalars: Vec<String>) -> PlanesSpec {
        PlanesSpec {
            format,
            history: HISTORY as u32,
            scalars,
        }
    }

    /// Returns whether the mover's rating is among the inputs.
    pub fn reads_ratings(&self) -> bool {
        self.scalars.iter().any(|name| name == "self_elo")
    }

    /// Returns the input tensor.
    pub fn rows(&self) -> TensorSpec {
        TensorSpec::rows(self.scalars.len())
    }
}

/// The inputs and outputs of a method.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Method {
    /// Its arguments, in order.
    pub inputs: Vec<TensorSpec>,
    /// The elements of the tuple that it returns, in order.
    pub outputs: Vec<TensorSpec>,
}

/// Why a network's metadata is refused.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// The metadata is not JSON, or a field is missing or of the wrong type.
    #[error("its metadata cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A field has a value that another version or program wrote.
    #[error("its field `{field}` is {found}; this engine supports {known}")]
    Unknown {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// The values that this engine supports.
        known: String,
    },
    /// A tensor's dtype or shape does not match its name.
    #[error("its `{0}` does not have the type and shape that this name implies")]
    Tensor(String),
    /// The file is a move-token model, but a position network is required.
    #[error("it reads whole games, move by move: networks that evaluate positions are needed here")]
    NotPositions,
    /// The correction cannot be used.
    #[error("its correction cannot be used: {0}")]
    Correction(#[from] CorrectionError),
    /// A required output is missing.
    #[error("it has no output `{output}`, which {consumer} needs: its `outputs` are {outputs}")]
    MissingOutput {
        /// The feature that needs it.
        consumer: &'static str,
        /// The output.
        output: String,
        /// The available outputs.
        outputs: String,
    },
}

impl Metadata {
    /// Reads and checks the metadata of a network file.
    ///
    /// # Errors
    /// [`ContractError`], which names the unsupported field.
    pub fn parse(json: &str) -> Result<Metadata, ContractError> {
        let value: serde_json::Value = serde_json::from_str(json)?;
        // Check the version first, because another version may lack fields.
        if let Some(version) = value
            .get("contract")
            .filter(|&version| *version != CONTRACT)
        {
            return Err(unknown("contract", version, CONTRACT));
        }
        let kind = &value["encoder"]["kind"];
        if kind.as_str().is_some_and(|kind| !ENCODERS.contains(&kind)) {
            return Err(unknown("encoder.kind", kind, ENCODERS.join(", ")));
        }
        let metadata: Metadata = serde_json::from_value(value)?;
        metadata.check()?;
        Ok(metadata)
    }

    /// Checks that this engine can evaluate the network. Consumers check its outputs with
    /// [`require`](Metadata::require).
    ///
    /// # Errors
    /// [`ContractError`], which names the unsupported field.
    pub fn check(&self) -> Result<(), ContractError> {
        if self.contract != CONTRACT {
            return Err(unknown("contract", self.contract, CONTRACT));
        }
        let Some(forward) = self.methods.get(FORWARD) else {
            let found = self.methods.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(unknown("methods", found, FORWARD));
        };
        match &self.encoder {
            EncoderSpec::Planes(planes) => check_positions(planes, forward)?,
            EncoderSpec::Moves { context } if *context < 2 => {
                return Err(unknown("encoder.context", context, "2 and more"));
            }
            EncoderSpec::Moves { .. } => {}
        }
        let search_value = self.search_value();
        if !SEARCH_VALUES.contains(&search_value) {
            let known = SEARCH_VALUES.join(", ");
            return Err(unknown("search_value", search_value, known));
        }
        if let Some(correction) = &self.correction {
            correction.check()?;
        }
        Ok(())
    }

    /// Checks that the network has the outputs that a `consumer` needs and the output that ranks
    /// moves.
    ///
    /// # Errors
    /// [`ContractError::MissingOutput`], which names the first missing output.
    pub fn require(&self, consumer: &'static str, outputs: &[&str]) -> Result<(), ContractError> {
        let ranks = self.search_value();
        match outputs
            .iter()
            .chain([&ranks])
            .find(|name| self.output(name).is_none())
        {
            None => Ok(()),
            Some(&output) => Err(ContractError::MissingOutput {
                consumer,
                output: output.to_owned(),
                outputs: self.outputs().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Returns the input of a position network.
    ///
    /// # Errors
    /// [`ContractError::NotPositions`] if the network does not read positions.
    pub fn planes(&self) -> Result<&PlanesSpec, ContractError> {
        match &self.encoder {
            EncoderSpec::Planes(planes) => Ok(planes),
            EncoderSpec::Moves { .. } => Err(ContractError::NotPositions),
        }
    }

    /// Returns the encoding of positions, if this engine knows it.
    pub fn format(&self) -> Option<InputFormat> {
        InputFormat::from_number(self.planes().ok()?.format)
    }

    /// Returns the names of the outputs, in tuple order.
    pub fn outputs(&self) -> impl Iterator<Item = &str> {
        let forward = self.methods.get(FORWARD).into_iter();
        let outputs = forward.flat_map(|method| &method.outputs);
        outputs.map(|output| output.name.as_str())
    }

    /// Returns the index of an output in the tuple.
    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs().position(|output| output == name)
    }

    /// Returns the output that ranks moves.
    pub fn search_value(&self) -> &str {
        self.search_value.as_deref().unwrap_or("wdl")
    }

    /// Returns the names of the output that ranks moves and of its error, unless `wdl` ranks moves.
    #[cfg(feature = "torch")]
    pub(crate) fn ranking_outputs(&self) -> Option<[&'static str; 2]> {
        ranking_outputs(self.search_value())
    }
}

fn check_positions(planes: &PlanesSpec, forward: &Method) -> Result<(), ContractError> {
    if planes.history != HISTORY as u32 {
        return Err(unknown("encoder.history", planes.history, HISTORY));
    }
    if InputFormat::from_number(planes.format).is_none() {
        let known = InputFormat::ALL.map(|format| format.number().to_string());
        let known = known.join(", ");
        return Err(unknown("encoder.format", planes.format, known));
    }
    for name in &planes.scalars {
        if !SCALARS.contains(&name.as_str()) {
            return Err(unknown("encoder.scalars", name, SCALARS.join(", ")));
        }
    }
    if forward.inputs != [planes.rows()] {
        return Err(ContractError::Tensor("rows".to_owned()));
    }
    for output in &forward.outputs {
        if *output != TensorSpec::of_output(&output.name) {
            return Err(ContractError::Tensor(output.name.clone()));
        }
    }
    Ok(())
}

fn unknown(
    field: &'static str,
    found: impl std::fmt::Display,
    known: impl std::fmt::Display,
) -> ContractError {
    ContractError::Unknown {
        field,
        found: format!("`{found}`"),
        known: known.to_string(),
    }
}

/// Implements [`Metadata::ranking_outputs`] for a network's search value.
#[cfg(feature = "torch")]
pub(crate) fn ranking_outputs(search_value: &str) -> Option<[&'static str; 2]> {
    match search_value {
        "q" => Some(["q", "q_error"]),
        "st" => Some(["st", "st_error"]),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the metadata of a network with the given outputs.
    pub(crate) fn metadata(outputs: &[&str], search_value: &str) -> Metadata {
        let scalars = SCALARS.map(str::to_owned).to_vec();
        let format = InputFormat::Classical.number();
        let planes = PlanesSpec::new(format, scalars);
        let outputs = outputs.iter().map(|name| TensorSpec::of_output(name));
        let forward = Method {
            inputs: vec![planes.rows()],
            outputs: outputs.collect(),
        };
        Metadata {
            contract: CONTRACT,
            name: "tiny".to_owned(),
            architecture: serde_json::json!({ "layers": 0 }),
            encoder: EncoderSpec::Planes(planes),
            methods: [(FORWARD.to_owned(), forward)].into(),
            search_value: Some(search_value.to_owned()),
            correction: None,
            parameters: 0,
            macs: 0,
            training: serde_json::Value::Null,
            licence: "CC0-1.0".to_owned(),
            hash: String::new(),
        }
    }

    #[test]
    fn json_and_back_is_the_identity() {
        let metadata = metadata(&["policy", "wdl", "q"], "q");
        let json = serde_json::to_string(&metadata).unwrap();
        assert_eq!(Metadata::parse(&json).unwrap(), metadata);
    }

    #[test]
    fn errors_name_the_field() {
        let good = serde_json::to_value(metadata(&["policy", "wdl"], "wdl")).unwrap();
        let changes = [
            ("/contract", serde_json::json!(1)),
            ("/contract", serde_json::json!(3)),
            ("/contract", serde_json::json!("one")),
            ("/encoder/kind", serde_json::json!("tokens")),
            ("/encoder/format", serde_json::json!(6)),
            ("/encoder/history", serde_json::json!(1)),
            ("/encoder/scalars", serde_json::json!(["rule50", "phase"])),
            ("/methods", serde_json::json!({})),
            ("/search_value", serde_json::json!("policy")),
        ];
        for (place, value) in changes {
            let mut changed = good.clone();
            *changed.pointer_mut(place).unwrap() = value.clone();
            let error = Metadata::parse(&changed.to_string()).unwrap_err();
            let field = place.rsplit('/').next().unwrap();
            assert!(error.to_string().contains(field), "{value}: {error}");
        }
        for (place, value, tensor) in [
            (
                "/methods/forward/inputs/0/shape/1",
                serde_json::json!(7),
                "rows",
            ),
            (
                "/methods/forward/inputs/0/dtype",
                serde_json::json!("f32"),
                "rows",
            ),
            ("/methods/forward/inputs", serde_json::json!([]), "rows"),
            (
                "/methods/forward/outputs/0/shape/1",
                serde_json::json!(1859),
                "policy",
            ),
            (
                "/methods/forward/outputs/1/shape/0",
                serde_json::json!("T"),
                "wdl",
            ),
        ] {
            let mut changed = good.clone();
            *changed.pointer_mut(place).unwrap() = value;
            let error = Metadata::parse(&changed.to_string()).unwrap_err();
            assert!(error.to_string().contains(tensor), "{place}: {error}");
        }
        let mut missing = good.clone();
        missing.as_object_mut().unwrap().remove("licence");
        let error = Metadata::parse(&missing.to_string()).unwrap_err();
        assert!(error.to_string().contains("licence"), "{error}");
    }

    #[test]
    fn names_missing_outputs_of_a_player() {
        let needs = ["policy", "wdl"];
        let of = |outputs: &[&str], search_value| {
            let missing = metadata(outputs, search_value).require("a player", &needs);
            missing.map_err(|error| error.to_string())
        };
        assert_eq!(of(&["wdl", "policy"], "wdl"), Ok(()));
        assert!(of(&["policy"], "wdl").unwrap_err().contains("`wdl`"));
        assert!(of(&["wdl"], "wdl").unwrap_err().contains("`policy`"));
        let error = of(&["policy", "wdl"], "q").unwrap_err();
        assert!(
            error.contains("`q`") && error.contains("a player"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_refuse(text in ".*") {
            prop_assert!(Metadata::parse(&text).is_err());
        }
    }
}
