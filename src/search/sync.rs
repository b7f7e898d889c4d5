//! The synchronisation primitives. `tests/models.rs` replaces them with loom's to check the search
//! under every order of events that the memory model allows.

pub(crate) use parking_lot::{Mutex, RwLock};
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, fence};
pub(crate) use std::thread::sleep;

/// Number of words that a thread takes from the shared memory at a time.
pub(crate) const PAGE: usize = 1 << 12;

/// Returns `length` zeroed words, or fewer if the address space is too small. The system commits
/// them as they are first touched.
pub(crate) fn zeroed_words(mut length: usize) -> Box<[AtomicU64]> {
    loop {
        match bytemuck::allocation::try_zeroed_slice_box(length) {
            Ok(words) => return words,
            Err(()) => length /= 2,
        }
    }
}
