//! Loads the networks of generations as backends.

use super::config::SearchConfig;
use super::error::CycleError;
use crate::backend::{Backend, BackendOptions, Cache, NetworkOptions};
use crate::inference;
use crate::selfplay::EvaluationCounter;
use crate::store::{Generation, Store};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tempfile::TempDir;

/// Returns the hexadecimal SHA-256 of a file.
pub(super) fn digest(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Returns the bytes of a generation's network after comparing their hash with the manifest.
pub(super) fn fetch(store: &Store, generation: &Generation) -> Result<Vec<u8>, CycleError> {
    let name = generation.network();
    let missing = |what| CycleError::Missing {
        name: name.clone(),
        what,
    };
    let bytes = store.get(&name)?.ok_or(missing("missing"))?;
    match digest(&bytes) == generation.sha256 {
        true => Ok(bytes),
        false => Err(missing("not the file that its manifest names")),
    }
}

/// Loads networks of a store for many concurrent games, and counts their evaluations.
pub(super) struct Networks<'a> {
    store: &'a Store,
    search: &'a SearchConfig,
    /// Number of evaluation threads.
    threads: usize,
    /// Number of positions evaluated by all networks since the last query.
    evaluations: Arc<AtomicU64>,
}

impl<'a> Networks<'a> {
    pub fn new(store: &'a Store, search: &'a SearchConfig, threads: usize) -> Networks<'a> {
        Networks {
            store,
            search,
            threads,
            evaluations: Arc::default(),
        }
    }

    /// Loads a generation's network.
    pub fn load(&self, generation: &Generation) -> Result<Arc<dyn Backend>, CycleError> {
        let bytes = fetch(self.store, generation)?;
        let folder = TempDir::new().map_err(CycleError::io(std::env::temp_dir()))?;
        let net = folder.path().join("network.pt");
        std::fs::write(&net, bytes).map_err(CycleError::io(&net))?;
        let search = self.search;
        let options = BackendOptions {
            network: NetworkOptions {
                net: Some(net),
                devices: search.devices(),
                precision: search.precision,
                decoding: search.decoding()?,
                ..NetworkOptions::default()
            },
            threads: self.threads,
            ..BackendOptions::default()
        };
        let evaluations = Arc::clone(&self.evaluations);
        let counted = EvaluationCounter::new(inference::load_for_many(&options)?, evaluations);
        Ok(Cache::over(Arc::new(counted), search.cache))
    }

    /// Returns the number of positions that all networks have evaluated since the last call.
    pub fn evaluations(&self) -> u64 {
        self.evaluations.swap(0, Relaxed)
    }
}
