//! Networks in memory, and the backends that run them.

use super::comparison::Comparison;
use super::error::LoadError;
use super::fallback::{Fallback, Reopen};
use super::files::{instead_of, network_file, read};
use super::imagination::WorldImagination;
use super::planned::{Planned, open_by};
use super::sequence::SequenceBackend;
use crate::backend::{
    Backend, BackendError, BackendOptions, Batch, BuiltIn, CodePolicy, DeviceChoice, Evaluations,
    Imagination, Metadata, NetworkOptions, Precision, Properties, Service, Way,
};
use crate::error_report::one_line;
use crate::network::Playable;
use crate::torch;
use clap::ValueEnum;
use std::path::Path;
use std::sync::Arc;
use tch::Device;

use super::error::NetworkError;

/// A network, loaded on each of its devices. Never empty.
#[derive(Debug)]
pub(super) struct Networks(Vec<Loaded>);

/// A network on a device.
#[derive(Clone, Debug)]
enum Loaded {
    /// Evaluates positions. A world model also has an imagination.
    Positions(Box<Fallback>, Option<Arc<WorldImagination>>),
    /// Reads games, move by move.
    Moves(SequenceBackend),
}

impl Loaded {
    /// Opens the parts of a network file that play needs.
    fn open(
        file: &[u8],
        options: &NetworkOptions,
        choice: DeviceChoice,
    ) -> Result<Loaded, NetworkError> {
        let (device, formats) = torch::resolve_for(options.way, choice, options.precision)?;
        let planned = Planned::new(file, options.code, device, &formats, options.way)?;
        let planned = planned.with_decoding(options.decoding);
        let dtype = planned.candidates[0].dtype;
        let imagination = match planned.opened.network {
            Some(Playable::Moves(network)) => {
                return Ok(Loaded::Moves(SequenceBackend::new(network, device, dtype)));
            }
            Some(Playable::World(ref world)) => {
                Some(Arc::new(WorldImagination::new(world, device, &formats)?))
            }
            _ => None,
        };
        let backend = planned.backend()?;
        let trusted = planned.trusted_way();
        let options = options.clone();
        let reopen = move || {
            let file = network_file(&options).map_err(|error| one_line(&error))?;
            let opened = open_by(trusted, &file, options.code, choice, options.precision, 0);
            opened.map_err(|error| one_line(&error))
        };
        let is_trusted = backend.way() == trusted;
        let reopen = (!is_trusted).then(|| Box::new(reopen) as Reopen);
        let backend = Box::new(Fallback::new(backend, reopen));
        Ok(Loaded::Positions(backend, imagination))
    }

    fn backend(&self) -> &dyn Backend {
        match self {
            Loaded::Positions(network, _) => &**network,
            Loaded::Moves(network) => network,
        }
    }

    fn device(&self) -> Device {
        match self {
            Loaded::Positions(network, _) => network.device,
            Loaded::Moves(network) => network.device,
        }
    }

    /// Sets the number of threads. If it is 0, the backend chooses.
    fn with_threads(self, threads: usize) -> Loaded {
        match self {
            Loaded::Positions(network, imagination) => {
                Loaded::Positions(Box::new(network.with_threads(threads)), imagination)
            }
            moves => moves,
        }
    }
}

impl Backend for Loaded {
    fn properties(&self) -> &Properties {
        self.backend().properties()
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        self.backend().evaluate(batch, out)
    }

    fn imagination(&self) -> Option<Arc<dyn Imagination>> {
        match self {
            Loaded::Positions(_, Some(imagination)) => Some(Arc::clone(imagination) as _),
            _ => None,
        }
    }
}

impl Networks {
    pub(super) fn load(options: &NetworkOptions) -> Result<Networks, LoadError> {
        let file = network_file(options)?;
        let devices = options.devices.iter();
        let loaded = devices.map(|device| Loaded::open(&file, options, device));
        let loaded: Result<Vec<Loaded>, NetworkError> = loaded.collect();
        let loaded =
            loaded.map_err(|source| unusable(options.net.as_deref(), options.built_in, source));
        loaded.map(Networks)
    }

