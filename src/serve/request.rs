//! Requests of clients.

mod checked;
mod review;

pub(super) use checked::{Look, Question, Writing, analysis};
pub(super) use review::Reviewing;

use super::config::Config;
use super::json::parse;
use crate::agent::AgentKind;
use crate::review::report::Side;
use serde::Deserialize;
use shakmaty::{Color, KnownOutcome};
#[cfg(test)]
use utoipa::ToSchema;

/// The agent that chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
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

/// Limits of the search. Without any, the server's default time applies.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
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
    moves: Option<Vec<String>>,
}

/// A clock.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Clock {
    /// Time that is left, in milliseconds.
    time_ms: u64,
    /// Increment per move, in milliseconds.
    increment_ms: Option<u64>,
    /// Moves to the next time control.
    moves_to_go: Option<u32>,
}

/// A position, and who is to play in it.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct MoveRequest {
    /// The first position; without it, the initial one.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN. Networks see them as history.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960. A FEN that only Chess960 allows is
    /// recognised.
    chess960: Option<bool>,
    /// The agent that chooses; the server's default if absent.
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
    /// Seed of the sampling; 0 chooses a new one each time.
    seed: Option<u64>,
    /// Limits of the search.
    limits: Option<Thinking>,
}

/// A position to be analysed.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct AnalyseRequest {
    /// The first position; without it, the initial one.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The agent that analyses; `mcts` if absent.
    agent: Option<Agent>,
    /// The network that thinks: a name of `/v1/agents`; without it, the one that the agent
    /// needs.
    network: Option<String>,
    /// The rating whose moves the agent `human` tells.
    elo: Option<u16>,
    /// Lines to tell, the best first; without it, 1.
    lines: Option<usize>,
    /// Limits of the search.
    limits: Option<Thinking>,
}

/// A position to be evaluated once.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct EvalRequest {
    /// The first position; without it, the initial one.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The network, a name of `/v1/agents`; without it, `human` where a rating is named,
    /// else `main`.
    network: Option<String>,
    /// The rating of the side to move, for networks that read ratings.
    elo: Option<u16>,
    /// The rating of the other side; without it, the same.
    opponent_elo: Option<u16>,
}

/// A position in which people's moves are asked for.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct PeopleRequest {
    /// The first position; without it, the initial one.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The network, a name of `/v1/agents`; without it, `human`.
    network: Option<String>,
}

/// Games to be written by a network over moves.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct GenerateRequest {
    /// The moves that each game begins with, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// The number; 1 if absent.
    games: Option<usize>,
    /// The network, a name of `/v1/agents`; without it, the first of the family gpt.
    network: Option<String>,
    /// White's rating.
    white_elo: Option<u16>,
    /// Black's rating.
    black_elo: Option<u16>,
    /// Requested result of the games; the network does not always comply.
    result: Option<GameResult>,
    /// Below 1 likelier moves become likelier still; at 0 the likeliest is played.
    temperature: Option<f32>,
    /// Draws from the likeliest moves that together have this share, in 0…1.
    top_p: Option<f32>,
    /// Draws from moves that are at least this share as likely as the likeliest, in 0…1.
    min_p: Option<f32>,
    /// Draws from all moves, legal or not: a game ends with the first that is not.
    raw: Option<bool>,
    /// Seed of the games; 0 chooses a new one each time.
    seed: Option<u64>,
}

/// A result as PGN writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
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
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainRequest {
    /// The first position; without it, the initial one.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The network, a name of `/v1/agents`; without it, `main`.
    network: Option<String>,
    /// The rating of both players, for networks that read ratings.
    elo: Option<u16>,
    /// The move to explain; without it, the policy's first.
    #[serde(rename = "move")]
    mv: Option<String>,
    /// Shows only how a network of the family diffusion imagines the future, in 1 to 100 steps.
    steps: Option<u8>,
    /// Whether the JSON holds the attention maps, which are most of it; without it, yes.
    attention: Option<bool>,
}

/// Games to be reviewed.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewRequest {
    /// The games in PGN, one after the other. A game that cannot be read to its end is reviewed
    /// as far as it goes.
    pgn: Option<String>,
    /// Reviews the moves of the player of this name, and leaves out games of others.
    player: Option<String>,
    /// Reviews this side's moves; without it or a player, both sides'.
    side: Option<Side>,
    /// The rating to compare with; without it, the player's in the PGN, or the game's.
    elo: Option<u16>,
    /// Nodes for each position; without it, 800.
    nodes: Option<u64>,
    /// The network that searches, a name of `/v1/agents`; without it, `main`.
    network: Option<String>,
}

/// A position in which attention is asked for.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct AttentionRequest {
    /// The first position; without it, the initial one.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The network, a name of `/v1/agents`; without it, `main`.
    network: Option<String>,
    /// The layer, from 1; without it, the last.
    layer: Option<usize>,
    /// The head, from 1; without it, the first.
    head: Option<usize>,
}

/// Returns whether a body is a request of an endpoint, as far as that can be told without a
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
        "/v1/people" => parse::<PeopleRequest>(body).and_then(|it| it.question(&config).map(drop)),
        "/v1/generate" => {
            parse::<GenerateRequest>(body).and_then(|it| it.writing(&config).map(drop))
        }
        "/v1/review" => parse::<ReviewRequest>(body).and_then(|it| it.reviewing(&config).map(drop)),
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
