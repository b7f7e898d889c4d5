//! The newest network behind one backend.

use crate::nn::{Backend, BackendError, Batch, Evaluations, Foreseen, Imagination, Properties};
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A backend whose network can be replaced while others search with it. Games go on with
/// the new one, as KataGo's actors do: nobody waits for the last of them to end.
pub(super) struct Latest {
    properties: Properties,
    current: RwLock<Arc<dyn Backend>>,
    generation: AtomicU64,
}

impl Latest {
    pub fn new(first: Arc<dyn Backend>, generation: u64) -> Latest {
        Latest {
            properties: first.properties().clone(),
            current: RwLock::new(first),
            generation: AtomicU64::new(generation),
        }
    }

    /// Evaluates by `next`, the network of this generation, from now on. Whether it can: it
    /// reads what the first one does.
    pub fn replace(&self, next: Arc<dyn Backend>, generation: u64) -> bool {
        let fits = next.properties().encoder == self.properties.encoder;
        if fits {
            *self.current.write() = next;
            self.generation.store(generation, Relaxed);
        }
        fits
    }

    /// The generation of the network that evaluates.
    pub fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    fn current(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.current.read())
    }
}

impl Backend for Latest {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        self.current().evaluate(batch, out)
    }

    fn foresee(
        &self,
        batch: &Batch,
        steps: usize,
        out: &mut Evaluations,
    ) -> Result<Vec<Foreseen>, BackendError> {
        self.current().foresee(batch, steps, out)
    }

    /// That of the newest network. Boards that another imagined mean nothing to it.
    fn imagination(&self) -> Option<Arc<dyn Imagination>> {
        self.current().imagination()
    }

    fn forget(&self) {
        self.current().forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::nn::{Random, evaluate_games};

    #[test]
    fn the_newest_evaluates() {
        let game = Game::default();
        let value = |backend: &dyn Backend| evaluate_games(backend, [&game]).unwrap()[0].value.q;
        let latest = Latest::new(Arc::new(Random::new(1)), 4);
        assert_eq!(value(&latest), value(&Random::new(1)));
        assert_eq!(latest.generation(), 4);
        assert!(latest.replace(Arc::new(Random::new(2)), 5));
        assert_eq!(latest.generation(), 5);
        assert_eq!(value(&latest), value(&Random::new(2)));
    }
}
