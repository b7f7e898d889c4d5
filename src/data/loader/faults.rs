//! Counts and logs unusable records.

use super::LoaderError;
use crate::data::shard::ShardError;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::fmt::Display;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of faults that are logged individually; later ones are only counted.
const LOGGED: usize = 100;

/// Counts and logs skipped records, or stops at the first fault.
#[derive(Debug, Default)]
pub(super) struct Faults {
    is_strict: bool,
    count: AtomicU64,
}

/// The damaged shards and the other faults that this process has logged. Each epoch and each
/// validation, which has its own loader, meets them again.
static TOLD: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// Logs a warning, unless this process has logged one about the same thing, such as a damaged shard.
pub(super) fn warn_once(about: String, warning: impl Display) {
    let told = &mut *TOLD.lock();
    if told.len() <= LOGGED && told.insert(about) {
        match told.len() {
            ..=LOGGED => tracing::warn!("{warning}"),
            _ => tracing::warn!("more records are left out; from here on they are only counted"),
        }
    }
}

impl Faults {
    pub(super) fn new(is_strict: bool) -> Faults {
        Faults {
            is_strict,
            count: AtomicU64::new(0),
        }
    }

    /// Logs a fault, but only one for each damaged shard, or returns it if the loader is strict.
    pub(super) fn note(&self, fault: LoaderError) -> Result<(), LoaderError> {
        if self.is_strict {
            return Err(fault);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let what = match &fault {
            LoaderError::Shard(
                ShardError::Damaged { path, .. } | ShardError::Columns { path, .. },
            ) => path.display().to_string(),
            fault => fault.to_string(),
        };
        warn_once(what, format_args!("left out: {fault}"));
        Ok(())
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}
