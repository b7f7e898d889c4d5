//! `/v1/agents`: the available agents and their limits.

use crate::agent::LOWEST_RATING;
use crate::player::HIGHEST_LEVEL;
use crate::review::people::RATINGS;
use crate::serve::networks::Loaded;
use crate::serve::problem::Problem;
use crate::serve::routes::REVIEW_TIMES;
use crate::serve::state::AppState;
use axum::Json;
use axum::extract::State;
use clap::ValueEnum;
use serde::Serialize;
use std::sync::Arc;
#[cfg(test)]
use utoipa::ToSchema;

/// An agent.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct AgentDescription {
    /// Its name in requests.
    name: &'static str,
    /// A description of how it plays.
    description: &'static str,
    /// The network that it uses by default.
    network: String,
    /// The ratings at which it can play.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratings: Option<[u16; 2]>,
}

/// A network.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct NetworkDescription {
    /// Its name in requests.
    name: String,
    /// Its title.
    title: String,
    /// Its family: `chessformer`, `lc0`, `maia3`, `gpt`, `diffusion` or `world`.
    #[cfg_attr(test, schema(value_type = String))]
    family: &'static str,
    /// Whether it has a value head, which a search needs.
    has_value: bool,
    /// The ratings that it reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratings: Option<[u16; 2]>,
    /// The number format and the way in which it runs on this server, the speeds of those that were
    /// tried, and those that were refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<String>,
}

fn ratings(network: &Loaded) -> Option<[u16; 2]> {
    let reads = network.backend.properties().reads_ratings;
    reads.then_some([RATINGS[0], RATINGS[RATINGS.len() - 1]])
}

fn describe(network: &Loaded) -> NetworkDescription {
    let properties = network.backend.properties();
    NetworkDescription {
        name: network.name.clone(),
        title: properties.name.clone(),
        family: network.family,
        has_value: properties.has_value,
        ratings: ratings(network),
        runs: properties.format.as_ref().map(ToString::to_string),
    }
}

/// An external engine that scores reviews.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct JudgeDescription {
    /// The name that it gives itself.
    name: String,
    /// Its nodes for each position.
    nodes: u64,
}

/// Limits of a request.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct LimitsDescription {
    /// Bytes per request body.
    body_bytes: usize,
    /// Bytes per body of a review.
    review_body_bytes: usize,
    /// Moves per game.
    moves: usize,
    /// Nodes per search.
    nodes: u64,
    /// Time per search, in milliseconds.
    movetime_ms: u64,
    /// Time of a search for which the request sets no limits, in milliseconds.
    default_movetime_ms: u64,
    /// Lines per analysis.
    lines: usize,
    /// Games per generation request.
    games: usize,
    /// Open streams per client.
    streams: usize,
    /// Requests per second and client; 0 sets no limit.
    requests_per_second: u32,
    /// Requests that may wait in the queue.
    queue: usize,
    /// Time for which a shared review can be read, in seconds; null if this server shares none.
    shared_s: Option<u64>,
}

/// The available agents.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct AgentsAnswer {
    /// The engine and its version.
    engine: &'static str,
    /// The default agent.
    default: String,
    agents: Vec<AgentDescription>,
    networks: Vec<NetworkDescription>,
    /// The external engine that scores reviews; null if Tessera's own search does.
    judge: Option<JudgeDescription>,
    limits: LimitsDescription,
}

/// Lists the agents with their networks, ratings and limits.
#[cfg_attr(test, utoipa::path(get, path = "/v1/agents", responses(
    (status = 200, description = "The agents", body = AgentsAnswer),
)))]
pub(in crate::serve) async fn agents(
    State(state): State<Arc<AppState>>,
) -> Result<Json<AgentsAnswer>, Problem> {
    let networks = state.networks()?;
    let main = &networks.main;
    let human = networks.human.as_ref().unwrap_or(main);
    let agent = |name, description, network: &Loaded| AgentDescription {
        name,
        description,
        network: network.name.clone(),
        ratings: None,
    };
    let mut agents = vec![
        agent("mcts", "a tree search with the network", main),
        agent("policy", "the move with the highest policy", main),
        agent("value", "the candidate with the best value", main),
        AgentDescription {
            ratings: ratings(human).map(|_| [LOWEST_RATING, HIGHEST_LEVEL]),
            ..agent("human", "a move as people of a given rating play it", human)
        },
    ];
    if let Some(network) = networks.of_family("diffusion") {
        let description = "the move that a network picks from an imagined continuation";
        agents.push(agent("diffusion", description, network));
    }
    if let Some(network) = networks.of_family("world") {
        let description = "a search in the network's imagination, without the rules";
        agents.push(agent("world", description, network));
    }
    let limits = &state.config.limits;
    let kind = state.config.player.agent.to_possible_value();
    Ok(Json(AgentsAnswer {
        engine: concat!("Tessera ", env!("CARGO_PKG_VERSION")),
        default: kind.map_or_else(String::new, |kind| kind.get_name().to_owned()),
        agents,
        networks: networks.iter().map(describe).collect(),
        judge: state.config.judge.as_ref().map(|judge| JudgeDescription {
            name: judge.name.clone(),
            nodes: judge.nodes,
        }),
        limits: LimitsDescription {
            body_bytes: limits.body,
            review_body_bytes: REVIEW_TIMES * limits.body,
            moves: limits.moves,
            nodes: limits.nodes,
            movetime_ms: limits.time.as_millis() as u64,
            default_movetime_ms: limits.default_time.as_millis() as u64,
            lines: limits.lines,
            games: limits.games,
            streams: limits.streams,
            requests_per_second: limits.rate,
            queue: limits.queue,
            shared_s: state.config.sharing.as_ref().map(|it| it.time.as_secs()),
        },
    }))
}
