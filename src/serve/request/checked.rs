//! Validated requests, in the form that players, networks and generators use.

use super::{
    AnalyseRequest, AttentionRequest, EvalRequest, ExplainRequest, GenerateRequest, JudgeRequest,
    MoveRequest, PeopleRequest, Thinking,
};
use crate::agent::{AgentKind, HIGHEST_RATING};
use crate::chess::{Game, Ratings};
use crate::generate::Sampling;
use crate::network::gpt::Conditions;
use crate::play;
use crate::player::PlayerSettings;
use crate::serve::config::Config;
use crate::serve::position::Written;
use crate::serve::problem::Problem;
use shakmaty::{KnownOutcome, Move};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The range of ratings in requests.
const RATINGS: RangeInclusive<u16> = 1..=4000;

/// A validated request to generate games.
pub(in crate::serve) struct Writing {
    pub(in crate::serve) game: Game,
    pub(in crate::serve) games: usize,
    pub(in crate::serve) network: Option<String>,
    pub(in crate::serve) conditions: Conditions,
    pub(in crate::serve) sampling: Sampling,
    pub(in crate::serve) seed: u64,
}

/// A validated request to explain a position.
pub(in crate::serve) struct Look {
    pub(in crate::serve) game: Game,
    pub(in crate::serve) network: String,
}

/// A validated request to a player.
pub(in crate::serve) struct Question {
    pub(in crate::serve) settings: PlayerSettings,
    /// The network named in the request.
    pub(in crate::serve) network: Option<String>,
    pub(in crate::serve) game: Game,
    pub(in crate::serve) limits: play::Limits,
}

impl MoveRequest {
    pub(in crate::serve) fn question(&self, config: &Config) -> Result<Question, Problem> {
        let game = written(&self.fen, &self.moves, self.chess960).game(config.limits.moves)?;
        let limits = self.limits.clone().unwrap_or_default();
        let limits = limits.limits(&game, config)?;
        let mut settings = config.player.clone();
        if let Some(agent) = self.agent {
            settings.agent = agent;
            settings.limit_strength = false;
        }
        rate(&mut settings, self.elo, self.opponent_elo)?;
        // Levels above human ratings are those of `UCI_Elo`.
        if let (AgentKind::Human, None, Some(elo)) = (settings.agent, &self.network, self.elo)
            && elo > HIGHEST_RATING
        {
            settings.limit_strength = true;
            settings.elo = elo;
        }
        if let Some(temperature) = warmth(self.temperature)? {
            settings.options.search.temperature = temperature;
        }
        if let Some(seed) = self.seed {
            settings.options.search.seed = seed;
        }
        Ok(Question {
            settings,
            network: self.network.clone(),
            game,
            limits,
        })
    }

    /// Returns the limits that a person would have, with the whole clock, if the request has one.
    pub(in crate::serve) fn clock(&self) -> Option<play::Limits> {
        let limits = self.limits.as_ref()?;
        let clock = limits.clock?;
        Some(play::Limits {
            time: Some(Duration::from_millis(clock.time_ms)),
            increment: Duration::from_millis(clock.increment_ms.unwrap_or(0)),
            moves_to_go: clock.moves_to_go,
            move_time: limits.movetime_ms.map(Duration::from_millis),
            ..play::Limits::default()
        })
    }
}

impl AnalyseRequest {
    pub(in crate::serve) fn question(&self, config: &Config) -> Result<Question, Problem> {
        let game = written(&self.fen, &self.moves, self.chess960).game(config.limits.moves)?;
        let limits = self.limits.clone().unwrap_or_default();
        let limits = limits.limits(&game, config)?;
        let lines = within("lines", self.lines.unwrap_or(1), 1..=config.limits.lines)?;
        let mut settings = config.player.clone();
        settings.agent = self.agent.unwrap_or(AgentKind::Mcts);
        settings.analyse_mode = true;
        settings.options.search.multi_pv = lines;
        rate(&mut settings, self.elo, None)?;
        Ok(Question {
            settings,
            network: self.network.clone(),
            game,
            limits,
        })
    }
}

