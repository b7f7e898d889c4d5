//! Network metadata: the contract between the trainer that writes a network file
//! and the engine that reads it.
//!
//! A network is one TorchScript file; its method `meta()` returns this
//! structure as JSON.

use crate::encode::{HISTORY, InputFormat, SCALARS};
use serde::{Deserialize, Serialize};

/// Version of the contract that this program writes and reads.
pub const CONTRACT: u32 = 1;
/// Outputs that can rank moves, see [`Metadata::search_value`].
pub const SEARCH_VALUES: [&str; 3] = ["wdl", "q", "st"];

/// The metadata of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// Version of this contract, [`CONTRACT`].
    pub contract: u32,
    /// The network's name.
    pub name: String,
    /// Its family and sizes, for people.
    pub architecture: serde_json::Value,
    /// How positions are encoded, [`InputFormat::number`].
    pub input_format: u32,
    /// Positions of history it reads, the current one included: [`HISTORY`].
    pub history: u32,
    /// Names of the input's words after the bitboards, in order; each one of
    /// [`SCALARS`].
    pub scalars: Vec<String>,
    /// Names of the outputs, in the order of the tuple that it returns.
    ///
    /// `policy` (B × 1858) and `wdl` (B × 3), both logits, are always there.
    /// Known besides: `moves_left` (B) in plies, `q` and `st` in −1…1,
    /// `q_error` and `st_error`, expected squared errors, and
    /// `policy_optimistic` (B × 1858), the logits of KataGo's optimistic policy.
    pub outputs: Vec<String>,
    /// The output that ranks moves, one of [`SEARCH_VALUES`].
    pub search_value: String,
    /// Parameters.
    pub parameters: u64,
    /// Multiply–accumulates of one evaluation: dense layers of the body, the
    /// embedding's feed-forwards and the policy head.
    pub macs: u64,
    /// What it was trained on and how, for people.
    pub training: serde_json::Value,
    /// Licence of the weights, as an SPDX expression.
    pub licence: String,
    /// [`tensor_hash`](super::tensor_hash) of its parameters and buffers.
    pub hash: String,
}

/// Why a network's metadata is refused.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// Not JSON, or a field is missing or of the wrong type.
    #[error("its metadata cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A field has a value from another version or program.
    #[error("its field `{field}` is {found}; this engine knows {known}")]
    Unknown {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// What this engine reads.
        known: String,
    },
    /// An output that every player needs is missing.
    #[error("its field `outputs` does not name `{0}`")]
    MissingOutput(String),
}

impl Metadata {
    /// Reads and checks what `meta()` returned.
    ///
    /// # Errors
    /// [`ContractError`], naming the field this engine cannot work with.
    pub fn parse(json: &str) -> Result<Metadata, ContractError> {
        let value: serde_json::Value = serde_json::from_str(json)?;
        // Checked first, since another version may lack fields of this one.
        if let Some(contract) = value.get("contract")
            && contract != CONTRACT
        {
            return Err(unknown("contract", contract, CONTRACT));
        }
        let metadata: Metadata = serde_json::from_value(value)?;
        metadata.check()?;
        Ok(metadata)
    }

    /// Whether this engine can use such a network.
    ///
    /// # Errors
    /// [`ContractError`], naming the field this engine cannot work with.
    pub fn check(&self) -> Result<(), ContractError> {
        let numbers = [
            ("contract", self.contract, CONTRACT),
            ("history", self.history, HISTORY as u32),
        ];
        for (field, found, known) in numbers {
            if found != known {
                return Err(unknown(field, found, known));
            }
        }
        if self.format().is_none() {
            let known = InputFormat::ALL.map(|format| format.number().to_string());
            let known = known.join(", ");
            return Err(unknown("input_format", self.input_format, known));
        }
        for name in &self.scalars {
            if !SCALARS.contains(&name.as_str()) {
                return Err(unknown("scalars", name, SCALARS.join(", ")));
            }
        }
        let search_value = self.search_value.as_str();
        if !SEARCH_VALUES.contains(&search_value) {
            let known = SEARCH_VALUES.join(", ");
            return Err(unknown("search_value", search_value, known));
        }
        for required in ["policy", "wdl", search_value] {
            if self.output(required).is_none() {
                return Err(ContractError::MissingOutput(required.to_owned()));
            }
        }
        Ok(())
    }

    /// How positions are encoded, if this engine knows how.
    #[must_use]
    pub fn format(&self) -> Option<InputFormat> {
        InputFormat::from_number(self.input_format)
    }

    /// Index of an output in the tuple.
    #[must_use]
    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|output| output == name)
    }
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The metadata of a network with the given outputs.
    pub(crate) fn metadata(outputs: &[&str], search_value: &str) -> Metadata {
        Metadata {
            contract: CONTRACT,
            name: "tiny".to_owned(),
            architecture: serde_json::json!({ "layers": 0 }),
            input_format: InputFormat::Classical.number(),
            history: HISTORY as u32,
            scalars: SCALARS.map(str::to_owned).to_vec(),
            outputs: outputs.iter().map(|&name| name.to_owned()).collect(),
            search_value: search_value.to_owned(),
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
            ("contract", serde_json::json!(2)),
            ("contract", serde_json::json!("one")),
            ("input_format", serde_json::json!(6)),
            ("history", serde_json::json!(1)),
            ("scalars", serde_json::json!(["rule50", "phase"])),
            ("outputs", serde_json::json!(["policy"])),
            ("outputs", serde_json::json!(["wdl"])),
            ("search_value", serde_json::json!("policy")),
        ];
        for (field, value) in changes {
            let mut changed = good.clone();
            changed[field] = value.clone();
            let error = Metadata::parse(&changed.to_string()).unwrap_err();
            assert!(error.to_string().contains(field), "{value}: {error}");
        }
        let mut missing = good.clone();
        missing.as_object_mut().unwrap().remove("licence");
        let error = Metadata::parse(&missing.to_string()).unwrap_err();
        assert!(error.to_string().contains("licence"), "{error}");
        let error = metadata(&["policy", "wdl"], "q").check().unwrap_err();
        assert!(matches!(error, ContractError::MissingOutput(name) if name == "q"));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_refuse(text in ".*") {
            prop_assert!(Metadata::parse(&text).is_err());
        }
    }
}
