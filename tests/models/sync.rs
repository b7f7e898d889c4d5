//! loom's types with the names and manners of `src/search/sync.rs`.

pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};

use loom::sync::MutexGuard;

/// Every word costs time in every execution. A table can grow by a step.
const MAX_WORDS: usize = (512 + 4) * 8;

pub(crate) const PAGE: usize = 1 << 6;

pub(crate) fn zeroed_words(length: usize) -> Box<[AtomicU64]> {
    let words = (0..length.min(MAX_WORDS)).map(|_| AtomicU64::new(0));
    words.collect()
}

/// A mutex without poison.
#[derive(Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("a panic ends the model")
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}
