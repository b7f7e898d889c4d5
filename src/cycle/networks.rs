//! The networks of generations, as backends.

use super::config::SearchConfig;
use super::error::CycleError;
use crate::backend;
use crate::nn::{Backend, BackendOptions, Cache, NetworkOptions};
use crate::selfplay::EvaluationCounter;
use crate::store::{Generation, Store};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tempfile::TempDir;

/// A network that was loaded.
pub(super) struct Loaded {
    /// For searches of many games at once, with a cache.
    pub backend: Arc<dyn Backend>,
    counted: Arc<EvaluationCounter>,
    /// Positions that were evaluated when last asked.
    told: AtomicU64,
}

impl Loaded {
    /// Positions evaluated since the last call.
    pub fn evaluations(&self) -> u64 {
        let now = self.counted.evaluations();
        now - self.told.swap(now, Relaxed)
    }
}

/// Hexadecimal digits of the SHA-256 of a file.
pub(super) fn digest(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes).into_iter();
    digits.map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a generation's network, which are those that its manifest names.
pub(super) fn fetch(store: &Store, generation: &Generation) -> Result<Vec<u8>, CycleError> {
    let name = generation.network();
    let missing = |what| CycleError::Missing {
        name: name.clone(),
        what,
    };
    let bytes = store.get(&name)?.ok_or(missing("not there"))?;
    match digest(&bytes) == generation.sha256 {
        true => Ok(bytes),
        false => Err(missing("not the file that its manifest names")),
    }
}

/// Loads a generation's network for `threads` threads that evaluate.
pub(super) fn load(
    store: &Store,
    generation: &Generation,
    search: &SearchConfig,
    threads: usize,
) -> Result<Loaded, CycleError> {
    let bytes = fetch(store, generation)?;
    let folder = TempDir::new().map_err(CycleError::io(std::env::temp_dir()))?;
    let net = folder.path().join("network.pt");
    std::fs::write(&net, bytes).map_err(CycleError::io(&net))?;
    let options = BackendOptions {
        network: NetworkOptions {
            net: Some(net),
            devices: search.devices(),
            precision: search.precision,
            decoding: search.decoding()?,
            ..NetworkOptions::default()
        },
        threads,
        ..BackendOptions::default()
    };
    let counted = Arc::new(EvaluationCounter::new(backend::load_for_many(&options)?));
    Ok(Loaded {
        backend: match search.cache {
            0 => counted.clone(),
            mebibytes => Arc::new(Cache::new(counted.clone(), mebibytes)),
        },
        counted,
        told: AtomicU64::new(0),
    })
}
