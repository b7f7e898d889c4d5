//! Everything that the results of a reviewed game depend on.

use crate::backend::{BackendKind, BackendOptions, Precision, Properties};
use crate::chess::{Game, fen};
use crate::inference::LoadError;
use crate::version;
use serde::Serialize;
use sha2::{Digest, Sha256};
use shakmaty::CastlingMode;

/// Everything that the results of a game depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    /// The program's version.
    version: String,
    /// The position from which the game begins, as a FEN.
    start: String,
    /// Whether castling follows the rules of Chess960.
    chess960: bool,
    /// The moves, in UCI notation.
    moves: Vec<String>,
    /// The origin of the scores.
    scores: ScoredBy,
    /// The network that predicts people's moves, if there is one.
    people: Option<NetworkIdentity>,
}

/// The origin of a game's scores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ScoredBy {
    /// An external engine that this program runs.
    Judge {
        /// Its name.
        name: String,
        /// The nodes for each position.
        nodes: u64,
    },
    /// The search of one of Tessera's networks.
    Network {
        /// The network.
        network: NetworkIdentity,
        /// The nodes for each position.
        nodes: u64,
    },
    /// Scores that came with the game.
    Sent {
        /// The name of the engine that found them.
        engine: String,
        /// The SHA-256 digest of the scores.
        digest: String,
    },
}

/// A network and the number format in which it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkIdentity {
    /// The SHA-256 digest of its file, or the name of a backend without a network.
    network: String,
    /// The format, if it has several.
    precision: Option<Precision>,
}

impl NetworkIdentity {
    /// Returns the identity of a loaded network.
    ///
    /// # Errors
    /// [`LoadError`] if the network's file can no longer be read.
    pub fn of(
        options: &BackendOptions,
        properties: &Properties,
    ) -> Result<NetworkIdentity, LoadError> {
        let network = match options.kind {
            BackendKind::Uniform | BackendKind::Random => properties.name.clone(),
            BackendKind::Torch | BackendKind::Check => digest_of_file(options)?,
        };
        Ok(NetworkIdentity {
            network,
            precision: properties.format.as_ref().map(|format| format.precision),
        })
    }
}

#[cfg(feature = "torch")]
fn digest_of_file(options: &BackendOptions) -> Result<String, LoadError> {
    let file = crate::inference::network_file(&options.network)?;
    Ok(format!("{:x}", Sha256::digest(&file)))
}

/// Programs without libtorch load no networks.
#[cfg(not(feature = "torch"))]
fn digest_of_file(_: &BackendOptions) -> Result<String, LoadError> {
    Err(LoadError::NoneBuiltIn)
}

impl Key {
    /// Returns the key of a game.
    pub fn new(game: &Game, scores: ScoredBy, people: Option<NetworkIdentity>) -> Key {
        let moves = game.plies().iter().filter_map(|ply| ply.played);
        Key {
            version: version::version().to_string(),
            start: fen(&game.plies()[0].position),
            chess960: game.mode() == CastlingMode::Chess960,
            moves: moves.map(|mv| game.format_move(mv)).collect(),
            scores,
            people,
        }
    }

    /// Returns the SHA-256 digest of the key, in hexadecimal.
    pub fn digest(&self) -> String {
        digest(self)
    }
}

/// Returns the SHA-256 digest of a value's JSON, in hexadecimal.
pub(super) fn digest(value: &impl Serialize) -> String {
    // These values have neither maps with other keys than strings nor errors of their own.
    let json = serde_json::to_vec(value).unwrap_or_default();
    format!("{:x}", Sha256::digest(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each field of the key tells two games apart.
    #[test]
    fn every_field_counts() {
        let mut game = Game::default();
        let judge = |name: &str, nodes| ScoredBy::Judge {
            name: name.to_owned(),
            nodes,
        };
        let network = |precision| NetworkIdentity {
            network: "ab".to_owned(),
            precision,
        };
        let own = |nodes| ScoredBy::Network {
            network: network(Some(Precision::Int8)),
            nodes,
        };
        let sent = |digest: &str| ScoredBy::Sent {
            engine: "a".to_owned(),
            digest: digest.to_owned(),
        };
        let mut keys = vec![
            Key::new(&game, judge("a", 5), None),
            Key::new(&game, judge("b", 5), None),
            Key::new(&game, judge("a", 6), None),
            Key::new(&game, own(5), None),
            Key::new(&game, own(6), None),
            Key::new(&game, sent("1"), None),
            Key::new(&game, sent("2"), None),
            Key::new(&game, judge("a", 5), Some(network(None))),
            Key::new(&game, judge("a", 5), Some(network(Some(Precision::F32)))),
        ];
        game.set_mode(CastlingMode::Chess960);
        keys.push(Key::new(&game, judge("a", 5), None));
        game.set_mode(CastlingMode::Standard);
        game.play(game.parse_move("e2e4").unwrap());
        keys.push(Key::new(&game, judge("a", 5), None));
        let other = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1";
        let other = Game::from_fen(other, CastlingMode::Standard).unwrap();
        keys.push(Key::new(&other, judge("a", 5), None));
        let digests: std::collections::HashSet<String> = keys.iter().map(Key::digest).collect();
        assert_eq!(digests.len(), keys.len());
        assert_eq!(keys[0].digest(), keys[0].clone().digest());
    }
}
