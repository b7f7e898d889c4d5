//! Validated review requests.

use super::checked::checked;
use super::{JudgeChoice, JudgedGames, ReviewRequest};
use crate::data::pgn::Games;
use crate::review::{Searched, SentScores, Source, no_game_of};
use crate::serve::config::{Config, Limits};
use crate::serve::problem::Problem;
use shakmaty::Color;

/// Default nodes per position.
const NODES: u64 = 800;

/// A validated review request.
#[derive(Debug)]
pub(in crate::serve) struct Reviewing {
    pub(in crate::serve) games: Vec<ReviewedGame>,
    /// Games that cannot be read, with the reason.
    pub(in crate::serve) unreadable: Vec<String>,
    pub(in crate::serve) player: Option<String>,
    pub(in crate::serve) elo: Option<u16>,
    pub(in crate::serve) nodes: u64,
    pub(in crate::serve) network: String,
    /// Whether the server's judge scores the games, if there is one.
    pub(in crate::serve) uses_judge: bool,
    /// The origin of the scores that the client has sent.
    pub(in crate::serve) sent: Option<SentScores>,
}

/// A game to review.
#[derive(Debug)]
pub(in crate::serve) struct ReviewedGame {
    pub(in crate::serve) source: Source,
    /// The side under review.
    pub(in crate::serve) side: Option<Color>,
    /// The scores that the client has sent.
    pub(in crate::serve) scores: Option<Vec<Option<Searched>>>,
}

impl ReviewRequest {
    pub(in crate::serve) fn reviewing(&self, config: &Config) -> Result<Reviewing, Problem> {
        if self.player.is_some() && self.side.is_some() {
            let detail = "name a player or a side: the player's name tells the side";
            return Err(Problem::field("side", detail));
        }
        if self.judge == Some(JudgeChoice::Server) && config.judge.is_none() {
            return Err(Problem::no_judge("judge"));
        }
        if self.judge.is_some() && self.judged.is_some() {
            let detail = "leave `judge` out if you send scores in `judged`";
            return Err(Problem::field("judge", detail));
        }
        let judged = self.judged.as_ref();
        let sent = judged.map(JudgedGames::origin).transpose()?;
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
            uses_judge: self.judge != Some(JudgeChoice::None),
            sent,
        })
    }

    /// Returns the games, and the reasons why others cannot be read.
    fn read(&self, limits: &Limits) -> Result<(Vec<ReviewedGame>, Vec<String>), Problem> {
        let text = self.pgn.as_deref().unwrap_or_default();
        let (mut games, mut unreadable) = (Vec::new(), Vec::new());
        let mut count = 0;
        for text in Games::new(text.as_bytes()) {
            let text = text.map_err(|error| Problem::field("pgn", error.to_string()))?;
            let place = text.place;
            count = place.number;
            if place.number > limits.games {
                let detail = format!("there are more than {} games", limits.games);
                return Err(Problem::field("pgn", detail));
            }
            match source(&text) {
                Ok(source) => {
                    let cut_off = source.cut_off();
                    unreadable.extend(cut_off.map(|it| format!("{place}: {it}")));
                    games.push((place.number - 1, source));
                }
                Err(error) => unreadable.push(format!("{place}: {error}")),
            }
        }
        let longest = games.iter().map(|(_, it)| it.game.plies().len() - 1).max();
        match (longest, unreadable.first()) {
            (Some(moves), _) if moves > limits.moves => {
                let detail = format!("{moves} moves are more than {}", limits.moves);
                Err(Problem::field("pgn", detail))
            }
            (Some(_), _) => Ok((self.with_scores(games, count)?, unreadable)),
            (None, Some(error)) => Err(Problem::field("pgn", error.as_str())),
            (None, None) => Err(Problem::field("pgn", "send a game as PGN")),
        }
    }

    /// Returns games, given their indices in the PGN, with the scores that the client has sent.
    /// `count` is the number of games in the PGN.
    fn with_scores(
        &self,
        games: Vec<(usize, Source)>,
        count: usize,
    ) -> Result<Vec<ReviewedGame>, Problem> {
        if let Some(judged) = &self.judged {
            judged.check_games(count)?;
        }
        let with_scores = |(index, source): (usize, Source)| {
            let judged = self.judged.as_ref();
            let scores = judged.map(|judged| judged.scores(index, &source.game));
            Ok(ReviewedGame {
                scores: scores.transpose()?,
                side: None,
                source,
            })
        };
        games.into_iter().map(with_scores).collect()
    }

    /// Returns the games to review: all, or those of the named player.
    fn chosen(&self, games: Vec<ReviewedGame>) -> Result<Vec<ReviewedGame>, Problem> {
        let Some(player) = &self.player else {
            let side = self.side.map(Color::from);
            let all = games.into_iter().map(|game| ReviewedGame { side, ..game });
            return Ok(all.collect());
        };
        let sides: Vec<_> = games.iter().map(|it| it.source.side_of(player)).collect();
        if sides.iter().all(Option::is_none) {
            let sources = games.iter().map(|it| &it.source);
            return Err(Problem::field("player", no_game_of(player, sources)));
        }
        let of_player = games.into_iter().zip(sides);
        let of_player = of_player.filter_map(|(game, side)| {
            side.map(|side| ReviewedGame {
                side: Some(side),
                ..game
            })
        });
        Ok(of_player.collect())
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
fn check_nodes(nodes: u64, games: &[ReviewedGame], most: u64) -> Result<(), Problem> {
    let positions: usize = games.iter().map(|it| it.source.game.plies().len()).sum();
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
        let sides: Vec<_> = asked.games.iter().map(|game| game.side).collect();
        assert_eq!(sides, [Some(Color::White), Some(Color::Black)]);
        assert_eq!((asked.elo, asked.nodes), (Some(1500), 9));
        assert_eq!(
            (asked.network.as_str(), asked.player.as_deref()),
            ("human", Some("Anna"))
        );
        assert!(
            asked.unreadable[0].starts_with("game 4, line 13: "),
            "{:?}",
            asked.unreadable
        );
        let plain = reviewing(&json!({"pgn": "1. e4", "side": "black"})).unwrap();
        assert_eq!(
            (plain.nodes, plain.games[0].side),
            (NODES, Some(Color::Black))
        );
        assert!(is_request("/v1/review", br#"{"pgn": "1. e4 e5"}"#));
    }

    #[test]
    fn faults_are_told_with_their_field() {
        let long = "Nf3 Nf6 Ng1 Ng8 ".repeat(501);
        for (body, field, said) in [
            (json!({}), "pgn", "send a game as PGN"),
            (json!({"pgn": ""}), "pgn", "send a game as PGN"),
            (json!({"pgn": "hello"}), "pgn", "game 1, line 1: 1. hello"),
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
                json!({"pgn": "[White \"Anna\"]\n\n1. e4", "player": "Zoe"}),
                "player",
                "the only player named is Anna",
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
