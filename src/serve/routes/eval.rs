//! `/v1/eval`: one evaluation by a network. Concurrent requests are evaluated in one batch.

use crate::backend::{BackendError, Batch, correct};
use crate::chess::{Game, Ratings};
use crate::play::centipawns;
use crate::serve::answer::{Asked, EvalAnswer, PlayedMove, Prior};
use crate::serve::body::Body;
use crate::serve::networks::Loaded;
use crate::serve::players::backend_problem;
use crate::serve::problem::Problem;
use crate::serve::request::EvalRequest;
use crate::serve::state::AppState;
use crate::softmax::softmax;
use axum::Json;
use axum::extract::State;
use shakmaty::Position;
use std::sync::Arc;

/// Evaluates a position with a network: value, result probabilities and policy.
#[cfg_attr(test, utoipa::path(post, path = "/v1/eval", request_body = EvalRequest, responses(
    (status = 200, description = "The evaluation", body = EvalAnswer),
)))]
pub(in crate::serve) async fn eval(
    State(state): State<Arc<AppState>>,
    Body(request): Body<EvalRequest>,
) -> Result<Json<EvalAnswer>, Problem> {
    let (mut game, network, ratings) = request.question(&state.config)?;
    let network = state.networks()?.named(network)?;
    let properties = network.backend.properties();
    if let Some((elo, opponent)) = ratings {
        if !properties.reads_ratings {
            let detail = format!("the network {} reads no ratings", properties.name);
            return Err(Problem::field("elo", detail));
        }
        game.set_ratings(Ratings::of(game.position().turn(), elo, opponent));
    }
    let _place = state.evaluations.enter()?.await?;
    let answer = evaluate(network, &game, ratings.is_some()).await;
    let answer = answer.map_err(|error| backend_problem(&error))?;
    state.metrics.evaluations.inc();
    Ok(Json(answer))
}

/// Returns the value of the game's last position, and the probabilities of its moves, of people's
/// moves if the game has ratings.
async fn evaluate(
    network: &Loaded,
    game: &Game,
    is_of_people: bool,
) -> Result<EvalAnswer, BackendError> {
    let properties = network.backend.properties();
    let moves = game.position().legal_moves();
    let mut batch = Batch::default();
    batch.push(game, &moves, &properties.encoder)?;
    let evaluations = network.evaluate(batch).await?;
    let mut probabilities = evaluations.logits(0).to_vec();
    if is_of_people {
        correct(properties, [(game, &moves[..], &mut probabilities[..])]);
    }
    softmax(&mut probabilities, 1.0);
    let mut policy: Vec<_> = moves.iter().copied().zip(probabilities).collect();
    policy.sort_by(|a, b| b.1.total_cmp(&a.1));
    let value = evaluations.value(0);
    Ok(EvalAnswer {
        asked: Asked::of(game),
        network: properties.name.clone(),
        value: properties.has_value.then_some(value.q),
        cp: properties.has_value.then(|| centipawns(value.q)),
        wdl: properties.has_value.then(|| value.wdl().into()),
        moves_left: properties.has_moves_left.then_some(value.moves_left),
        policy: policy
            .into_iter()
            .map(|(mv, prior)| Prior {
                mv: PlayedMove::among(game, &moves, mv),
                prior,
            })
            .collect(),
    })
}
