//! Request bodies.

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
    /// The move with the highest policy.
    Policy,
    /// The network candidate with the highest value, one ply ahead.
    Value,
    /// A move as people of a rating play it.
    Human,
    /// The move that a network picks from an imagined continuation.
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
    /// Nodes of the search, including those of the reused tree.
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
    /// Time left, in milliseconds.
    time_ms: u64,
    /// Increment per move, in milliseconds.
    increment_ms: Option<u64>,
    /// Moves to the next time control.
    moves_to_go: Option<u32>,
}

/// A position in which to choose a move.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct MoveRequest {
    /// The first position; the initial one if absent.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN. Networks see them as history.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960. FENs that only Chess960 allows are recognised.
    chess960: Option<bool>,
    /// The agent that chooses; the server's default if absent.
    agent: Option<Agent>,
    /// The network to use, a name from `/v1/agents`; the one that the agent needs if absent.
    network: Option<String>,
    /// The rating to play at, for the agent `human`.
    elo: Option<u16>,
    /// The opponent's rating, for the agent `human`; the same if absent.
    opponent_elo: Option<u16>,
    /// The temperature at which the move is sampled; 0 plays the best.
    temperature: Option<f32>,
    /// Seed of the sampling; 0 chooses a new one each time.
    seed: Option<u64>,
    /// Limits of the search.
    limits: Option<Thinking>,
}

/// A position to analyse.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct AnalyseRequest {
    /// The first position; the initial one if absent.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The agent that analyses; `mcts` if absent.
    agent: Option<Agent>,
    /// The network to use, a name from `/v1/agents`; the one that the agent needs if absent.
    network: Option<String>,
    /// The rating whose moves the agent `human` predicts.
    elo: Option<u16>,
    /// Lines to return, best first; 1 if absent.
    lines: Option<usize>,
    /// Limits of the search.
    limits: Option<Thinking>,
}

/// A position to evaluate once.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct EvalRequest {
    /// The first position; the initial one if absent.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The network, a name from `/v1/agents`; if absent, `human` where a rating is given, else
    /// `main`.
    network: Option<String>,
    /// The rating of the side to move, for networks that use ratings.
    elo: Option<u16>,
    /// The rating of the other side; the same if absent.
    opponent_elo: Option<u16>,
}

/// A position in which to predict people's moves.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct PeopleRequest {
    /// The first position; the initial one if absent.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The network, a name from `/v1/agents`; `human` if absent.
    network: Option<String>,
}

/// Games to be written by a move-token model.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct GenerateRequest {
    /// The moves that each game begins with, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// The number of games; 1 if absent.
    games: Option<usize>,
    /// The network, a name from `/v1/agents`; the first of the family gpt if absent.
    network: Option<String>,
    /// White's rating.
    white_elo: Option<u16>,
    /// Black's rating.
    black_elo: Option<u16>,
    /// Requested result of the games; the network does not always comply.
    result: Option<GameResult>,
    /// Below 1 likelier moves become likelier still; 0 plays the likeliest.
    temperature: Option<f32>,
    /// Samples from the likeliest moves that together have this share, in 0…1.
    top_p: Option<f32>,
    /// Samples from moves that are at least this share as likely as the likeliest, in 0…1.
    min_p: Option<f32>,
    /// Samples from all moves, legal or not: a game ends with the first illegal one.
    raw: Option<bool>,
    /// Seed of the games; 0 chooses a new one each time.
    seed: Option<u64>,
}

/// A result in PGN notation.
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

/// A position to explain.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainRequest {
    /// The first position; the initial one if absent.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The network, a name from `/v1/agents`; `main` if absent.
    network: Option<String>,
    /// The rating of both players, for networks that use ratings.
    elo: Option<u16>,
    /// The move to explain; the policy's first if absent.
    #[serde(rename = "move")]
    mv: Option<String>,
    /// Shows only how a network of the family diffusion imagines the future, in 1 to 100 steps.
    steps: Option<u8>,
    /// Whether the JSON includes the attention maps, its largest part; true if absent.
    attention: Option<bool>,
}

/// Games to review.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewRequest {
    /// One or more games in PGN. A game that cannot be read to its end is reviewed as far as
    /// possible.
    pgn: Option<String>,
    /// Reviews the moves of the player of this name, and skips other players' games.
    player: Option<String>,
    /// Reviews this side's moves; both sides' if neither this nor a player is given.
    side: Option<Side>,
    /// The rating to compare with; the player's in the PGN, or the game's, if absent.
    elo: Option<u16>,
    /// Nodes per position; 800 if absent.
    nodes: Option<u64>,
    /// The network that searches, a name from `/v1/agents`; `main` if absent.
    network: Option<String>,
}

/// A position for which to return attention.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct AttentionRequest {
    /// The first position; the initial one if absent.
    fen: Option<String>,
    /// The moves played from there, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The network, a name from `/v1/agents`; `main` if absent.
    network: Option<String>,
    /// The layer, from 1; the last if absent.
    layer: Option<usize>,
    /// The head, from 1; the first if absent.
    head: Option<usize>,
}

/// Returns whether a body is a valid request to an endpoint, as far as this can be checked without
/// a network.
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
