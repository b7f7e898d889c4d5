//! The tensors that a network's methods take and return.

use crate::encode::{BOARDS, POLICY_SIZE};
use serde::{Deserialize, Serialize};

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataType {
    /// 64-bit integers.
    I64,
    /// Floating-point numbers in the precision that the network is computed in.
    F32,
}

/// One size of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dimension {
    /// Always this.
    Fixed(i64),
    /// By what varies: `B` for the positions of a batch.
    Symbol(String),
}

impl Dimension {
    /// The positions of a batch.
    #[must_use]
    pub fn batch() -> Dimension {
        Dimension::Symbol("B".to_owned())
    }
}

impl From<&str> for Dimension {
    fn from(size: &str) -> Dimension {
        match size.parse() {
            Ok(size) => Dimension::Fixed(size),
            Err(_) => Dimension::Symbol(size.to_owned()),
        }
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
    /// A tensor of sizes that are numbers or symbols, with spaces between them.
    #[must_use]
    pub fn new(name: &str, dtype: DataType, shape: &str) -> TensorSpec {
        TensorSpec {
            name: name.to_owned(),
            dtype,
            shape: shape.split_whitespace().map(Dimension::from).collect(),
        }
    }

    /// The output of this name: a policy's logits are [B, 1858], those of win, draw
    /// and loss [B, 3], all others a number a position, `[B]`.
    #[must_use]
    pub fn of_output(name: &str) -> TensorSpec {
        let columns = match name {
            // The second is of earlier versions; no player reads it.
            "policy" | "policy_optimistic" => Some(POLICY_SIZE as i64),
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

    /// Rows of the bitboards' words followed by those of `scalars` scalars.
    #[must_use]
    pub fn rows(scalars: usize) -> TensorSpec {
        TensorSpec::new("rows", DataType::I64, &format!("B {}", BOARDS + scalars))
    }
}
