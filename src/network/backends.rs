//! Backends over network files: loads the user's file and adds a cache and a batching service.
//!
//! A network of a known family [opens](open) to its family's own code, with weights packed for
//! the processor's kernels. Its file's TorchScript runs on CUDA, and on the CPU if the family is
//! unknown.

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
pub use networks::{describe, load_network};
#[cfg(feature = "torch")]
pub(crate) use opened::Opened;
#[cfg(feature = "torch")]
pub use opened::open;
