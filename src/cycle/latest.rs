//! The newest network.

use crate::backend::Backend;
use parking_lot::RwLock;
use std::sync::Arc;

/// The newest network, which can be replaced while searches are running. Each search keeps the
/// network with which it started, so no tree mixes the values of two networks. As in KataGo, games
/// continue with the new network, so a replacement need not wait until running games have ended.
pub(super) struct Latest(RwLock<Current>);

struct Current {
    network: Arc<dyn Backend>,
    generation: u64,
}

impl Latest {
    pub fn new(network: Arc<dyn Backend>, generation: u64) -> Latest {
        Latest(RwLock::new(Current {
            network,
            generation,
        }))
    }

    /// Replaces the network with that of this generation. If their inputs differ, returns
    /// false and keeps the old network.
    pub fn replace(&self, network: Arc<dyn Backend>, generation: u64) -> bool {
        let mut current = self.0.write();
        let fits = network.properties().encoder == current.network.properties().encoder;
        if fits {
            *current = Current {
                network,
                generation,
            };
        }
        fits
    }

    /// Returns the newest network.
    pub fn network(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.0.read().network)
    }

    /// Returns the newest network's generation.
    pub fn generation(&self) -> u64 {
        self.0.read().generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Random, evaluate_games};
    use crate::chess::Game;

    #[test]
    fn the_newest_is_there_for_whoever_asks_next() {
        let game = Game::default();
        let value = |backend: &dyn Backend| evaluate_games(backend, [&game]).unwrap()[0].value.q;
        let latest = Latest::new(Arc::new(Random::new(1)), 4);
        assert_eq!(latest.generation(), 4);
        let before = latest.network();
        assert!(latest.replace(Arc::new(Random::new(2)), 5));
        assert_eq!(latest.generation(), 5);
        assert_eq!(value(&*latest.network()), value(&Random::new(2)));
        // Running searches keep the old network.
        assert_eq!(value(&*before), value(&Random::new(1)));
    }
}
