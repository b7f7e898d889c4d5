//! Runs networks: loads network files as backends, with a cache and a batching service.
//!
//! There are several [ways](crate::backend::Way) to run a network, one file each in `ways`. `plan`
//! lists those that suit a network's family, the device and the precision. `choice` lets each of
//! them prove itself on this machine (`trial`), measures which is the fastest, and remembers the
//! result (`answers`); `comparison` runs all of them, for reports. If a way fails during play,
//! another takes its place (`fallback`). On the CPU, a network of a known family [runs](open) by the
//! CPU's kernels. On CUDA, the encoder kernel and libtorch's operators compete with the TorchScript
//! in the file. For unknown families, the TorchScript in the file runs.

#[cfg(feature = "torch")]
mod answers;
#[cfg(feature = "torch")]
mod candidate;
#[cfg(feature = "torch")]
mod choice;
#[cfg(feature = "torch")]
mod comparison;
#[cfg(feature = "torch")]
pub mod doctor;
mod error;
#[cfg(feature = "torch")]
mod fallback;
#[cfg(feature = "torch")]
mod files;
#[cfg(feature = "torch")]
mod imagination;
mod loader;
#[cfg(feature = "torch")]
mod networks;
#[cfg(not(feature = "torch"))]
#[path = "inference/no_networks.rs"]
mod networks;
#[cfg(feature = "torch")]
mod opened;
#[cfg(feature = "torch")]
mod plan;
#[cfg(feature = "torch")]
mod planned;
#[cfg(feature = "torch")]
mod sequence;
#[cfg(feature = "torch")]
mod torch_backend;
#[cfg(feature = "torch")]
mod trial;
#[cfg(feature = "torch")]
mod ways;

#[cfg(feature = "torch")]
pub use comparison::{ComparedWay, Comparison};
pub use error::{LoadError, NetworkError};
#[cfg(feature = "torch")]
pub use files::{BuiltInNetworks, NETWORKS, carry, network_file, read_network};
pub use loader::{Loader, load, load_for_many};
pub use networks::formats;
#[cfg(feature = "torch")]
pub use networks::{compare, describe, describe_human, runs};
#[cfg(feature = "torch")]
pub(crate) use planned::Planned;
#[cfg(feature = "torch")]
pub use planned::{open, open_by};
#[cfg(feature = "torch")]
pub use torch_backend::TorchBackend;
