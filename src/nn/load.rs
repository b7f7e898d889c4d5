//! From what a user asks for to a backend.

use super::Backend;
use std::path::PathBuf;
use std::sync::Arc;

/// Which implementation evaluates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendKind {
    /// A network through libtorch.
    #[default]
    Torch,
    /// No network: every move alike, every position even.
    Uniform,
    /// No network: values and priors are a hash of the position and a seed.
    Random,
}

/// Where a network is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first CUDA device if there is one, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The CUDA device of this number.
    Cuda(usize),
}

/// The floating-point format a network is computed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Precision {
    /// bf16 where the CPU computes in it, else f32; fp16 on CUDA.
    #[default]
    Auto,
    /// 32-bit floating point.
    F32,
    /// bfloat16.
    Bf16,
    /// IEEE half precision; CUDA only.
    Fp16,
}

/// What backend a user asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendOptions {
    /// Which implementation.
    pub kind: BackendKind,
    /// The network's file; `None` is the one built into the program.
    pub net: Option<PathBuf>,
    /// Where it is computed.
    pub device: DeviceChoice,
    /// In which format.
    pub precision: Precision,
    /// Threads that will call the backend at once; 0 leaves it to the backend.
    pub threads: usize,
    /// Memory for remembered evaluations, in MiB; 0 remembers none.
    pub cache: usize,
    /// Seed of the random backend.
    pub seed: u64,
}

/// Why a backend could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the network {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Loads what `options` ask for. Slow (a second) for networks.
///
/// # Errors
/// [`LoadError`], whose message says what is wrong and how to mend it.
pub fn load(options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
    let _ = options;
    unimplemented!()
}
