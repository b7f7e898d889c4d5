//! From what a user asks for to a backend.

use super::network::{NetworkError, Networks};
use super::{Backend, Cache, CrossCheck, DeviceChoice, Devices, Precision, Random, Uniform};
use std::path::PathBuf;
use std::sync::Arc;

/// Which implementation evaluates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendKind {
    /// A network through libtorch.
    #[default]
    Torch,
    /// The same, held against the network in f32 on the CPU: [`CrossCheck`].
    Check,
    /// No network: every move alike, every position even.
    Uniform,
    /// No network: values and priors are a hash of the position and a seed.
    Random,
}

/// Whether a network file may bring code of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodePolicy {
    /// Only code like that of our exporters runs: see `nn::torch::check`.
    #[default]
    Checked,
    /// Whatever the file brings runs, and may do what this program may do.
    Allowed,
}

impl CodePolicy {
    /// The policy of a user who allows code, or does not.
    #[must_use]
    pub fn allowed_if(allowed: bool) -> CodePolicy {
        match allowed {
            true => CodePolicy::Allowed,
            false => CodePolicy::Checked,
        }
    }
}

/// The [`CodePolicy`] as commands are told it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct CodeArguments {
    /// Run code of a network file that no network of the engine's has: it may do anything
    #[arg(long)]
    allow_code: bool,
}

impl CodeArguments {
    /// The policy to open files by.
    #[must_use]
    pub fn policy(self) -> CodePolicy {
        CodePolicy::allowed_if(self.allow_code)
    }
}

/// The networks that can be built into the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BuiltIn {
    /// The one that nets/default names: the engine's own play.
    #[default]
    Main,
    /// nets/tessera-human.pt: what people play, by their ratings.
    Human,
}

/// Which network, and where it is computed: what takes a second to load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkOptions {
    /// The network's file; `None` is one built into the program.
    pub net: Option<PathBuf>,
    /// Which of them, where no file is named.
    pub built_in: BuiltIn,
    /// Which code that file may bring.
    pub code: CodePolicy,
    /// Where it is computed.
    pub devices: Devices,
    /// In which format.
    pub precision: Precision,
}

/// What backend a user asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendOptions {
    /// Which implementation.
    pub kind: BackendKind,
    /// The network, for [`BackendKind::Torch`].
    pub network: NetworkOptions,
    /// Threads that will call the backend at once; 0 leaves it to the backend.
    pub threads: usize,
    /// Memory for remembered evaluations, in MiB; 0 remembers none.
    pub cache: usize,
    /// Seed of the random backend.
    pub seed: u64,
    /// Share of the optimistic policy in the logits, in 0…1, where the network
    /// has one (KataGo's policyOptimism).
    pub optimism: f32,
}

impl BackendOptions {
    /// Whether a backend of `other` has the same network, if any.
    #[must_use]
    pub fn has_network_of(&self, other: &BackendOptions) -> bool {
        let needs_none = matches!(self.kind, BackendKind::Uniform | BackendKind::Random);
        self.kind == other.kind && (needs_none || self.network == other.network)
    }

    /// Whether a backend of `other` evaluates every position alike.
    #[must_use]
    pub fn evaluates_like(&self, other: &BackendOptions) -> bool {
        let is_same = match self.kind {
            BackendKind::Torch | BackendKind::Check => self.optimism == other.optimism,
            BackendKind::Uniform => true,
            BackendKind::Random => self.seed == other.seed,
        };
        is_same && self.has_network_of(other)
    }
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
    /// No file was named and the program was built without a network.
    #[error("no network is built into this program: name the file of one (option Net, or --net)")]
    NoneBuiltIn,
    /// The same of the network that plays like people.
    #[error(
        "no network that plays like people is built into this program: name the file of one \
         (option HumanNet, or --net)"
    )]
    NoHumanBuiltIn,
    /// The file can be read, but not used.
    #[error("cannot use the network {network}: {source}")]
    Network {
        /// The file, or what else names the network.
        network: String,
        /// What is wrong with it, and how to mend it.
        source: NetworkError,
    },
}

/// Loads backends, and keeps the network of the last one in memory: what differs
/// from it only in what goes around the network is there at once.
#[derive(Debug, Default)]
pub struct Loader {
    loaded: Option<(NetworkOptions, Networks)>,
}

impl Loader {
    /// Loads what `options` ask for. Slow (a second) for another network than that
    /// of the last call, whose memory is given back before.
    ///
    /// On a single CPU each thread that asks computes for itself. Everywhere else
    /// the threads feed a [`Service`](super::Service), which merges what they ask
    /// and spreads it over the devices.
    ///
    /// # Errors
    /// [`LoadError`], whose message says what is wrong and how to mend it.
    pub fn load(&mut self, options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
        Ok(match options.kind {
            BackendKind::Uniform => Arc::new(Uniform::default()),
            BackendKind::Random => Arc::new(Random::new(options.seed)),
            BackendKind::Torch => {
                cached(self.networks(&options.network)?.backend(options), options)
            }
            BackendKind::Check => {
                let exact = NetworkOptions {
                    devices: DeviceChoice::Cpu.into(),
                    precision: Precision::F32,
                    ..options.network.clone()
                };
                let reference = Networks::load(&exact)?.backend(options);
                let backend = self.networks(&options.network)?.backend(options);
                cached(Arc::new(CrossCheck::new(backend, reference)), options)
            }
        })
    }

    fn networks(&mut self, options: &NetworkOptions) -> Result<&Networks, LoadError> {
        let is_wanted = |(loaded, _): &(NetworkOptions, Networks)| loaded == options;
        let loaded = match self.loaded.take().filter(is_wanted) {
            Some(loaded) => loaded,
            None => (options.clone(), Networks::load(options)?),
        };
        Ok(&self.loaded.insert(loaded).1)
    }
}

/// Loads what `options` ask for, as [`Loader::load`] does.
///
/// # Errors
/// [`LoadError`], as for [`Loader::load`].
pub fn load(options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
    Loader::default().load(options)
}

/// Loads what `options` ask for, for many players who each gather a few
/// positions at a time: on a single CPU, too, a [`Service`](super::Service) merges
/// what they ask, with as many servers as there are to be threads.
///
/// # Errors
/// [`LoadError`], as for [`load`].
pub fn load_for_many(options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
    if options.kind != BackendKind::Torch {
        return load(options);
    }
    let networks = Networks::load(&options.network)?;
    Ok(cached(networks.backend_for_many(options), options))
}

fn cached(backend: Arc<dyn Backend>, options: &BackendOptions) -> Arc<dyn Backend> {
    match options.cache {
        0 => backend,
        mebibytes => Arc::new(Cache::new(backend, mebibytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn backends_without_a_network_need_no_file() {
        for (kind, name) in [
            (BackendKind::Uniform, "uniform"),
            (BackendKind::Random, "random"),
        ] {
            let options = BackendOptions {
                kind,
                network: NetworkOptions {
                    net: Some(Path::new("no such file").to_owned()),
                    ..NetworkOptions::default()
                },
                ..BackendOptions::default()
            };
            assert_eq!(load(&options).unwrap().properties().name, name);
        }
    }
}
