//! Counts and logs unusable records.

use std::sync::atomic::{AtomicU64, Ordering};

use super::LoaderError;

/// Number of faults that are logged individually; later ones are only counted.
const LOGGED: u64 = 100;

/// Counts and logs skipped records, or stops at the first fault.
#[derive(Debug, Default)]
pub(super) struct Faults {
    is_strict: bool,
    count: AtomicU64,
}

impl Faults {
    pub(super) fn new(is_strict: bool) -> Faults {
        Faults {
            is_strict,
            count: AtomicU64::new(0),
        }
    }

    /// Logs a fault, or returns it if the loader is strict.
    pub(super) fn note(&self, fault: LoaderError) -> Result<(), LoaderError> {
        if self.is_strict {
            return Err(fault);
        }
        match self.count.fetch_add(1, Ordering::Relaxed) {
            before if before < LOGGED => tracing::warn!("skipped {fault}"),
            LOGGED => {
                tracing::warn!("more records are skipped; from here on they are only counted")
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}
