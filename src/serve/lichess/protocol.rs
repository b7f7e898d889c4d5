//! The messages of the external-engine protocol, according to Lichess's API documentation.

use crate::play;
use crate::serve::config::Config;
use crate::serve::position::Written;
use crate::serve::problem::Problem;
use crate::serve::request::Question;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The engine's name on Lichess; a later registration with the same name replaces this one.
pub(super) const NAME: &str = "Tessera";
/// Lichess's names for chess and Chess960.
const CHESS: &str = "chess";

/// The registration of an engine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Registration {
    pub(super) name: &'static str,
    max_threads: usize,
    /// Maximum memory in MiB.
    max_hash: usize,
    variants: [&'static str; 1],
    pub(super) provider_secret: String,
}

impl Registration {
    /// Creates the registration of a server, with a new secret.
    pub(super) fn new(config: &Config) -> Registration {
        let search = &config.player.options.search;
        let secret: [u8; 32] = rand::random();
        Registration {
            name: NAME,
            max_threads: search.threads.max(1),
            max_hash: search.hash.max(1),
            variants: [CHESS],
            provider_secret: secret.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// An engine that Lichess has registered.
#[derive(Debug, Deserialize)]
pub(super) struct Engine {
    pub(super) id: String,
    pub(super) name: String,
}

/// The message with which a provider polls for requests.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Poll<'a> {
    pub(super) provider_secret: &'a str,
}

/// A request to be answered.
#[derive(Debug, Deserialize)]
pub(super) struct Job {
    pub(super) id: String,
    pub(super) work: Work,
}

/// The position to analyse, and the limits. Lichess sends one of the limits; without any, the
/// analysis runs until it is stopped.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Work {
    /// The analysis board that sent the request.
    pub(super) session_id: String,
    threads: usize,
    /// Memory in MiB.
    hash: usize,
    multi_pv: usize,
    variant: String,
    initial_fen: String,
    /// Moves in UCI notation, with castling written as the king taking its rook.
    moves: Vec<String>,
    /// Time limit in milliseconds.
    movetime: Option<u64>,
    depth: Option<u32>,
    nodes: Option<u64>,
    infinite: Option<bool>,
}

impl Work {
    /// Returns the question for the server's own player, within the limits of the registration.
    pub(super) fn question(&self, config: &Config) -> Result<Question, Problem> {
        if self.variant != CHESS {
            let detail = format!("the variant {} is not supported", self.variant);
            return Err(Problem::field("variant", detail));
        }
        let written = Written {
            fen: Some(&self.initial_fen),
            moves: &self.moves,
            chess960: true,
        };
        let mut settings = config.player.clone();
        settings.analyse_mode = true;
        let search = &mut settings.options.search;
        search.threads = self.threads.clamp(1, search.threads.max(1));
        search.hash = self.hash.clamp(1, search.hash.max(1));
        search.multi_pv = self.multi_pv.clamp(1, config.limits.lines);
        Ok(Question {
            settings,
            network: None,
            game: written.game(config.limits.moves)?,
            limits: self.limits(),
        })
    }

    /// Returns the limits that the Lichess user has chosen. The server's own limits apply to
    /// clients over HTTP.
    fn limits(&self) -> play::Limits {
        let limits = play::Limits {
            move_time: self.movetime.map(Duration::from_millis),
            depth: self.depth,
            nodes: self.nodes,
            ..play::Limits::default()
        };
        let is_unlimited = limits == play::Limits::default();
        match is_unlimited || self.infinite == Some(true) {
            true => play::Limits {
                infinite: true,
                ..play::Limits::default()
            },
            false => limits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn work(changes: Value) -> Work {
        let mut work = json!({
            "sessionId": "abcd1234", "threads": 4, "hash": 16, "multiPv": 3, "variant": "chess",
            "initialFen": "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "moves": ["e2e4", "g8f6"],
        });
        work.as_object_mut()
            .unwrap()
            .extend(changes.as_object().unwrap().clone());
        serde_json::from_value(work).unwrap()
    }

    fn question(changes: Value) -> Result<Question, Problem> {
        let mut config = Config::default();
        config.player.options.search.threads = 2;
        config.player.options.search.hash = 64;
        work(changes).question(&config)
    }

    #[test]
    fn work_becomes_a_question_within_what_was_registered() {
        let asked = question(json!({"movetime": 8000})).ok().unwrap();
        let search = &asked.settings.options.search;
        assert_eq!((search.threads, search.hash, search.multi_pv), (2, 16, 3));
        assert!(asked.settings.analyse_mode);
        assert_eq!(asked.game.plies().len(), 3);
        let asked = question(json!({"hash": 4096, "threads": 1, "multiPv": 0, "depth": 20}));
        let asked = asked.ok().unwrap();
        let search = &asked.settings.options.search;
        assert_eq!((search.threads, search.hash, search.multi_pv), (1, 64, 1));
    }

    #[test]
    fn every_limit_is_kept() {
        let limits = |changes| question(changes).ok().unwrap().limits;
        let day = Duration::from_secs(24 * 60 * 60);
        assert_eq!(limits(json!({"movetime": 86_400_000})).move_time, Some(day));
        assert_eq!(limits(json!({"depth": 12})).depth, Some(12));
        assert_eq!(limits(json!({"nodes": 5_000_000})).nodes, Some(5_000_000));
        let infinite = play::Limits {
            infinite: true,
            ..play::Limits::default()
        };
        assert_eq!(limits(json!({})), infinite);
        assert_eq!(limits(json!({"infinite": true, "nodes": 9})), infinite);
        assert_eq!(
            limits(json!({"infinite": false, "nodes": 9})).nodes,
            Some(9)
        );
    }

    #[test]
    fn castling_is_king_takes_rook() {
        let fen = "r3k2r/pppq1ppp/8/8/8/8/PPPQ1PPP/R3K2R w KQkq - 0 1";
        let asked = question(json!({"initialFen": fen, "moves": ["e1h1", "e8a8"]}));
        let game = asked.ok().unwrap().game;
        let castling = game.plies()[1].played.unwrap();
        assert_eq!(game.format_move(castling), "e1h1");
    }

    #[test]
    fn wrong_work_is_refused() {
        for changes in [
            json!({"variant": "atomic"}),
            json!({"initialFen": "no position"}),
            json!({"moves": ["e2e5"]}),
        ] {
            assert!(question(changes.clone()).is_err(), "{changes}");
        }
    }

    #[test]
    fn secrets_differ_and_are_long_enough() {
        let secret = || Registration::new(&Config::default()).provider_secret;
        let (one, other) = (secret(), secret());
        assert_ne!(one, other);
        assert_eq!(one.len(), 64);
    }
}
