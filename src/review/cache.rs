//! Cached results of games that were reviewed earlier, in the user's cache folder: one file for
//! each combination of game, network and number of nodes.

use super::analysis::Searched;
use super::people::Shares;
use crate::{atomic_file, bounded, version};
use etcetera::BaseStrategy;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;
use std::path::PathBuf;

use crate::chess::{Game, fen};

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
    #[must_use]
    pub fn new(game: &Game) -> Analysis {
        let positions = game.plies().len();
        Analysis {
            searched: vec![None; positions],
            people: vec![None; positions - 1],
        }
    }

    fn fits(&self, game: &Game) -> bool {
        let positions = game.plies().len();
        self.searched.len() == positions && self.people.len() + 1 == positions
    }
}

/// A cache of results in a folder.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: Option<PathBuf>,
    /// Everything other than the game that results depend on.
    identity: String,
}

impl Cache {
    /// Returns a cache in the system's cache folder for the program. `identity` names everything
    /// that results depend on: the networks, their format and the number of nodes.
    #[must_use]
    pub fn of_user(identity: String) -> Cache {
        let strategy = etcetera::base_strategy::choose_native_strategy().ok();
        let folder = strategy.map(|it| it.cache_dir().join("tessera/review"));
        Cache { folder, identity }
    }

    /// Returns a cache in `folder`.
    #[must_use]
    pub fn in_folder(folder: PathBuf, identity: String) -> Cache {
        let folder = Some(folder);
        Cache { folder, identity }
    }

    fn file(&self, game: &Game) -> Option<PathBuf> {
        let mut digest = Sha256::new();
        let start = fen(&game.plies()[0].position);
        digest.update(format!(
            "{}\n{}\n{start}",
            version::version(),
            self.identity
        ));
        for mv in game.plies().iter().filter_map(|ply| ply.played) {
            digest.update(format!("\n{}", game.format_move(mv)));
        }
        Some(
            self.folder
                .as_ref()?
                .join(format!("{:x}.json", digest.finalize())),
        )
    }

    /// Returns the cached evaluations of a game, or an empty analysis if the file is missing or
    /// malformed.
    #[must_use]
    pub fn load(&self, game: &Game) -> Analysis {
        let bytes = self
            .file(game)
            .and_then(|file| bounded::read_regular(&file, LARGEST).ok());
        let kept = bytes.and_then(|bytes| serde_json::from_slice::<Analysis>(&bytes).ok());
        kept.filter(|kept| kept.fits(game))
            .unwrap_or_else(|| Analysis::new(game))
    }

    /// Stores the known results of a game.
    ///
    /// # Errors
    /// The system's error.
    pub fn store(&self, game: &Game, analysis: &Analysis) -> io::Result<()> {
        let (Some(file), Some(folder)) = (self.file(game), &self.folder) else {
            return Ok(());
        };
        std::fs::create_dir_all(folder)?;
        let mut unfinished = atomic_file::unfinished(&file)?;
        serde_json::to_writer(&mut unfinished, analysis)?;
        atomic_file::persist(unfinished, &file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::curve::Evaluation;

    #[test]
    fn results_are_kept_by_game_and_identity() {
        let folder = tempfile::tempdir().unwrap();
        let cache =
            |identity: &str| Cache::in_folder(folder.path().join("made"), identity.to_owned());
        let mut game = Game::default();
        game.play(game.parse_move("e2e4").unwrap());
        let mut analysis = cache("a").load(&game);
        assert_eq!(analysis, Analysis::new(&game));
        analysis.searched[1] = Some(Searched {
            line: vec!["e7e5".to_owned()],
            evaluation: Evaluation::Centipawns(-30),
            wdl: [0.3, 0.3, 0.4],
            second: Some(Evaluation::Mate(-3)),
        });
        cache("a").store(&game, &analysis).unwrap();
        assert_eq!(cache("a").load(&game), analysis);
        assert_eq!(cache("b").load(&game), Analysis::new(&game));
        let other = Game::default();
        assert_eq!(cache("a").load(&other), Analysis::new(&other));
        let file = cache("a").file(&game).unwrap();
        for nonsense in ["", "{}", "{\"searched\":[],\"people\":[]}"] {
            std::fs::write(&file, nonsense).unwrap();
            assert_eq!(cache("a").load(&game), Analysis::new(&game));
        }
    }
}
