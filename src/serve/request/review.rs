//! Validated review requests.

use super::ReviewRequest;
use super::checked::checked;
use crate::data::pgn::Games;
use crate::review::Source;
use crate::serve::config::{Config, Limits};
use crate::serve::problem::Problem;
use shakmaty::Color;

/// Default nodes per position.
const NODES: u64 = 800;

/// A validated review request.
#[derive(Debug)]
pub(in crate::serve) struct Reviewing {
    /// The games, each with the side under review.
    pub(in crate::serve) games: Vec<(Source, Option<Color>)>,
    /// Games that cannot be read, with the reason.
    pub(in crate::serve) unreadable: Vec<String>,
    pub(in crate::serve) player: Option<String>,
    pub(in crate::serve) elo: Option<u16>,
    pub(in crate::serve) nodes: u64,
    pub(in crate::serve) network: String,
}

impl ReviewRequest {
    pub(in crate::serve) fn reviewing(&self, config: &Config) -> Result<Reviewing, Problem> {
        if self.player.is_some() && self.side.is_some() {
            let detail = "name a player or a side: the player's name tells the side";
            return Err(Problem::field("side", detail));
        }
        let (games, unreadable) = self.read(&config.limits)?;
        let nodes = self.nodes.unwrap_or(NODES);
        check_nodes(nodes, &games, config.limits.nodes)?;
        Ok(Reviewing {
            games: self.chosen(games)?,
            unreadable,
            player: self.player.clone(),
            elo: checked("elo", self.elo)?,
            nodes,
            network: self.network.clone().unwrap_or_else(|| "main".to_owned()),
        })
    }

    /// Returns the games, and the reasons why others cannot be read.
    fn read(&self, limits: &Limits) -> Result<(Vec<Source>, Vec<String>), Problem> {
        let text = self.pgn.as_deref().unwrap_or_default();
        let (mut games, mut unreadable) = (Vec::new(), Vec::new());
        for (number, text) in (1..).zip(Games::new(text.as_bytes())) {
            if number > limits.games {
                let detail = format!("there are more than {} games", limits.games);
                return Err(Problem::field("pgn", detail));
            }
            let read = text
                .map_err(|error| error.to_string())
                .and_then(|text| source(&text));
            match read {
                Ok(source) => {
                    let cut_off = source.cut_off();
                    unreadable.extend(cut_off.map(|it| format!("game {number}: {it}")));
                    games.push(source);
                }
                Err(error) => unreadable.push(format!("game {number}: {error}")),
            }
        }
        let longest = games.iter().map(|it| it.game.plies().len() - 1).max();
        match (longest, unreadable.first()) {
            (Some(moves), _) if moves > limits.moves => {
                let detail = format!("{moves} moves are more than {}", limits.moves);
                Err(Problem::field("pgn", detail))
            }
            (Some(_), _) => Ok((games, unreadable)),
            (None, Some(error)) => Err(Problem::field("pgn", error.as_str())),
            (None, None) => Err(Problem::field("pgn", "send a game as PGN")),
        }
    }

    /// Returns the games to review: all, or those of the named player.
    fn chosen(&self, games: Vec<Source>) -> Result<Vec<(Source, Option<Color>)>, Problem> {
        let Some(player) = &self.player else {
            let side = self.side.map(Color::from);
            return Ok(games.into_iter().map(|game| (game, side)).collect());
        };
        let of_player = games.into_iter().filter_map(|game| {
            let side = game.side_of(player)?;
            Some((game, Some(side)))
        });
        let of_player: Vec<_> = of_player.collect();
        match of_player.is_empty() {
            false => Ok(of_player),
            true => {
                let detail = "no game has a player of this name: leave `player` out to review both";
                Err(Problem::field("player", detail))
            }
        }
    }
}

/// Returns a game that either has at least one readable move or has no moves.
fn source(text: &[u8]) -> Result<Source, String> {
    let source = Source::read(text).map_err(|error| error.to_string())?;
    match &source.fault {
        Some(fault) if source.moves().is_empty() => Err(fault.clone()),
        _ => Ok(source),
    }
}