    /// Returns the backend that `options` describe, without its cache.
    pub(super) fn backend(&self, options: &BackendOptions) -> Arc<dyn Backend> {
        let networks = self.0.iter();
        let mut networks = networks.map(|network| network.clone().with_threads(options.threads));
        if self.is_single_cpu()
            && let Some(network) = networks.next()
        {
            return Arc::new(network);
        }
        Arc::new(Service::new(networks, self.largest_batch()))
    }

    /// Returns the backend for many players, as [`load_for_many`](super::load_for_many) describes.
    pub(super) fn backend_for_many(&self, options: &BackendOptions) -> Arc<dyn Backend> {
        if !self.is_single_cpu() {
            return self.backend(options);
        }
        let servers = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let network = self.0[0].clone().with_threads(1);
        let networks = std::iter::repeat_n(network, servers);
        Arc::new(Service::new(networks, self.largest_batch()))
    }

    fn is_single_cpu(&self) -> bool {
        matches!(&self.0[..], [network] if network.device() == Device::Cpu)
    }

    fn largest_batch(&self) -> usize {
        let last = self.0.last();
        last.map_or(1, |network| network.properties().recommended_batch)
    }
}

/// Returns the formats that a device supports, in the order of [`Precision`]. Empty if the device
/// is unavailable.
pub fn formats(device: DeviceChoice) -> Vec<Precision> {
    let all = Precision::value_variants().iter().copied();
    all.filter(|&precision| precision != Precision::Auto && torch::has_format(device, precision))
        .collect()
}

/// Returns how a network runs on its first device: the format and the way, with the measurements, if
/// the network has been loaded before, and otherwise everything that will be tried.
///
/// # Errors
/// [`LoadError`], as for [`load`](super::load).
pub fn runs(options: &NetworkOptions) -> Result<String, LoadError> {
    on_first_device(options, |planned| Ok(planned.outlook()))
}

/// Compares all ways and formats in which a network runs on its first device.
///
/// # Errors
/// [`LoadError`], as for [`load`](super::load).
pub fn compare(options: &NetworkOptions) -> Result<Comparison, LoadError> {
    let options = NetworkOptions {
        precision: Precision::Auto,
        way: Way::Auto,
        ..options.clone()
    };
    on_first_device(&options, |planned| {
        Comparison::new(&planned, options.devices.first())
    })
}

/// Calls a function with a network that is opened for its first device.
fn on_first_device<T>(
    options: &NetworkOptions,
    work: impl FnOnce(Planned) -> Result<T, NetworkError>,
) -> Result<T, LoadError> {
    let file = network_file(options)?;
    let open = || {
        let (way, device) = (options.way, options.devices.first());
        let (device, formats) = torch::resolve_for(way, device, options.precision)?;
        let planned = Planned::new(&file, options.code, device, &formats, way)?;
        work(planned.with_decoding(options.decoding))
    };
    open().map_err(|source| unusable(options.net.as_deref(), options.built_in, source))
}

/// Returns a network's metadata after checking it. `None` means the built-in network.
///
/// # Errors
/// [`LoadError`], as for [`load`](super::load).
pub fn describe(net: Option<&Path>, code: CodePolicy) -> Result<Metadata, LoadError> {
    describe_file(net, BuiltIn::Main, code)
}

/// Returns the metadata of the built-in human-like network.
///
/// # Errors
/// [`LoadError`], as for [`load`](super::load).
pub fn describe_human() -> Result<Metadata, LoadError> {
    describe_file(None, BuiltIn::Human, CodePolicy::Checked)
}

fn describe_file(
    net: Option<&Path>,
    built_in: BuiltIn,
    code: CodePolicy,
) -> Result<Metadata, LoadError> {
    let file = read(net, built_in)?;
    torch::describe(&file, code).map_err(|source| unusable(net, built_in, source))
}

