//! From what a user asks for to a backend.

use super::torch::{self, DeviceChoice, NetworkError, Precision, TorchBackend};
use super::{Backend, Metadata, Random, Uniform};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
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

/// The network that the program was built with, if any: the file that
/// nets/default names.
const BUILT_IN: Option<&[u8]> = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

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
    /// No file was named and the program was built without a network.
    #[error("no network is built into this program: name the file of one (option Net, or --net)")]
    NoneBuiltIn,
    /// The file can be read, but not used.
    #[error("cannot use the network {network}: {source}")]
    Network {
        /// The file, or what else names the network.
        network: String,
        /// What is wrong with it, and how to mend it.
        source: NetworkError,
    },
}

/// Loads what `options` ask for. Slow (a second) for networks.
///
/// # Errors
/// [`LoadError`], whose message says what is wrong and how to mend it.
pub fn load(options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
    match options.kind {
        BackendKind::Uniform => Ok(Arc::new(Uniform::default())),
        BackendKind::Random => Ok(Arc::new(Random::new(options.seed))),
        BackendKind::Torch => Ok(Arc::new(load_network(options)?)),
    }
}

/// Loads a network without anything around it.
fn load_network(options: &BackendOptions) -> Result<TorchBackend, LoadError> {
    let net = options.net.as_deref();
    let file = read(net)?;
    TorchBackend::new(&file, options.device, options.precision, options.threads)
        .map_err(|source| unusable(net, source))
}

/// What a network says of itself, once it has been checked; `None` is the
/// network built into the program.
///
/// # Errors
/// [`LoadError`], as for [`load`].
pub fn describe(net: Option<&Path>) -> Result<Metadata, LoadError> {
    let (_, metadata) = torch::open(&read(net)?).map_err(|source| unusable(net, source))?;
    Ok(metadata)
}

fn read(net: Option<&Path>) -> Result<Cow<'static, [u8]>, LoadError> {
    match net {
        None => BUILT_IN.map(Cow::Borrowed).ok_or(LoadError::NoneBuiltIn),
        Some(path) => std::fs::read(path).map(Cow::Owned).map_err(|source| {
            let path = path.to_owned();
            LoadError::Read { path, source }
        }),
    }
}

fn unusable(net: Option<&Path>, source: NetworkError) -> LoadError {
    let network = match net {
        Some(path) => path.display().to_string(),
        None => "built into this program".to_owned(),
    };
    LoadError::Network { network, source }
}