impl EvalRequest {
    /// Returns the game, the network, and the ratings of the side to move and its opponent.
    #[expect(clippy::type_complexity)]
    pub(in crate::serve) fn question(
        &self,
        config: &Config,
    ) -> Result<(Game, &str, Option<(u16, u16)>), Problem> {
        let game = written(&self.fen, &self.moves, self.chess960).game(config.limits.moves)?;
        let elo = checked("elo", self.elo)?;
        let opponent = checked("opponent_elo", self.opponent_elo)?;
        let ratings = elo.or(opponent).map(|either| {
            let elo = elo.unwrap_or(either);
            (elo, opponent.unwrap_or(elo))
        });
        let usual = ratings.map_or("main", |_| "human");
        Ok((game, self.network.as_deref().unwrap_or(usual), ratings))
    }
}

impl JudgeRequest {
    /// Returns the game and the number of nodes, if one is requested.
    pub(in crate::serve) fn question(
        &self,
        config: &Config,
    ) -> Result<(Game, Option<u64>), Problem> {
        let game = written(&self.fen, &self.moves, self.chess960).game(config.limits.moves)?;
        let checked = |nodes| within("nodes", nodes, 1..=config.limits.nodes);
        Ok((game, self.nodes.map(checked).transpose()?))
    }
}

impl PeopleRequest {
    /// Returns the game and the network.
    pub(in crate::serve) fn question(&self, config: &Config) -> Result<(Game, &str), Problem> {
        let game = written(&self.fen, &self.moves, self.chess960).game(config.limits.moves)?;
        Ok((game, self.network.as_deref().unwrap_or("human")))
    }
}

impl GenerateRequest {
    pub(in crate::serve) fn writing(&self, config: &Config) -> Result<Writing, Problem> {
        let game = written(&None, &self.moves, None).game(config.limits.moves)?;
        let games = within("games", self.games.unwrap_or(1), 1..=config.limits.games)?;
        let usual = Sampling::default();
        let sampling = Sampling {
            temperature: warmth(self.temperature)?.unwrap_or(usual.temperature),
            top_p: share("top_p", self.top_p)?.unwrap_or(usual.top_p),
            min_p: share("min_p", self.min_p)?.unwrap_or(usual.min_p),
            legal_only: !self.raw.unwrap_or(false),
        };
        Ok(Writing {
            game,
            games,
            network: self.network.clone(),
            conditions: Conditions {
                ratings: Ratings {
                    white: checked("white_elo", self.white_elo)?,
                    black: checked("black_elo", self.black_elo)?,
                },
                result: self.result.map(KnownOutcome::from),
            },
            sampling,
            seed: self.seed.unwrap_or(0),
        })
    }
}

impl ExplainRequest {
    /// Returns the position, the rating of both players, and the move to explain.
    pub(in crate::serve) fn look(
        &self,
        config: &Config,
    ) -> Result<(Look, Option<u16>, Option<Move>), Problem> {
        let game = written(&self.fen, &self.moves, self.chess960).game(config.limits.moves)?;
        let elo = checked("elo", self.elo)?;
        let mv = self.mv.as_deref().map(|text| game.read_move(text));
        let mv = mv
            .transpose()
            .map_err(|error| Problem::field("move", error.to_string()))?;
        Ok((look(game, self.network.as_deref()), elo, mv))
    }

    /// Returns the number of steps in which to imagine the future, if requested.
    pub(in crate::serve) fn steps(&self) -> Result<Option<usize>, Problem> {
        let checked = |steps| within("steps", usize::from(steps), 1..=100);
        self.steps.map(checked).transpose()
    }

    /// Returns whether attention maps are requested.
    pub(in crate::serve) fn wants_attention(&self) -> bool {
        self.attention.unwrap_or(true)
    }
}

impl AttentionRequest {
    /// Returns the position, and the layer and the head, numbered from 1.
    pub(in crate::serve) fn look(
        &self,
        config: &Config,
    ) -> Result<(Look, Option<usize>, Option<usize>), Problem> {
        let game = written(&self.fen, &self.moves, self.chess960).game(config.limits.moves)?;
        Ok((look(game, self.network.as_deref()), self.layer, self.head))
    }
}

