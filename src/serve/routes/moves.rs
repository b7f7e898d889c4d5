//! `/v1/move`: returns an agent's move.

use crate::agent::{AgentKind, thinking_time};
use crate::serve::access::Client;
use crate::serve::answer::MoveAnswer;
use crate::serve::body::Body;
use crate::serve::problem::Problem;
use crate::serve::request::MoveRequest;
use crate::serve::state::AppState;
use axum::extract::State;
use axum::{Extension, Json};
use std::sync::Arc;

/// Returns an agent's move in a position, with its evaluation.
#[cfg_attr(test, utoipa::path(post, path = "/v1/move", request_body = MoveRequest, responses(
    (status = 200, description = "The move; absent if the game is over", body = MoveAnswer),
)))]
pub(in crate::serve) async fn choose_move(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    Body(request): Body<MoveRequest>,
) -> Result<Json<MoveAnswer>, Problem> {
    let mut question = request.question(&state.config)?;
    let networks = state.networks()?;
    networks.choose(question.network.as_deref(), &mut question.settings)?;
    let game = question.game.clone();
    let settings = &question.settings;
    let (is_human, rating) = (settings.agent == AgentKind::Human, settings.self_elo);
    let overhead = settings.options.search.overhead();
    let answer = state.answer(client, question).await?;
    let priors = answer.choice.statistics.iter().map(|of| of.prior);
    let clock = request
        .clock()
        .filter(|_| is_human && answer.choice.best.is_some());
    let time = clock
        .and_then(|clock| thinking_time(&clock, overhead, Some(rating), priors, &mut rand::rng()));
    Ok(Json(MoveAnswer::of(answer, &game).taking(time)))
}
