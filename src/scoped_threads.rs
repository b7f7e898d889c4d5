//! Runs several threads concurrently and waits for all of them.

#[cfg(feature = "torch")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

/// Runs each worker on its own thread and waits for all of them.
///
/// # Errors
/// The error of a failed worker; if several workers fail, the error of the first one in order.
///
/// # Panics
/// If a worker panics.
pub(crate) fn side_by_side<W, T, E>(workers: impl IntoIterator<Item = W>) -> Result<Vec<T>, E>
where
    W: FnOnce() -> Result<T, E> + Send,
    T: Send,
    E: Send,
{
    std::thread::scope(|scope: &Scope<'_, '_>| {
        let workers: Vec<_> = workers
            .into_iter()
            .map(|worker| scope.spawn(worker))
            .collect();
        join(workers)
    })
}

/// Sets a flag when it is dropped. A thread holds this guard until it ends, for whatever reason, so
/// that the other threads can stop when one fails or panics.
#[cfg(feature = "torch")]
pub(crate) struct SetAtEnd<'a>(pub &'a AtomicBool);

#[cfg(feature = "torch")]
impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits for the threads; see [`side_by_side`].
pub(crate) fn join<T, E>(workers: Vec<ScopedJoinHandle<'_, Result<T, E>>>) -> Result<Vec<T>, E> {
    let joined = workers.into_iter().map(ScopedJoinHandle::join);
    joined
        .map(|it| it.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        .collect()
}
