//! Ways to run a network.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A way to run a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// The fastest way whose results are right on this machine, measured once.
    #[default]
    Auto,
    /// The TorchScript code in the network's file.
    File,
    /// The engine's own code with libtorch's operators.
    Operators,
    /// The engine's own kernels for the CPU.
    Kernels,
    /// The engine's CUDA kernel for the encoder of a Chessformer with GAB.
    Encoder,
}

/// Formats the way as users write it.
impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let value = self.to_possible_value();
        formatter.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}