fn look(game: Game, network: Option<&str>) -> Look {
    let network = network.unwrap_or("main").to_owned();
    Look { game, network }
}

/// Returns a request for the best lines within a node limit.
pub(in crate::serve) fn analysis(
    config: &Config,
    game: Game,
    lines: usize,
    nodes: u64,
) -> Question {
    let mut settings = config.player.clone();
    settings.agent = AgentKind::Mcts;
    settings.analyse_mode = true;
    settings.options.search.multi_pv = lines;
    Question {
        settings,
        network: None,
        game,
        limits: play::Limits {
            nodes: Some(nodes.min(config.limits.nodes)),
            move_time: Some(config.limits.time),
            ..play::Limits::default()
        },
    }
}

fn written<'a>(
    fen: &'a Option<String>,
    moves: &'a Option<Vec<String>>,
    chess960: Option<bool>,
) -> Written<'a> {
    Written {
        fen: fen.as_deref(),
        moves: moves.as_deref().unwrap_or_default(),
        chess960: chess960.unwrap_or(false),
    }
}

pub(super) fn checked(field: &str, rating: Option<u16>) -> Result<Option<u16>, Problem> {
    match rating {
        Some(rating) if !RATINGS.contains(&rating) => {
            let (least, most) = (RATINGS.start(), RATINGS.end());
            let detail = format!("a rating must be {least} to {most}");
            Err(Problem::field(field, detail))
        }
        rating => Ok(rating),
    }
}

/// Returns a field's value if it is in a range.
pub(in crate::serve) fn within<T: PartialOrd + Display>(
    field: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<T, Problem> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = range.into_inner();
    Err(Problem::field(field, format!("must be {least} to {most}")))
}

fn warmth(temperature: Option<f32>) -> Result<Option<f32>, Problem> {
    let checked = |it| within("temperature", it, 0.0..=100.0);
    temperature.map(checked).transpose()
}

fn share(field: &str, share: Option<f32>) -> Result<Option<f32>, Problem> {
    share.map(|it| within(field, it, 0.0..=1.0)).transpose()
}

fn rate(
    settings: &mut PlayerSettings,
    elo: Option<u16>,
    opponent: Option<u16>,
) -> Result<(), Problem> {
    if let Some(elo) = checked("elo", elo)? {
        (settings.self_elo, settings.opponent_elo) = (elo, elo);
    }
    if let Some(opponent) = checked("opponent_elo", opponent)? {
        settings.opponent_elo = opponent;
    }
    Ok(())
}

