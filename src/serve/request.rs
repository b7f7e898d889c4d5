//! Request bodies.

mod checked;
mod judged;
mod review;

pub(super) use checked::{Look, Question, Writing, analysis, within};
pub(super) use review::Reviewing;

use super::config::Config;
use super::json::parse;
use crate::agent::AgentKind;
use crate::generate::GameResult;
use crate::review::curve::Evaluation;
use crate::review::report::Side;
use serde::Deserialize;
#[cfg(test)]
use utoipa::ToSchema;

/// Limits of the search. Without any, the server's default time applies.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Thinking {
    /// Number of nodes, including those of a reused tree.
    nodes: Option<u64>,
    /// Time for this move, in milliseconds.
    movetime_ms: Option<u64>,
    /// Mean depth of the tree's leaves at which to stop, in plies.
    depth: Option<u32>,
    /// The clock of the side to move.
    clock: Option<Clock>,
    /// The only moves to consider, in UCI notation or SAN.
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
    /// Number of moves to the next time control.
    moves_to_go: Option<u32>,
}

/// A position in which to choose a move.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct MoveRequest {
    /// The starting position, as a FEN; by default the initial position of chess.
    fen: Option<String>,
    /// The moves played from the starting position, in UCI notation or SAN. Networks read them as
    /// history.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960. This is detected automatically if the FEN is
    /// legal only in Chess960.
    chess960: Option<bool>,
    /// The agent that chooses the move; by default the server's default agent.
    agent: Option<AgentKind>,
    /// The network to use, by its name in `/v1/agents`; by default the agent's own.
    network: Option<String>,
    /// The rating to play at, for the agent `human`.
    elo: Option<u16>,
    /// The opponent's rating, for the agent `human`; by default the same as `elo`.
    opponent_elo: Option<u16>,
    /// The temperature at which the move is sampled; 0 plays the best move.
    temperature: Option<f32>,
    /// The sampling seed; 0 chooses a new one each time.
    seed: Option<u64>,
    /// Limits of the search.
    limits: Option<Thinking>,
}

/// A position to analyse.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct AnalyseRequest {
    /// The starting position, as a FEN; by default the initial position of chess.
    fen: Option<String>,
    /// The moves played from the starting position, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The agent that analyses; by default `mcts`.
    agent: Option<AgentKind>,
    /// The network to use, by its name in `/v1/agents`; by default the agent's own.
    network: Option<String>,
    /// The rating whose moves the agent `human` predicts.
    elo: Option<u16>,
    /// Number of lines to return; 1 if absent.
    lines: Option<usize>,
    /// Limits of the search.
    limits: Option<Thinking>,
}

/// A position to evaluate without a search.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct EvalRequest {
    /// The starting position, as a FEN; by default the initial position of chess.
    fen: Option<String>,
    /// The moves played from the starting position, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The network, by its name in `/v1/agents`; by default `human` if a rating is given, otherwise
    /// `main`.
    network: Option<String>,
    /// The rating of the side to move, for networks that use ratings.
    elo: Option<u16>,
    /// The rating of the other side; by default the same.
    opponent_elo: Option<u16>,
}

/// A position in which to predict people's moves.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct PeopleRequest {
    /// The starting position, as a FEN; by default the initial position of chess.
    fen: Option<String>,
    /// The moves played from the starting position, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The network, by its name in `/v1/agents`; by default `human`.
    network: Option<String>,
}

