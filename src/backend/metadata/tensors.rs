//! Specs of the tensors that a network's methods take and return.

use crate::encode::{BOARDS, POLICY_SIZE};
use serde::{Deserialize, Serialize};

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataType {
    /// 64-bit integers.
    I64,
    /// Floating-point values in the network's dtype.
    F32,
}

/// The size of one dimension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dimension {
    /// A constant.
    Fixed(i64),
    /// A variable size: `B` is the number of positions in a batch.
    Symbol(String),
}

impl Dimension {
    /// Returns the symbol for the number of positions in a batch.
    pub fn batch() -> Dimension {
        Dimension::Symbol("B".to_owned())
    }
}

impl From<&str> for Dimension {
    fn from(size: &str) -> Dimension {
        size.parse()
            .map_or_else(|_| Dimension::Symbol(size.to_owned()), Dimension::Fixed)
    }
}

/// A tensor that a method takes or returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorSpec {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: DataType,
    /// Its shape.
    pub shape: Vec<Dimension>,
}

impl TensorSpec {
    /// Returns a tensor spec. `shape` is a space-separated list of numbers or symbols.
    pub fn new(name: &str, dtype: DataType, shape: &str) -> TensorSpec {
        TensorSpec {
            name: name.to_owned(),
            dtype,
            shape: shape.split_whitespace().map(Dimension::from).collect(),
        }
    }

    /// Returns the output with this name. Policy logits have shape [B, 1858], win, draw and loss
    /// logits [B, 3], and all other outputs `[B]`, one value per position.
    pub fn of_output(name: &str) -> TensorSpec {
        let columns = match name {
            "policy" => Some(POLICY_SIZE as i64),
            "wdl" => Some(3),
            _ => None,
        };
        let columns = columns.map(Dimension::Fixed);
        TensorSpec {
            name: name.to_owned(),
            dtype: DataType::F32,
            shape: [Dimension::batch()].into_iter().chain(columns).collect(),
        }
    }

    /// Returns the spec of rows: the words of the bitboards, then `scalars` scalars.
    pub fn rows(scalars: usize) -> TensorSpec {
        TensorSpec::new("rows", DataType::I64, &format!("B {}", BOARDS + scalars))
    }
}
