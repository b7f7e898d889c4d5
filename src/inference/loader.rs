//! Loads backends together with their cache and batching service.

use super::error::LoadError;
use super::networks::Networks;
use crate::backend::{
    Backend, BackendKind, BackendOptions, Cache, CrossCheck, DeviceChoice, NetworkOptions,
    Precision, Random, Uniform, Way,
};
use std::sync::Arc;

/// Loads backends and keeps the last network in memory, so that a change of the other options does
/// not load the network again.
#[derive(Debug, Default)]
pub struct Loader {
    loaded: Option<(NetworkOptions, Networks)>,
}

impl Loader {
    /// Loads the backend that `options` describe. Loading a different network takes about a second.
    /// The previous network is freed first.
    ///
    /// If the CPU is the only device, each calling thread computes its own batches. Otherwise the
    /// threads send their requests to a [`Service`](crate::backend::Service), which merges them and
    /// distributes them over the devices.
    ///
    /// # Errors
    /// [`LoadError`], whose message states the problem and its remedy.
    pub fn load(&mut self, options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
        Ok(match options.kind {
            BackendKind::Uniform => Arc::new(Uniform::default()),
            BackendKind::Random => Arc::new(Random::new(options.seed)),
            BackendKind::Torch => Cache::over(
                self.networks(&options.network)?.backend(options),
                options.cache,
            ),
            BackendKind::Check => {
                let exact = NetworkOptions {
                    devices: DeviceChoice::Cpu.into(),
                    precision: Precision::F32,
                    way: Way::Auto,
                    ..options.network.clone()
                };
                let reference = Networks::load(&exact)?.backend(options);
                let backend = self.networks(&options.network)?.backend(options);
                Cache::over(Arc::new(CrossCheck::new(backend, reference)), options.cache)
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

/// Loads the backend that `options` describe, as [`Loader::load`] does.
///
/// # Errors
/// [`LoadError`], as for [`Loader::load`].
pub fn load(options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
    Loader::default().load(options)
}

/// Loads the backend that `options` describe for many players, each of which requests a few
/// positions at a time. A [`Service`](crate::backend::Service) merges their requests even if the
/// CPU is the only device, with one server per configured thread.
///
/// # Errors
/// [`LoadError`], as for [`load`].
pub fn load_for_many(options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
    if options.kind != BackendKind::Torch {
        return load(options);
    }
    let networks = Networks::load(&options.network)?;
    Ok(Cache::over(
        networks.backend_for_many(options),
        options.cache,
    ))
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
