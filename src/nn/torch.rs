//! Networks through libtorch.

mod module;
mod process;
mod shim;

pub use module::{Module, TorchError};
pub use process::{CudaStatus, Environment, LIBTORCH_VERSION, environment};
