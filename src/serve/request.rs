//! What clients ask for.

use super::body::parse;
use super::config::Config;
use super::position::{Written, read_move};
use super::problem::Problem;
use crate::agent::AgentKind;
use crate::chess::Game;
use crate::generate::Sampling;
use crate::{play, player};
use serde::Deserialize;
use shakmaty::{Color, KnownOutcome, Move};
use std::time::Duration;
use utoipa::ToSchema;

/// Ratings that a request can name.
const RATINGS: std::ops::RangeInclusive<u16> = 1..=4000;

/// Who chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Agent {
    /// A search by the network.
    Mcts,
    /// The move that the network likes best.
    Policy,
    /// The most valuable of the network's candidates, one ply ahead.
    Value,
    /// A move as people of a rating play it.
    Human,
    /// The move that a network reads off the future that it imagines.
    Diffusion,
    /// A search in the imagination of a network that has learned the rules.
    World,
}

impl From<Agent> for AgentKind {
    fn from(agent: Agent) -> AgentKind {
        match agent {
            Agent::Mcts => AgentKind::Mcts,
            Agent::Policy => AgentKind::Policy,
            Agent::Value => AgentKind::Value,
            Agent::Human => AgentKind::Human,
            Agent::Diffusion => AgentKind::Diffusion,
            Agent::World => AgentKind::World,
        }
    }
}

/// How long to think. Without any limit it is the server's usual time.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Thinking {
    /// Nodes of the search, those of the tree that was there before included.
    nodes: Option<u64>,
    /// Time for this move, in milliseconds.
    movetime_ms: Option<u64>,
    /// Mean depth of the leaves, in plies.
    depth: Option<u32>,
    /// The clock of the side to move.
    clock: Option<Clock>,
    /// Considers only these moves, in UCI notation or SAN.
    #[serde(default)]
    moves: Vec<String>,
}

/// A clock.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Clock {
    /// Time that is left, in milliseconds.
    time_ms: u64,
    /// What each move adds, in milliseconds.
    #[serde(default)]
    increment_ms: u64,
    /// Moves to the next time control.
    moves_to_go: Option<u32>,
}

/// A position, and who is to play in it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveRequest {
    /// The first position; without it, the initial one.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN. Networks see them as history.
    #[serde(default)]
    moves: Vec<String>,
    /// Whether to castle by the rules of Chess960. A FEN that only Chess960 allows is
    /// recognised.
    #[serde(default)]
    chess960: bool,
    /// Who chooses; without it, the server's own agent.
    agent: Option<Agent>,
    /// The network that thinks: a name of `/v1/agents`; without it, the one that the agent
    /// needs.
    network: Option<String>,
    /// The rating to play at, for the agent `human`.
    elo: Option<u16>,
    /// The opponent's rating, for the agent `human`; without it, the same.
    opponent_elo: Option<u16>,
    /// The temperature at which the move is drawn; 0 plays the best.
    temperature: Option<f32>,
    /// The seed of what is drawn; 0 draws anew each time.
    seed: Option<u64>,
    /// How long to think.
    #[serde(default)]
    limits: Thinking,
}

/// A position to be analysed.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnalyseRequest {
    /// The first position; without it, the initial one.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    #[serde(default)]
    moves: Vec<String>,
    /// Whether to castle by the rules of Chess960.
    #[serde(default)]
    chess960: bool,
    /// Who analyses; without it, `mcts`.
    agent: Option<Agent>,
    /// The network that thinks: a name of `/v1/agents`; without it, the one that the agent
    /// needs.
    network: Option<String>,
    /// The rating whose moves the agent `human` tells.
    elo: Option<u16>,
    /// Lines to tell, the best first; without it, 1.
    lines: Option<usize>,
    /// How long to think.
    #[serde(default)]
    limits: Thinking,
}

/// A position to be evaluated once.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EvalRequest {
    /// The first position; without it, the initial one.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    #[serde(default)]
    moves: Vec<String>,
    /// Whether to castle by the rules of Chess960.
    #[serde(default)]
    chess960: bool,
    /// The network, a name of `/v1/agents`; without it, `human` where a rating is named,
    /// else `main`.
    network: Option<String>,
    /// The rating of the side to move, for networks that read ratings.
    elo: Option<u16>,
    /// The rating of the other side; without it, the same.
    opponent_elo: Option<u16>,
}

/// Games to be written by a network over moves.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GenerateRequest {
    /// The moves that each game begins with, in UCI notation or SAN.
    #[serde(default)]
    moves: Vec<String>,
    /// How many; without it, 1.
    games: Option<usize>,
    /// The network, a name of `/v1/agents`; without it, the first of the family gpt.
    network: Option<String>,
    /// White's rating.
    white_elo: Option<u16>,
    /// Black's rating.
    black_elo: Option<u16>,
    /// How the games are to end; the network does not always obey.
    result: Option<GameResult>,
    /// Below 1 likelier moves become likelier still; at 0 the likeliest is played.
    temperature: Option<f32>,
    /// Draws from the likeliest moves that together have this share, in 0…1.
    top_p: Option<f32>,
    /// Draws from moves that are at least this share as likely as the likeliest, in 0…1.
    min_p: Option<f32>,
    /// Draws from all moves, legal or not: a game ends with the first that is not.
    #[serde(default)]
    raw: bool,
    /// The seed of the games; 0 draws anew each time.
    #[serde(default)]
    seed: u64,
}

