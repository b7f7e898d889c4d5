//! loom's types with the names and interfaces of `src/search/sync.rs`.

pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};

use loom::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

/// The maximum size of a table, which allows it to grow once. Each word costs time in every run.
const MAX_WORDS: usize = (512 + 4) * 8;

/// The smallest number of words that can hold any block, rounded up to whole nodes.
pub(crate) const PAGE: usize = 36;

pub(crate) fn zeroed_words(length: usize) -> Box<[AtomicU64]> {
    let words = (0..length.min(MAX_WORDS)).map(|_| AtomicU64::new(0));
    words.collect()
}

/// A mutex without poisoning.
#[derive(Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A read-write lock without poisoning.
#[derive(Default)]
pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> RwLock<T> {
        RwLock(loom::sync::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Yields to the threads that the caller is waiting for.
pub(crate) fn sleep(_: Duration) {
    loom::thread::yield_now();
}
