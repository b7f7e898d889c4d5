//! Records that cannot be used.

use std::sync::atomic::{AtomicU64, Ordering};

use super::LoaderError;

/// Faults that are told one by one; after them they are only counted.
const TOLD: u64 = 100;

/// Counts and tells what is skipped, or stops at the first.
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

    /// Notes a fault, which names its file and place.
    pub(super) fn note(&self, fault: LoaderError) -> Result<(), LoaderError> {
        if self.is_strict {
            return Err(fault);
        }
        match self.count.fetch_add(1, Ordering::Relaxed) {
            before if before < TOLD => tracing::warn!("skipped {fault}"),
            TOLD => tracing::warn!("more records are skipped; from here on they are only counted"),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}
