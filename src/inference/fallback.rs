//! Replaces a way that fails during play.

use super::torch_backend::TorchBackend;
use crate::backend::{Backend, BackendError, Batch, Evaluations, Properties};
use parking_lot::RwLock;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use tch::Device;

/// Prepares the network to run by the way that is trusted most.
pub(super) type Reopen = Box<dyn FnOnce() -> Result<TorchBackend, String> + Send + Sync>;

/// A network that runs by another way from the first error of its device on, if there is one.
/// Clones share the network.
#[derive(Clone)]
pub(super) struct Fallback {
    state: Arc<RwLock<State>>,
    properties: Properties,
    pub device: Device,
}

struct State {
    backend: Arc<TorchBackend>,
    /// `None` if there is no other way, or it has been taken.
    reopen: Option<Reopen>,
}

impl Debug for Fallback {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Fallback({:?})", self.state.read().backend)
    }
}

impl Fallback {
    pub fn new(backend: TorchBackend, reopen: Option<Reopen>) -> Fallback {
        Fallback {
            properties: backend.properties().clone(),
            device: backend.device,
            state: Arc::new(RwLock::new(State {
                backend: Arc::new(backend),
                reopen,
            })),
        }
    }

    /// Sets the recommended number of threads, unless `threads` is 0.
    pub fn with_threads(mut self, threads: usize) -> Fallback {
        if threads > 0 {
            self.properties.recommended_threads = threads;
        }
        self
    }

    fn backend(&self) -> Arc<TorchBackend> {
        Arc::clone(&self.state.read().backend)
    }

    /// Takes the other way after `failed` has failed. Returns `false` if no other way exists.
    fn replace(&self, failed: &Arc<TorchBackend>, reason: &str) -> bool {
        let mut state = self.state.write();
        if !Arc::ptr_eq(&state.backend, failed) {
            // Another thread was faster.
            return true;
        }
        let Some(reopen) = state.reopen.take() else {
            return false;
        };
        let name = &self.properties.name;
        match reopen() {
            Ok(backend) => {
                tracing::warn!("{name}: {reason}; it runs by {} now", backend.way());
                state.backend = Arc::new(backend);
                true
            }
            Err(error) => {
                tracing::warn!("{name}: {reason}; no other way runs it either: {error}");
                false
            }
        }
    }
}

impl Backend for Fallback {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        let backend = self.backend();
        match backend.evaluate(batch, out) {
            Err(BackendError::Torch(reason)) if self.replace(&backend, &reason) => {
                self.backend().evaluate(batch, out)
            }
            found => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::tests::{assert_same, positions};
    use crate::backend::{CodePolicy, DeviceChoice, Precision, Way};
    use crate::inference::open_by;
    use crate::torch::tiny;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Returns the tiny network, or one that fails with batches larger than those of the warm-up.
    fn network(fails: bool) -> TorchBackend {
        let check = "\n    if x.size(0) > 2:\n        return x, x, x, x, x";
        let (head, body) = tiny::FORWARD.split_once("x):").unwrap();
        let check = if fails { check } else { "" };
        let forward = format!("{head}x):{check}{body}");
        let file = tiny::file(&forward, Some(&tiny::honest_metadata("wdl")));
        let (policy, device) = (CodePolicy::Allowed, DeviceChoice::Cpu);
        open_by(Way::File, &file, policy, device, Precision::F32, 1).unwrap()
    }

    #[test]
    fn a_way_that_fails_is_replaced_once() {
        static REOPENED: AtomicUsize = AtomicUsize::new(0);
        let reopen = || {
            REOPENED.fetch_add(1, Ordering::Relaxed);
            Ok(network(false))
        };
        let network_of_two_ways = Fallback::new(network(true), Some(Box::new(reopen)));
        let expected = network(false);
        assert_same(&network_of_two_ways, &expected, &positions(2, true));
        assert_eq!(REOPENED.load(Ordering::Relaxed), 0);
        std::thread::scope(|scope| {
            for size in 3..7 {
                let (found, expected) = (network_of_two_ways.clone(), &expected);
                scope.spawn(move || assert_same(&found, expected, &positions(size, true)));
            }
        });
        assert_eq!(REOPENED.load(Ordering::Relaxed), 1);

        let alone = Fallback::new(network(true), None);
        let error = alone.evaluate(&positions(3, true), &mut Evaluations::default());
        assert!(matches!(error, Err(BackendError::Torch(_))), "{error:?}");
    }
}