impl Thinking {
    fn limits(&self, game: &Game, config: &Config) -> Result<play::Limits, Problem> {
        let most_time = config.limits.time;
        if let Some(nodes) = self.nodes {
            within("limits.nodes", nodes, 1..=config.limits.nodes)?;
        }
        let move_time = self.movetime_ms.map(Duration::from_millis);
        if move_time.is_some_and(|time| time > most_time) {
            let most = most_time.as_millis();
            let detail = format!("must be at most {most} ms");
            return Err(Problem::field("limits.movetime_ms", detail));
        }
        if self.depth.is_some_and(|depth| depth == 0) {
            return Err(Problem::field("limits.depth", "must be 1 or more"));
        }
        let mut search_moves = Vec::new();
        for (number, text) in self.moves.iter().flatten().enumerate() {
            let mv = game.read_move(text).map_err(|error| {
                Problem::field(format!("limits.moves[{number}]"), error.to_string())
            })?;
            if !search_moves.contains(&mv) {
                search_moves.push(mv);
            }
        }
        let is_unlimited = self.nodes.is_none() && self.depth.is_none() && self.clock.is_none();
        let usual = match is_unlimited {
            true => config.limits.default_time,
            false => most_time,
        };
        let mut limits = play::Limits {
            nodes: self.nodes,
            depth: self.depth,
            search_moves,
            ..play::Limits::default()
        };
        match self.clock {
            // A move never uses more of the clock than its own limit.
            Some(clock) if move_time.is_none() => {
                let milliseconds = |time: u64| Duration::from_millis(time).min(most_time);
                limits.time = Some(milliseconds(clock.time_ms));
                limits.increment = milliseconds(clock.increment_ms.unwrap_or(0));
                limits.moves_to_go = clock.moves_to_go;
            }
            _ => limits.move_time = Some(move_time.unwrap_or(usual)),
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::json::parse;
    use crate::serve::request::is_request;
    use proptest::prelude::*;

    /// A body that uses every field of a move request.
    const BODY: &str = r#"{"fen":"r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1","moves":["O-O","e8c8"],
        "chess960":false,"agent":"human","network":"human","elo":1500,"opponent_elo":1600,"temperature":0.5,
        "seed":7,"limits":{"nodes":100,"movetime_ms":50,"depth":3,
        "clock":{"time_ms":1000,"increment_ms":10,"moves_to_go":4},"moves":["Rf2","a1a2"]}}"#;

    fn question(body: &[u8]) -> Result<Question, Problem> {
        parse::<MoveRequest>(body)?.question(&Config::default())
    }

    #[test]
    fn every_field_reaches_the_player() {
        let asked = question(BODY.as_bytes()).unwrap_or_else(|problem| panic!("{problem:?}"));
        assert_eq!(asked.settings.agent, AgentKind::Human);
        let ratings = (asked.settings.self_elo, asked.settings.opponent_elo);
        assert_eq!(ratings, (1500, 1600));
        let search = &asked.settings.options.search;
        assert_eq!((search.temperature, search.seed), (0.5, 7));
        assert_eq!(asked.game.plies().len(), 3);
        let limits = &asked.limits;
        assert_eq!((limits.nodes, limits.depth), (Some(100), Some(3)));
        assert_eq!(limits.move_time, Some(Duration::from_millis(50)));
        assert_eq!(limits.search_moves.len(), 2);
    }

    #[test]
    fn levels_above_people_are_those_of_uci() {
        for (elo, agent) in [(2400, AgentKind::Human), (2600, AgentKind::Mcts)] {
            let body = format!(r#"{{"agent": "human", "elo": {elo}}}"#);
            let asked = question(body.as_bytes()).ok().unwrap();
            let answering = asked.settings.answering(&asked.limits);
            assert_eq!((answering.agent, answering.self_elo), (agent, elo));
        }
        let named = question(br#"{"agent": "human", "network": "human", "elo": 2600}"#);
        assert!(!named.ok().unwrap().settings.limit_strength);
    }

    #[test]
    fn no_search_is_without_an_end() {
        for (body, time) in [
            ("{}", 1),
            (r#"{"limits":{"nodes":5}}"#, 60),
            (r#"{"limits":{"depth":5}}"#, 60),
        ] {
            let limits = question(body.as_bytes()).ok().unwrap().limits;
            assert_eq!(limits.move_time, Some(Duration::from_secs(time)), "{body}");
        }
        let clock = r#"{"limits":{"clock":{"time_ms":99999999999}}}"#;
        let limits = question(clock.as_bytes()).ok().unwrap().limits;
        assert_eq!(limits.time, Some(Duration::from_secs(60)));
    }

    /// Every endpoint that takes a body, and its schema.
    const ENDPOINTS: [(&str, &str); 8] = [
        ("/v1/move", "MoveRequest"),
        ("/v1/analyse", "AnalyseRequest"),
        ("/v1/eval", "EvalRequest"),
        ("/v1/people", "PeopleRequest"),
        ("/v1/generate", "GenerateRequest"),
        ("/v1/explain", "ExplainRequest"),
        ("/v1/attention", "AttentionRequest"),
        ("/v1/judge", "JudgeRequest"),
    ];

    /// Returns a body whose fields are all null.
    fn nulls(schema: &str) -> serde_json::Value {
        let document = serde_json::to_value(crate::serve::openapi::openapi()).unwrap();
        let fields = &document["components"]["schemas"][schema]["properties"];
        let fields = fields.as_object().unwrap().keys();
        fields
            .map(|name| (name.clone(), serde_json::Value::Null))
            .collect()
    }

    #[test]
    fn null_is_as_good_as_nothing() {
        for (path, schema) in ENDPOINTS {
            let body = nulls(schema);
            assert!(body.as_object().unwrap().len() > 3, "{schema}");
            let is_taken = is_request(path, body.to_string().as_bytes());
            assert!(is_taken, "{path} {body}");
        }
        let mut clock = nulls("Clock");
        clock["time_ms"] = 5.into();
        for limits in [nulls("Thinking"), serde_json::json!({ "clock": clock })] {
            let body = serde_json::json!({ "limits": limits }).to_string();
            assert!(is_request("/v1/move", body.as_bytes()), "{body}");
        }
        assert!(!is_request("/v1/move", br#"{"nothing": null}"#));
    }

    #[test]
    fn a_list_is_no_object() {
        for (path, schema) in ENDPOINTS {
            assert!(is_request(path, b"{}"), "{path}");
            let fields = nulls(schema).as_object().unwrap().len();
            for count in 0..=fields {
                let list = serde_json::json!(vec![(); count]).to_string();
                assert!(!is_request(path, list.as_bytes()), "{path} {list}");
            }
        }
        for body in [
            r#"{"limits": []}"#,
            r#"{"limits": [5]}"#,
            r#"{"limits": {"clock": [1000, 10, 4]}}"#,
        ] {
            let problem = question(body.as_bytes()).err().unwrap();
            let field = serde_json::to_value(problem).unwrap()["field"].clone();
            assert!(field.as_str().unwrap().starts_with("limits"), "{field}");
        }
    }

    #[test]
    fn numbers_are_integers_however_they_are_written() {
        let body = br#"{"elo": 1.5e3, "temperature": 1, "limits": {"nodes": 1e3, "depth": 4.0}}"#;
        let asked = question(body).unwrap_or_else(|problem| panic!("{problem:?}"));
        assert_eq!(asked.settings.self_elo, 1500);
        assert_eq!(asked.settings.options.search.temperature, 1.0);
        let limits = (asked.limits.nodes, asked.limits.depth);
        assert_eq!(limits, (Some(1000), Some(4)));
        for body in [r#"{"elo": 1500.5}"#, r#"{"elo": 1e9}"#, r#"{"seed": -1.0}"#] {
            assert!(question(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn moves_are_read_as_pgn_has_them() {
        let castles = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";
        let promotes = "8/P3k3/8/8/8/8/8/R3K3 w - - 0 1";
        for (fen, texts) in [
            (
                castles,
                &["e1g1", "O-O", "0-0", "o-o", "0-0!", "Ke1-g1"][..],
            ),
            (promotes, &["a7a8q", "a8=Q", "a8Q", "a8(Q)", "a7-a8Q"]),
            (
                promotes,
                &["a1d1", "Rd1", "Rd1!", "Rd1!?", "Rd1+", "Ra1-d1", " Rd1 "],
            ),
        ] {
            let read = texts.iter().map(|text| {
                let played = serde_json::json!({"fen": fen, "moves": [text]});
                let limited = serde_json::json!({"fen": fen, "limits": {"moves": [text]}});
                let explained = serde_json::json!({"fen": fen, "move": text}).to_string();
                assert!(is_request("/v1/explain", explained.as_bytes()), "{text}");
                let played = question(played.to_string().as_bytes()).ok().unwrap();
                let limited = question(limited.to_string().as_bytes()).ok().unwrap();
                let last = played.game.plies().last().unwrap().played.unwrap();
                assert_eq!(limited.limits.search_moves, [last], "{text}");
                last
            });
            let read: Vec<Move> = read.collect();
            assert!(read.iter().all(|mv| *mv == read[0]), "{read:?}");
        }
        assert!(is_request(
            "/v1/generate",
            br#"{"moves": ["e2-e4", "e5!"]}"#
        ));
        assert!(!is_request("/v1/generate", br#"{"moves": ["--"]}"#));
    }

    proptest! {
        #[test]
        fn no_body_breaks_a_request(
            place in 0..BODY.len(),
            removed in 0..20usize,
            added in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            let mut body = BODY.as_bytes().to_vec();
            let end = (place + removed).min(body.len());
            body.splice(place..end, added);
            for path in ["/v1/move", "/v1/analyse", "/v1/eval", "/v1/generate", "/v1/review", "/v1/explain"] {
                let _ = is_request(path, &body);
            }
        }
    }
}
