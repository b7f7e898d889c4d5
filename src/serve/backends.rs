//! Backends that all players share, one per network.

use crate::backend::{Backend, BackendOptions};
use crate::inference::{LoadError, load_for_many};
use crate::player::Factory;
use parking_lot::Mutex;
use std::sync::Arc;

/// Loads a backend at its first request and keeps it. The networks in the server's settings limit
/// the number of backends.
#[derive(Clone, Default)]
pub(super) struct Backends(Arc<Mutex<Vec<Loaded>>>);

/// A backend, and the settings from which it was created.
type Loaded = (BackendOptions, Arc<dyn Backend>);

impl Backends {
    pub(super) fn get(&self, options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
        // Requests that arrive while a network is loading wait for it.
        let mut loaded = self.0.lock();
        let known = loaded.iter().find(|(known, _)| known == options);
        if let Some((_, backend)) = known {
            return Ok(backend.clone());
        }
        let backend = load_for_many(options)?;
        loaded.push((options.clone(), backend.clone()));
        Ok(backend)
    }
}

impl Factory for Backends {
    fn load(&mut self, options: &BackendOptions) -> Result<Arc<dyn Backend>, LoadError> {
        self.get(options)
    }
}
