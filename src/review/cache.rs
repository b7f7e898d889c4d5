//! Results of games that were reviewed earlier: in the user's cache folder, one file for each
//! [`Key`], or in memory.

use super::analysis::Searched;
use super::key::Key;
use super::people::Shares;
use crate::chess::Game;
use crate::{atomic_file, bounded};
use etcetera::BaseStrategy;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

/// Maximum size in bytes of a cache file that is read.
const LARGEST: u64 = 64 << 20;

/// Evaluations of a game's positions, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The search results; `None` for positions that were not searched.
    pub searched: Vec<Option<Searched>>,
    /// Human move probabilities for each position in which a move was played.
    pub people: Vec<Option<Shares>>,
}

impl Analysis {
    /// Returns an empty analysis of a game's positions.
    pub fn new(game: &Game) -> Analysis {
        let positions = game.plies().len();
        Analysis {
            searched: vec![None; positions],
            people: vec![None; positions - 1],
        }
    }

    pub(super) fn fits(&self, game: &Game) -> bool {
        let positions = game.plies().len();
        self.searched.len() == positions && self.people.len() + 1 == positions
    }
}

/// Where the results of games are kept between reviews.
pub trait Store: Sync {
    /// Returns the results of a game, if they are stored.
    fn load(&self, key: &Key) -> Option<Analysis>;

    /// Stores the results of a game.
    ///
    /// # Errors
    /// The system's error.
    fn store(&self, key: &Key, analysis: &Analysis) -> io::Result<()>;
}

/// A store in a folder.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
}

impl Cache {
    /// Returns the cache in the system's cache folder for the program.
    pub fn of_user() -> Cache {
        let strategy = etcetera::base_strategy::choose_native_strategy().ok();
        let folder = strategy.map(|it| it.cache_dir().join("tessera/review"));
        Cache { folder }
    }

    fn file(&self, key: &Key) -> Option<PathBuf> {
        let name = format!("{}.json", key.digest());
        Some(self.folder.as_ref()?.join(name))
    }
}

impl Store for Cache {
    /// A malformed file counts as missing.
    fn load(&self, key: &Key) -> Option<Analysis> {
        let bytes = bounded::read_regular(&self.file(key)?, LARGEST).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn store(&self, key: &Key, analysis: &Analysis) -> io::Result<()> {
        let (Some(file), Some(folder)) = (self.file(key), &self.folder) else {
            return Ok(());
        };
        std::fs::create_dir_all(folder)?;
        let mut unfinished = atomic_file::unfinished(&file)?;
        serde_json::to_writer(&mut unfinished, analysis)?;
        atomic_file::persist(unfinished, &file)
    }
}

/// A store in memory, which forgets the games that were stored first.
#[derive(Debug)]
pub struct Recent {
    kept: Mutex<VecDeque<(Key, Analysis)>>,
    /// Maximum total number of positions.
    positions: usize,
}

impl Recent {
    /// Returns a store for games with this many positions in total.
    pub fn new(positions: usize) -> Recent {
        Recent {
            kept: Mutex::default(),
            positions,
        }
    }
}

impl Store for Recent {
    fn load(&self, key: &Key) -> Option<Analysis> {
        let kept = self.kept.lock();
        let known = kept.iter().find(|(other, _)| other == key);
        known.map(|(_, analysis)| analysis.clone())
    }

    fn store(&self, key: &Key, analysis: &Analysis) -> io::Result<()> {
        let mut kept = self.kept.lock();
        kept.retain(|(other, _)| other != key);
        kept.push_front((key.clone(), analysis.clone()));
        let mut positions = 0;
        kept.retain(|(_, analysis)| {
            positions += analysis.searched.len();
            positions <= self.positions
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::curve::Evaluation;
    use crate::review::key::ScoredBy;

    fn key(moves: &[&str], nodes: u64) -> (Game, Key) {
        let mut game = Game::default();
        moves
            .iter()
            .for_each(|mv| game.play(game.parse_move(mv).unwrap()));
        let name = "Stockfish".to_owned();
        let key = Key::new(&game, ScoredBy::Judge { name, nodes }, None);
        (game, key)
    }

    #[test]
    fn results_are_kept_by_key() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache {
            folder: Some(folder.path().join("made")),
        };
        let (game, own) = key(&["e2e4"], 5);
        assert_eq!(cache.load(&own), None);
        let mut analysis = Analysis::new(&game);
        analysis.searched[1] = Some(Searched {
            line: vec!["e7e5".to_owned()],
            evaluation: Evaluation::Centipawns(-30),
            second: Some(Evaluation::Mate(-3)),
        });
        cache.store(&own, &analysis).unwrap();
        assert_eq!(cache.load(&own), Some(analysis));
        assert_eq!(cache.load(&key(&["e2e4"], 6).1), None);
        assert_eq!(cache.load(&key(&[], 5).1), None);
        for nonsense in ["", "{}", "[]"] {
            std::fs::write(cache.file(&own).unwrap(), nonsense).unwrap();
            assert_eq!(cache.load(&own), None);
        }
    }

    #[test]
    fn games_of_long_ago_are_forgotten() {
        let recent = Recent::new(9);
        let (game, first) = key(&["e2e4", "e7e5"], 5);
        let analysis = Analysis::new(&game);
        recent.store(&first, &analysis).unwrap();
        let (game, second) = key(&["g1f3", "g8f6", "f3g1", "f6g8"], 5);
        let long = Analysis::new(&game);
        recent.store(&second, &long).unwrap();
        recent.store(&second, &long).unwrap();
        assert_eq!(recent.load(&first), Some(analysis));
        recent.store(&key(&["d2d4", "d7d5"], 5).1, &long).unwrap();
        assert_eq!(recent.load(&first), None);
        assert_eq!(recent.load(&second), None);
        assert_eq!(recent.kept.lock().len(), 1);
    }
}
