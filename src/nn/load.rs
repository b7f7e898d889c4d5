//! From what a user asks for to a backend.

use super::torch::{self, DeviceChoice, Devices, NetworkError, Precision, TorchBackend};
use super::{Backend, Cache, Metadata, Random, Service, Uniform};
use crate::bounded;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tch::Device;

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
    pub devices: Devices,
    /// In which format.
    pub precision: Precision,
    /// Threads that will call the backend at once; 0 leaves it to the backend.
    pub threads: usize,
    /// Memory for remembered evaluations, in MiB; 0 remembers none.
    pub cache: usize,
    /// Seed of the random backend.
    pub seed: u64,
    /// Share of the optimistic policy in the logits, in 0…1, where the network
    /// has one: [`TorchBackend::with_optimism`].
    pub optimism: f32,
}

/// The network that the program was built with, if any: the file that
/// nets/default names.
const BUILT_IN: Option<&[u8]> = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Bytes of the largest network that is read: 4 GiB, a billion weights in f32.
const LARGEST_FILE: u64 = 4 << 30;

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
/// On a single CPU each thread that asks computes for itself. Everywhere else
/// the threads feed a [`Service`], which merges what they ask and spreads it over
/// the devices.
///
/// # Errors
/// [`LoadError`], whose message says what is wrong and how to mend it.
pub fn load(options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
    match options.kind {
        BackendKind::Uniform => return Ok(Arc::new(Uniform::default())),
        BackendKind::Random => return Ok(Arc::new(Random::new(options.seed))),
        BackendKind::Torch => {}
    }
    let mut networks = options
        .devices
        .iter()
        .map(|device| load_on(options, device))
        .collect::<Result<Vec<_>, _>>()?;
    let backend: Arc<dyn Backend> = match networks.pop() {
        Some(network) if networks.is_empty() && network.device() == Device::Cpu => {
            Arc::new(network)
        }
        last => {
            let largest = last
                .as_ref()
                .map_or(1, |network| network.properties().recommended_batch);
            Arc::new(Service::new(networks.into_iter().chain(last), largest))
        }
    };
    Ok(match options.cache {
        0 => backend,
        mebibytes => Arc::new(Cache::new(backend, mebibytes)),
    })
}

/// Loads what `options` ask for, for many players who each gather a few
/// positions at a time: on a single CPU, too, a [`Service`] merges what they
/// ask, with as many servers as there are to be threads.
///
/// # Errors
/// [`LoadError`], as for [`load`].
pub fn load_for_many(options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
    if options.kind != BackendKind::Torch || options.devices.iter().count() != 1 {
        return load(options);
    }
    let servers = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let network = load_network(&BackendOptions {
        threads: 1,
        ..options.clone()
    })?;
    if network.device() != Device::Cpu {
        return load(options);
    }
    let largest = network.properties().recommended_batch;
    let servers = std::iter::repeat_n(Arc::new(network), servers);
    let backend = Service::new(servers, largest);
    Ok(match options.cache {
        0 => Arc::new(backend),
        mebibytes => Arc::new(Cache::new(backend, mebibytes)),
    })
}

/// Loads a network, on the first of the devices, without anything around it.
///
/// # Errors
/// [`LoadError`], as for [`load`].
pub fn load_network(options: &BackendOptions) -> Result<TorchBackend, LoadError> {
    load_on(options, options.devices.first())
}

fn load_on(options: &BackendOptions, device: DeviceChoice) -> Result<TorchBackend, LoadError> {
    let net = options.net.as_deref();
    let file = read(net)?;
    let network = TorchBackend::new(&file, device, options.precision, options.threads)
        .map_err(|source| unusable(net, source))?;
    Ok(network.with_optimism(options.optimism))
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
        Some(path) => bounded::read_regular(path, LARGEST_FILE)
            .map(Cow::Owned)
            .map_err(|source| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::tests::{assert_same, positions};
    use crate::nn::torch::tiny;

    fn options(net: Option<&Path>) -> BackendOptions {
        BackendOptions {
            net: net.map(Path::to_owned),
            devices: DeviceChoice::Cpu.into(),
            precision: Precision::F32,
            ..BackendOptions::default()
        }
    }

    #[test]
    fn a_network_is_loaded_with_what_goes_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.pt");
        std::fs::write(&path, tiny::network(&tiny::honest_metadata("wdl"))).unwrap();
        let bare = load_network(&options(Some(&path))).unwrap();
        let cached = load(&BackendOptions {
            cache: 1,
            threads: 3,
            ..options(Some(&path))
        });
        let cached = cached.unwrap();
        assert_eq!(cached.properties().name, "tiny");
        assert_eq!(cached.properties().recommended_threads, 3);
        let batch = positions(10, true);
        for _ in 0..2 {
            assert_same(&cached, &bare, &batch);
        }
        assert_eq!(describe(Some(&path)).unwrap(), *bare.metadata());
    }

    #[test]
    fn several_devices_share_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.pt");
        std::fs::write(&path, tiny::network(&tiny::honest_metadata("wdl"))).unwrap();
        let one = load(&options(Some(&path))).unwrap();
        let two = load(&BackendOptions {
            devices: "cpu, cpu".parse().unwrap(),
            ..options(Some(&path))
        });
        let two = two.unwrap();
        let threads = |backend: &Arc<dyn Backend>| backend.properties().recommended_threads;
        assert_eq!(threads(&two), 2 * threads(&one));
        std::thread::scope(|scope| {
            for size in 1..6 {
                let (one, two) = (&one, &two);
                scope.spawn(move || assert_same(two, one, &positions(size * 9, true)));
            }
        });
    }

    #[test]
    fn many_players_are_served_in_batches() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.pt");
        std::fs::write(&path, tiny::network(&tiny::honest_metadata("wdl"))).unwrap();
        let options = BackendOptions {
            threads: 3,
            ..options(Some(&path))
        };
        let many = load_for_many(&options).unwrap();
        assert_eq!(many.properties().recommended_threads, 3);
        assert_same(&many, &load(&options).unwrap(), &positions(70, true));
    }

    #[test]
    fn backends_without_a_network_need_no_file() {
        for (kind, name) in [
            (BackendKind::Uniform, "uniform"),
            (BackendKind::Random, "random"),
        ] {
            let options = BackendOptions {
                kind,
                ..options(Some(Path::new("no such file")))
            };
            assert_eq!(load(&options).unwrap().properties().name, name);
        }
    }

    #[test]
    fn messages_name_the_file_and_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.pt");
        let error = load(&options(Some(&missing))).err().unwrap();
        assert!(matches!(error, LoadError::Read { .. }));
        assert!(error.to_string().contains("missing.pt"));
        let text = folder.path().join("text.pt");
        std::fs::write(&text, "1. e4 e5").unwrap();
        for error in [
            load(&options(Some(&text))).err(),
            describe(Some(&text)).err(),
        ] {
            let message = error.unwrap().to_string();
            assert!(
                message.contains("text.pt") && message.contains("train export"),
                "{message}"
            );
            assert!(!message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn the_network_built_in_is_sound() {
        match (BUILT_IN, describe(None)) {
            (Some(_), Ok(metadata)) => assert!(!metadata.name.is_empty()),
            (None, Err(error)) => assert!(matches!(error, LoadError::NoneBuiltIn)),
            (_, other) => panic!("{other:?}"),
        }
    }
}