/// A request for games from a move-token model.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct GenerateRequest {
    /// The moves that each game begins with, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// The number of games; by default 1.
    games: Option<usize>,
    /// The network, by its name in `/v1/agents`; by default the first one of the family gpt.
    network: Option<String>,
    /// White's rating.
    white_elo: Option<u16>,
    /// Black's rating.
    black_elo: Option<u16>,
    /// Requested result of the games; the network does not always comply.
    result: Option<GameResult>,
    /// The sampling temperature: values below 1 favour likelier moves, and 0 always plays the
    /// likeliest.
    temperature: Option<f32>,
    /// Samples only from the likeliest moves that together have this probability, in 0…1.
    top_p: Option<f32>,
    /// Samples only from moves with at least this share of the likeliest move's probability, in
    /// 0…1.
    min_p: Option<f32>,
    /// Samples from all moves, legal or not; a game ends at its first illegal move.
    raw: Option<bool>,
    /// The sampling seed; 0 chooses a new one each time.
    seed: Option<u64>,
}

/// A position to explain.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainRequest {
    /// The starting position, as a FEN; by default the initial position of chess.
    fen: Option<String>,
    /// The moves played from the starting position, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The network, by its name in `/v1/agents`; by default `main`.
    network: Option<String>,
    /// The rating of both players, for networks that use ratings.
    elo: Option<u16>,
    /// The move to explain; by default the policy's likeliest move.
    #[serde(rename = "move")]
    mv: Option<String>,
    /// If present, the response only shows how a network of the family diffusion imagines the
    /// future, in this many steps (1 to 100).
    steps: Option<u8>,
    /// Whether the JSON includes the attention maps, which are its largest part; by default true.
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
    /// Reviews the moves of the player with this name, and skips other players' games.
    player: Option<String>,
    /// Reviews this side's moves; if neither this nor `player` is given, both sides' moves are
    /// reviewed.
    side: Option<Side>,
    /// The rating to compare with; the player's in the PGN, or the game's, if absent.
    elo: Option<u16>,
    /// Nodes per position; by default 800.
    nodes: Option<u64>,
    /// The network that searches if there is no judge, by its name in `/v1/agents`; by default
    /// `main`.
    network: Option<String>,
    /// Whether the server's judge scores the games; by default it does if the server has one.
    judge: Option<JudgeChoice>,
    /// Scores that the client's own engine has found, which are used instead of the server's.
    judged: Option<JudgedGames>,
}

/// The source of the scores of the games.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum JudgeChoice {
    /// Tessera's own search.
    None,
    /// The server's judge.
    Server,
}

/// Scores of an engine that the client runs.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct JudgedGames {
    /// The engine's name, which the review shows.
    engine: String,
    /// Its nodes for each position.
    nodes: u64,
    /// For each game of the PGN, in order, the scores of its positions: one for the starting
    /// position and one after each move. A score is null if it is unknown or if the position has no
    /// legal move. The list of a game that cannot be read is ignored.
    games: Vec<Vec<Option<JudgedPosition>>>,
}

/// A position's score, from the view of the side to move.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct JudgedPosition {
    /// The score.
    evaluation: Evaluation,
    /// The moves that lead to it, at least one, in UCI notation.
    line: Vec<String>,
    /// The score of the second-best move, if it is known.
    second: Option<Evaluation>,
}

/// A position to score with the server's judge.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct JudgeRequest {
    /// The starting position, as a FEN; by default the initial position of chess.
    fen: Option<String>,
    /// The moves played from the starting position, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// Number of nodes; by default the number that reviews use.
    nodes: Option<u64>,
}

/// A position for which to return attention.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct AttentionRequest {
    /// The starting position, as a FEN; by default the initial position of chess.
    fen: Option<String>,
    /// The moves played from the starting position, in UCI notation or SAN.
    moves: Option<Vec<String>>,
    /// Whether to castle by the rules of Chess960.
    chess960: Option<bool>,
    /// The network, by its name in `/v1/agents`; by default `main`.
    network: Option<String>,
    /// The layer, from 1; by default the last.
    layer: Option<usize>,
    /// The head, from 1; by default the first.
    head: Option<usize>,
}

/// Returns whether a body is a valid request to an endpoint, as far as this can be checked without
/// a network.
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
        "/v1/judge" => parse::<JudgeRequest>(body).and_then(|it| it.question(&config).map(drop)),
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
