//! The newest network behind one backend.

use crate::nn::{Backend, BackendError, Batch, Evaluations, Properties};
use parking_lot::RwLock;
use std::sync::Arc;

/// A backend whose network can be replaced while others search with it. Games go on with
/// the new one, as KataGo's actors do: nobody waits for the last of them to end.
pub(super) struct Latest {
    properties: Properties,
    current: RwLock<Arc<dyn Backend>>,
}

impl Latest {
    pub fn new(first: Arc<dyn Backend>) -> Latest {
        Latest {
            properties: first.properties().clone(),
            current: RwLock::new(first),
        }
    }

    /// Evaluates by `next` from now on. Whether it can: it reads what the first one does.
    pub fn replace(&self, next: Arc<dyn Backend>) -> bool {
        let fits = next.properties().encoder == self.properties.encoder;
        if fits {
            *self.current.write() = next;
        }
        fits
    }
}

impl Backend for Latest {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        let current = Arc::clone(&self.current.read());
        current.evaluate(batch, out)
    }

    fn forget(&self) {
        self.current.read().forget();
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
        let latest = Latest::new(Arc::new(Random::new(1)));
        assert_eq!(value(&latest), value(&Random::new(1)));
        assert!(latest.replace(Arc::new(Random::new(2))));
        assert_eq!(value(&latest), value(&Random::new(2)));
    }
}