/// A result as PGN writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
pub(super) enum GameResult {
    #[serde(rename = "1-0")]
    White,
    #[serde(rename = "1/2-1/2")]
    Draw,
    #[serde(rename = "0-1")]
    Black,
}

impl GameResult {
    pub(super) fn outcome(self) -> KnownOutcome {
        let winner = match self {
            GameResult::White => Color::White,
            GameResult::Black => Color::Black,
            GameResult::Draw => return KnownOutcome::Draw,
        };
        KnownOutcome::Decisive { winner }
    }
}

/// A position to be explained.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainRequest {
    /// The first position; without it, the initial one.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    #[serde(default)]
    moves: Vec<String>,
    /// Whether to castle by the rules of Chess960.
    #[serde(default)]
    chess960: bool,
    /// The network, a name of `/v1/agents`; without it, `main`.
    network: Option<String>,
    /// The rating of both players, for networks that read ratings.
    elo: Option<u16>,
    /// The move to explain; without it, the policy's first.
    #[serde(rename = "move")]
    mv: Option<String>,
    /// Shows how a network of the family diffusion imagines the future in so many steps,
    /// 1 to 100, and nothing else.
    steps: Option<u8>,
}

/// A position in which attention is asked for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AttentionRequest {
    /// The first position; without it, the initial one.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    #[serde(default)]
    moves: Vec<String>,
    /// Whether to castle by the rules of Chess960.
    #[serde(default)]
    chess960: bool,
    /// The network, a name of `/v1/agents`; without it, `main`.
    network: Option<String>,
    /// The layer, from 1; without it, the last.
    layer: Option<usize>,
    /// The head, from 1; without it, the first.
    head: Option<usize>,
}

/// Whether a body is a request of an endpoint, as far as that can be told without a
/// network.
#[must_use]
pub fn is_request(path: &str, body: &[u8]) -> bool {
    let config = Config::default();
    let is_right = match path {
        "/v1/move" => parse::<MoveRequest>(body).and_then(|it| it.question(&config).map(drop)),
        "/v1/analyse" => {
            parse::<AnalyseRequest>(body).and_then(|it| it.question(&config).map(drop))
        }
        "/v1/eval" => parse::<EvalRequest>(body).and_then(|it| it.question(&config).map(drop)),
        "/v1/generate" => {
            parse::<GenerateRequest>(body).and_then(|it| it.writing(&config).map(drop))
        }
        "/v1/explain" => {
            let request = parse::<ExplainRequest>(body);
            request.and_then(|it| it.look(&config).and(it.steps()).map(drop))
        }
        "/v1/attention" => {
            parse::<AttentionRequest>(body).and_then(|it| it.look(&config).map(drop))
        }
        _ => return false,
    };
    is_right.is_ok()
}

/// Games to be written, checked.
pub(super) struct Writing {
    pub(super) game: Game,
    pub(super) games: usize,
    pub(super) network: Option<String>,
    pub(super) white_elo: Option<u16>,
    pub(super) black_elo: Option<u16>,
    pub(super) result: Option<GameResult>,
    pub(super) sampling: Sampling,
    pub(super) seed: u64,
}

/// A position to be looked into, checked.
pub(super) struct Look {
    pub(super) game: Game,
    pub(super) network: String,
}

/// A question to a player, checked.
pub(super) struct Question {
    pub(super) settings: player::Settings,
    /// The network that the request names.
    pub(super) network: Option<String>,
    pub(super) game: Game,
    pub(super) limits: play::Limits,
}

