//! Loads network files as backends, with a cache and a batching service.
//!
//! On the CPU, a network of a known family [runs](open) the family's own code, with weights packed
//! for the processor's kernels. On CUDA, and for unknown families, the TorchScript in the file
//! runs.

#[cfg(feature = "torch")]
pub mod doctor;
mod error;
#[cfg(feature = "torch")]
mod files;
#[cfg(feature = "torch")]
mod imagination;
mod loader;
#[cfg(feature = "torch")]
mod networks;
#[cfg(not(feature = "torch"))]
#[path = "backends/no_networks.rs"]
mod networks;
#[cfg(feature = "torch")]
mod opened;
#[cfg(feature = "torch")]
mod sequence;

pub use error::{LoadError, NetworkError};
#[cfg(feature = "torch")]
pub use files::{BuiltInNetworks, NETWORKS, carry, network_file, read_network};
pub use loader::{Loader, load, load_for_many};
pub use networks::formats;
#[cfg(feature = "torch")]
pub use networks::{describe, describe_human, load_network};
#[cfg(feature = "torch")]
pub(crate) use opened::Opened;
#[cfg(feature = "torch")]
pub use opened::open;
