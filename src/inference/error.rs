//! Errors from loading networks.

#[cfg(feature = "torch")]
pub use crate::torch::NetworkError;
use std::path::PathBuf;

/// Why a backend could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the network {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// No file was named, and neither the program nor the folder next to it contains the default
    /// network.
    #[error(
        "no network is built into this program or installed next to it: name a network file (option Net, or --net)"
    )]
    NoneBuiltIn,
    /// Neither the program nor the folder next to it contains the human-like network.
    #[error(
        "no network that plays like people is built into this program or installed next to it: name \
         a network file (option HumanNet, or --net)"
    )]
    NoHumanBuiltIn,
    /// The file can be read but not used.
    #[error("cannot use the network {network}: {source}")]
    Network {
        /// The file, or the name of a built-in network.
        network: String,
        /// The problem and its remedy.
        source: NetworkError,
    },
}

/// Why a network cannot be used.
#[cfg(not(feature = "torch"))]
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The program was built without the Cargo feature `torch`.
    #[error(
        "this program was built without libtorch (feature `torch`): set Backend to random or uniform"
    )]
    NoTorch,
}