/// Checks that all positions together stay within a search's node limit.
fn check_nodes(nodes: u64, games: &[Source], most: u64) -> Result<(), Problem> {
    let positions: usize = games.iter().map(|it| it.game.plies().len()).sum();
    let all = nodes.saturating_mul(positions as u64);
    let detail = match nodes {
        0 => "must be 1 or more".to_owned(),
        _ if all > most => format!(
            "{positions} positions of {nodes} nodes are {all} nodes, more than {most}: take \
             fewer nodes or fewer games"
        ),
        _ => return Ok(()),
    };
    Err(Problem::field("nodes", detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::json::parse;
    use crate::serve::request::is_request;
    use serde_json::{Value, json};

    fn reviewing(body: &Value) -> Result<Reviewing, Value> {
        let request = parse::<ReviewRequest>(body.to_string().as_bytes());
        let checked = request.and_then(|it| it.reviewing(&Config::default()));
        checked.map_err(|problem| serde_json::to_value(problem).unwrap())
    }

    #[test]
    fn every_field_reaches_the_review() {
        let pgn = "[White \"Anna\"]\n\n1. e4 *\n\n[Black \"anna\"]\n\n1. d4 d5 *\n\n\
                   [White \"Bert\"]\n\n*\n\n[FEN \"no\"]\n\n*";
        let asked = json!({
            "pgn": pgn, "player": "Anna", "elo": 1500, "nodes": 9, "network": "human", "side": null,
        });
        let asked = reviewing(&asked).unwrap();
        let sides: Vec<_> = asked.games.iter().map(|(_, side)| *side).collect();
        assert_eq!(sides, [Some(Color::White), Some(Color::Black)]);
        assert_eq!((asked.elo, asked.nodes), (Some(1500), 9));
        assert_eq!(
            (asked.network.as_str(), asked.player.as_deref()),
            ("human", Some("Anna"))
        );
        assert!(
            asked.unreadable[0].starts_with("game 4: "),
            "{:?}",
            asked.unreadable
        );
        let plain = reviewing(&json!({"pgn": "1. e4", "side": "black"})).unwrap();
        assert_eq!((plain.nodes, plain.games[0].1), (NODES, Some(Color::Black)));
        assert!(is_request("/v1/review", br#"{"pgn": "1. e4 e5"}"#));
    }

    #[test]
    fn faults_are_told_with_their_field() {
        let long = "1. Nf3 Nf6 2. Ng1 Ng8 ".repeat(501);
        for (body, field, said) in [
            (json!({}), "pgn", "send a game as PGN"),
            (json!({"pgn": ""}), "pgn", "send a game as PGN"),
            (json!({"pgn": "hello"}), "pgn", "game 1: `hello`"),
            (
                json!({"pgn": "[FEN \"no\"]\n\n1. e4"}),
                "pgn",
                "`no` is not a FEN",
            ),
            (json!({"pgn": long}), "pgn", "2004 moves"),
            (
                json!({"pgn": "[Event \"?\"]\n\n1. e4 *\n\n".repeat(101)}),
                "pgn",
                "100 games",
            ),
            (
                json!({"pgn": "1. e4", "nodes": 0}),
                "nodes",
                "must be 1 or more",
            ),
            (
                json!({"pgn": "1. e4", "nodes": 500_001}),
                "nodes",
                "more than 1000000",
            ),
            (
                json!({"pgn": "1. e4", "elo": 5000}),
                "elo",
                "a rating must be",
            ),
            (
                json!({"pgn": "1. e4", "side": "green"}),
                "side",
                "unknown variant",
            ),
            (
                json!({"pgn": "1. e4", "player": "Zoe"}),
                "player",
                "no game",
            ),
            (
                json!({"pgn": "1. e4", "player": "Zoe", "side": "white"}),
                "side",
                "player",
            ),
            (
                json!({"pgn": "1. e4", "depth": 5}),
                "depth",
                "unknown field",
            ),
        ] {
            let problem = reviewing(&body).unwrap_err();
            assert_eq!(problem["field"], field, "{problem}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(said), "{detail}");
        }
    }
}
