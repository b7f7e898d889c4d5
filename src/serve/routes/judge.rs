//! `/v1/judge`: the judge's score of one position.

use crate::error_report::one_line;
use crate::review::curve::Evaluation;
use crate::serve::answer::{Asked, PlayedMove, played};
use crate::serve::body::Body;
use crate::serve::problem::Problem;
use crate::serve::request::JudgeRequest;
use crate::serve::state::AppState;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use shakmaty::Position;
use std::sync::Arc;
use tokio::task::spawn_blocking;
#[cfg(test)]
use utoipa::ToSchema;

/// The judge's score of a position.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct JudgeAnswer {
    #[serde(flatten)]
    asked: Asked,
    /// The judge's name.
    judge: String,
    /// The number of nodes that it searched.
    nodes: u64,
    /// The score; absent if the game is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    evaluation: Option<Evaluation>,
    /// The moves that lead to the score.
    moves: Vec<PlayedMove>,
}

/// Returns the score that the server's judge, an external engine, gives a position, and the line
/// that leads to it.
#[cfg_attr(test, utoipa::path(post, path = "/v1/judge", request_body = JudgeRequest, responses(
    (status = 200, description = "The score", body = JudgeAnswer),
)))]
pub(in crate::serve) async fn judge(
    State(state): State<Arc<AppState>>,
    Body(request): Body<JudgeRequest>,
) -> Result<Json<JudgeAnswer>, Problem> {
    let (game, nodes) = request.question(&state.config)?;
    let judge = state.config.judge.clone();
    let judge = judge.ok_or_else(|| Problem::no_judge(""))?;
    let nodes = nodes.unwrap_or(judge.nodes);
    let mut answer = JudgeAnswer {
        asked: Asked::of(&game),
        judge: judge.name.clone(),
        nodes,
        evaluation: None,
        moves: Vec::new(),
    };
    if game.position().legal_moves().is_empty() {
        return Ok(Json(answer));
    }
    let place = state.judging.enter()?.await?;
    let asked = game.clone();
    let searched = spawn_blocking(move || {
        let _place = place;
        judge.position(&asked, nodes)
    });
    let searched = searched.await.map_err(|_| Problem::mistake())?;
    let searched = searched.map_err(|error| {
        let error = one_line(&error);
        tracing::warn!("{error}");
        Problem::internal(format!("the judge failed: {error}"))
    })?;
    answer.evaluation = Some(searched.evaluation);
    answer.moves = played(&game, &searched.moves(&game));
    Ok(Json(answer))
}
