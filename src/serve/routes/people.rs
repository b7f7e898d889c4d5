//! `/v1/people`: the moves that people play, by rating.

use crate::backend::{BackendError, Batch, correct};
use crate::chess::{Game, Ratings};
use crate::review::people::RATINGS;
use crate::serve::answer::{Asked, PlayedMove};
use crate::serve::body::Body;
use crate::serve::networks::Loaded;
use crate::serve::players::backend_problem;
use crate::serve::problem::Problem;
use crate::serve::request::PeopleRequest;
use crate::serve::state::AppState;
use crate::softmax::softmax;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use shakmaty::Position;
use std::sync::Arc;
#[cfg(test)]
use utoipa::ToSchema;

/// The moves that people play, by rating.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct PeopleAnswer {
    #[serde(flatten)]
    asked: Asked,
    /// The network's name.
    network: String,
    /// Whether the shares are corrected by the rules for what people of each rating see: mates in
    /// one and pieces that can be taken. Only networks that were fitted for it are.
    corrected: bool,
    /// The ratings, in ascending order, none above those of the players whose moves the network
    /// learned. Both players are assumed to have the same rating.
    ratings: Vec<u16>,
    /// The legal moves, in descending order of their largest share at any rating.
    moves: Vec<Popularity>,
}

/// A move, and how often people play it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct Popularity {
    #[serde(flatten)]
    mv: PlayedMove,
    /// The share of players who play it, at each rating.
    shares: Vec<f32>,
}

/// Returns, for each move, the share of players who would play it, at ratings from 600 to 2600.
#[cfg_attr(test, utoipa::path(post, path = "/v1/people", request_body = PeopleRequest, responses(
    (status = 200, description = "The moves", body = PeopleAnswer),
)))]
pub(in crate::serve) async fn people(
    State(state): State<Arc<AppState>>,
    Body(request): Body<PeopleRequest>,
) -> Result<Json<PeopleAnswer>, Problem> {
    let (game, network) = request.question(&state.config)?;
    let network = state.networks()?.named(network)?;
    let properties = network.backend.properties();
    if !properties.reads_ratings {
        let detail = format!("the network {} reads no ratings", properties.name);
        return Err(Problem::field("network", detail));
    }
    let _place = state.evaluations.enter()?.await?;
    let moves = popularity(network, &game).await;
    let moves = moves.map_err(|error| backend_problem(&error))?;
    state.metrics.evaluations.inc_by(RATINGS.len() as u64);
    Ok(Json(PeopleAnswer {
        asked: Asked::of(&game),
        network: properties.name.clone(),
        corrected: properties.people_correction().is_some(),
        ratings: RATINGS.to_vec(),
        moves,
    }))
}

/// Returns every legal move with its share at each rating, in one batch.
async fn popularity(network: &Loaded, game: &Game) -> Result<Vec<Popularity>, BackendError> {
    let legal = game.position().legal_moves();
    let encoder = &network.backend.properties().encoder;
    let mut batch = Batch::default();
    let games = RATINGS.map(|rating| {
        let mut game = game.clone();
        game.set_ratings(Ratings::both(rating));
        game
    });
    for game in &games {
        batch.push(game, &legal, encoder)?;
    }
    let evaluations = network.evaluate(batch).await?;
    let logits = (0..RATINGS.len()).map(|index| evaluations.logits(index).to_vec());
    let mut policies: Vec<Vec<f32>> = logits.collect();
    let asked = games.iter().zip(&mut policies);
    correct(
        network.backend.properties(),
        asked.map(|(game, logits)| (game, &legal[..], &mut logits[..])),
    );
    policies.iter_mut().for_each(|policy| softmax(policy, 1.0));
    let moves = legal.iter().enumerate().map(|(place, &mv)| Popularity {
        mv: PlayedMove::among(game, &legal, mv),
        shares: policies.iter().map(|policy| policy[place]).collect(),
    });
    let mut moves: Vec<Popularity> = moves.collect();
    let largest = |of: &Popularity| of.shares.iter().copied().fold(0.0, f32::max);
    moves.sort_by(|a, b| largest(b).total_cmp(&largest(a)));
    Ok(moves)
}