impl MoveRequest {
    pub(super) fn question(&self, config: &Config) -> Result<Question, Problem> {
        let game = written(&self.fen, &self.moves, self.chess960).game(config.limits.moves)?;
        let limits = self.limits.limits(&game, config)?;
        let mut settings = config.player.clone();
        if let Some(agent) = self.agent {
            settings.agent = agent.into();
            settings.limit_strength = false;
        }
        rate(&mut settings, self.elo, self.opponent_elo)?;
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
}

impl AnalyseRequest {
    pub(super) fn question(&self, config: &Config) -> Result<Question, Problem> {
        let game = written(&self.fen, &self.moves, self.chess960).game(config.limits.moves)?;
        let limits = self.limits.limits(&game, config)?;
        let most = config.limits.lines;
        let lines = self.lines.unwrap_or(1);
        if !(1..=most).contains(&lines) {
            return Err(Problem::field("lines", format!("lines are 1 to {most}")));
        }
        let mut settings = config.player.clone();
        settings.agent = self.agent.unwrap_or(Agent::Mcts).into();
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
    /// The game, the network, and the ratings of the side to move and the other.
    #[expect(clippy::type_complexity)]
    pub(super) fn question(
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
        let usual = match ratings {
            Some(_) => "human",
            None => "main",
        };
        Ok((game, self.network.as_deref().unwrap_or(usual), ratings))
    }
}

impl GenerateRequest {
    pub(super) fn writing(&self, config: &Config) -> Result<Writing, Problem> {
        let game = written(&None, &self.moves, false).game(config.limits.moves)?;
        let most = config.limits.games;
        let games = self.games.unwrap_or(1);
        if !(1..=most).contains(&games) {
            return Err(Problem::field("games", format!("games are 1 to {most}")));
        }
        let usual = Sampling::default();
        let sampling = Sampling {
            temperature: warmth(self.temperature)?.unwrap_or(usual.temperature),
            top_p: share("top_p", self.top_p)?.unwrap_or(usual.top_p),
            min_p: share("min_p", self.min_p)?.unwrap_or(usual.min_p),
            legal_only: !self.raw,
        };
        Ok(Writing {
            game,
            games,
            network: self.network.clone(),
            white_elo: checked("white_elo", self.white_elo)?,
            black_elo: checked("black_elo", self.black_elo)?,
            result: self.result,
            sampling,
            seed: self.seed,
        })
    }
}

impl ExplainRequest {
    /// The position, the rating of both players, and the move to explain.
    pub(super) fn look(
        &self,
        config: &Config,
    ) -> Result<(Look, Option<u16>, Option<Move>), Problem> {
        let game = written(&self.fen, &self.moves, self.chess960).game(config.limits.moves)?;
        let elo = checked("elo", self.elo)?;
        let mv = self.mv.as_deref().map(|text| read_move(&game, text));
        let mv = mv
            .transpose()
            .map_err(|error| Problem::field("move", error))?;
        Ok((look(game, self.network.as_deref()), elo, mv))
    }

    /// In how many steps to imagine the future, if that is what is asked for.
    pub(super) fn steps(&self) -> Result<Option<usize>, Problem> {
        match self.steps {
            Some(steps) if !(1..=100).contains(&steps) => {
                Err(Problem::field("steps", "steps are 1 to 100"))
            }
            steps => Ok(steps.map(usize::from)),
        }
    }
}

impl AttentionRequest {
    /// The position, and the layer and the head, from 1.
    pub(super) fn look(
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

/// A question for the best lines within so many nodes.
pub(super) fn analysis(config: &Config, game: Game, lines: usize, nodes: u64) -> Question {
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

fn written<'a>(fen: &'a Option<String>, moves: &'a [String], chess960: bool) -> Written<'a> {
    Written {
        fen: fen.as_deref(),
        moves,
        chess960,
    }
}

fn checked(field: &str, rating: Option<u16>) -> Result<Option<u16>, Problem> {
    match rating {
        Some(rating) if !RATINGS.contains(&rating) => {
            let (least, most) = (RATINGS.start(), RATINGS.end());
            let detail = format!("a rating is {least} to {most}");
            Err(Problem::field(field, detail))
        }
        rating => Ok(rating),
    }
}

fn warmth(temperature: Option<f32>) -> Result<Option<f32>, Problem> {
    match temperature {
        Some(temperature) if !(0.0..=100.0).contains(&temperature) => {
            Err(Problem::field("temperature", "a temperature is 0 to 100"))
        }
        temperature => Ok(temperature),
    }
}

fn share(field: &str, share: Option<f32>) -> Result<Option<f32>, Problem> {
    match share {
        Some(share) if !(0.0..=1.0).contains(&share) => {
            Err(Problem::field(field, "a share is 0 to 1"))
        }
        share => Ok(share),
    }
}

fn rate(
    settings: &mut player::Settings,
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
        let (most_nodes, most_time) = (config.limits.nodes, config.limits.time);
        if let Some(nodes) = self.nodes
            && !(1..=most_nodes).contains(&nodes)
        {
            let detail = format!("nodes are 1 to {most_nodes}");
            return Err(Problem::field("limits.nodes", detail));
        }
        let move_time = self.movetime_ms.map(Duration::from_millis);
        if move_time.is_some_and(|time| time > most_time) {
            let most = most_time.as_millis();
            let detail = format!("the time for a move is at most {most} ms");
            return Err(Problem::field("limits.movetime_ms", detail));
        }
        if self.depth.is_some_and(|depth| depth == 0) {
            return Err(Problem::field("limits.depth", "a depth is 1 or more"));
        }
        let mut search_moves = Vec::new();
        for (number, text) in self.moves.iter().enumerate() {
            let mv = read_move(game, text)
                .map_err(|error| Problem::field(format!("limits.moves[{number}]"), error))?;
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
            // What is spent of it is never more than a move may take.
            Some(clock) if move_time.is_none() => {
                let milliseconds = |time: u64| Duration::from_millis(time).min(most_time);
                limits.time = Some(milliseconds(clock.time_ms));
                limits.increment = milliseconds(clock.increment_ms);
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
    use proptest::prelude::*;

    /// A body that uses every field of a move.
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
            for path in ["/v1/move", "/v1/analyse", "/v1/eval", "/v1/generate", "/v1/explain"] {
                let _ = is_request(path, &body);
            }
        }
    }
}
