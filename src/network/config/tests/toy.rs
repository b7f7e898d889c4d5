//! The size of the family that exists only in tests.

use serde::{Deserialize, Serialize};

/// The size of a toy network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToyConfig {
    /// Number of features per square.
    pub width: i64,
}
