//! `/v1/move`: returns an agent's move.

use crate::serve::access::Client;
use crate::serve::answer::MoveAnswer;
use crate::serve::body::Body;
use crate::serve::players::Event;
use crate::serve::problem::Problem;
use crate::serve::request::MoveRequest;
use crate::serve::state::State;
use axum::extract::State as Shared;
use axum::{Extension, Json};
use std::sync::Arc;

/// Returns an agent's move in a position, with its evaluation.
#[cfg_attr(test, utoipa::path(post, path = "/v1/move", request_body = MoveRequest, responses(
    (status = 200, description = "The move; absent if the game is over", body = MoveAnswer),
)))]
pub(in crate::serve) async fn choose_move(
    Shared(state): Shared<Arc<State>>,
    Extension(client): Extension<Client>,
    Body(request): Body<MoveRequest>,
) -> Result<Json<MoveAnswer>, Problem> {
    let mut question = request.question(&state.config)?;
    let networks = state.networks()?;
    networks.choose(question.network.as_deref(), &mut question.settings)?;
    let game = question.game.clone();
    let (control, _stop) = state.control();
    let mut events = state.players.ask(client, question, control)?;
    while let Some(event) = events.recv().await {
        if let Event::Answer(answer) = event {
            let answer = answer?;
            state.metrics.nodes.inc_by(answer.choice.report.new_nodes);
            return Ok(Json(MoveAnswer::of(&answer.choice, &game, answer.notes)));
        }
    }
    Err(Problem::internal("the player has stopped"))
}