fn unusable(net: Option<&Path>, built_in: BuiltIn, source: NetworkError) -> LoadError {
    let file = net.map(Path::to_owned).or_else(|| instead_of(built_in));
    let network = file.map_or("built into this program".to_owned(), |path| {
        path.display().to_string()
    });
    LoadError::Network { network, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::tests::{assert_close, assert_same, positions};
    use crate::backend::{BuiltIn, DeviceChoice, Precision};
    use crate::inference::{Loader, load, load_for_many};
    use crate::torch::tiny;

    fn options(net: Option<&Path>) -> BackendOptions {
        BackendOptions {
            network: NetworkOptions {
                net: net.map(Path::to_owned),
                built_in: BuiltIn::Main,
                code: CodePolicy::Checked,
                devices: DeviceChoice::Cpu.into(),
                precision: Precision::F32,
                ..NetworkOptions::default()
            },
            ..BackendOptions::default()
        }
    }

    #[test]
    fn a_network_is_loaded_with_what_goes_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.pt");
        let file = tiny::network(&tiny::honest_metadata("wdl"));
        std::fs::write(&path, &file).unwrap();
        let (formats, way) = ([tch::Kind::Float.into()], NetworkOptions::default().way);
        let planned = Planned::new(&file, CodePolicy::Checked, Device::Cpu, &formats, way);
        let bare = planned.unwrap().backend().unwrap();
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
        assert_eq!(
            describe(Some(&path), CodePolicy::Checked).unwrap(),
            bare.metadata
        );
    }

    #[test]
    fn several_devices_share_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.pt");
        std::fs::write(&path, tiny::network(&tiny::honest_metadata("wdl"))).unwrap();
        let one = load(&options(Some(&path))).unwrap();
        let mut two = options(Some(&path));
        two.network.devices = "cpu, cpu".parse().unwrap();
        let two = load(&two).unwrap();
        let threads = |backend: &Arc<dyn Backend>| backend.properties().recommended_threads;
        assert_eq!(threads(&two), 2 * threads(&one));
        std::thread::scope(|scope| {
            for size in 1..6 {
                let (one, two) = (&one, &two);
                scope.spawn(move || assert_close(two, one, &positions(size * 9, true)));
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
        assert_close(&many, &load(&options).unwrap(), &positions(70, true));
    }

    /// The network's file exists only while the first backend is loaded.
    #[test]
    fn a_network_is_loaded_once_for_all_that_goes_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.pt");
        std::fs::write(&path, tiny::network(&tiny::honest_metadata("wdl"))).unwrap();
        let mut loader = Loader::default();
        let first = loader.load(&options(Some(&path))).unwrap();
        std::fs::remove_file(&path).unwrap();
        let batch = positions(10, true);
        for (threads, cache, seed) in [(3, 0, 0), (0, 1, 0), (2, 1, 7)] {
            let other = loader.load(&BackendOptions {
                threads,
                cache,
                seed,
                ..options(Some(&path))
            });
            let other = other.unwrap();
            assert_same(&other, &first, &batch);
            let recommended = match threads {
                0 => first.properties().recommended_threads,
                threads => threads,
            };
            assert_eq!(other.properties().recommended_threads, recommended);
        }
        let mut elsewhere = options(Some(&path));
        elsewhere.network.precision = Precision::Bf16;
        assert!(matches!(
            loader.load(&elsewhere),
            Err(LoadError::Read { .. })
        ));
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
            describe(Some(&text), CodePolicy::Checked).err(),
        ] {
            let message = error.unwrap().to_string();
            assert!(
                message.contains("text.pt") && message.contains("tessera import"),
                "{message}"
            );
            assert!(!message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn the_built_in_networks_are_sound() {
        let metadata = describe(None, CodePolicy::Checked).unwrap();
        assert!(!metadata.name.is_empty());
        let mut options = options(None);
        options.network.built_in = BuiltIn::Human;
        assert!(load(&options).unwrap().properties().reads_ratings);
    }
}
