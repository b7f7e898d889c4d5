//! `/v1/analyse`: the lines of a running analysis, streamed if the client accepts a stream.

use crate::chess::Game;
use crate::serve::access::{Client, OpenStream};
use crate::serve::answer::{MoveAnswer, Progress};
use crate::serve::body::Body;
use crate::serve::media::{JSON, preferred};
use crate::serve::players::Event;
use crate::serve::problem::Problem;
use crate::serve::request::AnalyseRequest;
use crate::serve::state::{AppState, StopOnDrop};
use crate::serve::stream::{EVENTS, Format, NDJSON};
use axum::Json;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
#[cfg(test)]
use utoipa::ToSchema;

/// A line of a stream.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(tag = "event", rename_all = "lowercase")]
pub(in crate::serve) enum Update {
    /// The analysis so far.
    Info(Progress),
    /// The final result; this is the last line.
    Result(Box<MoveAnswer>),
    /// The reason why there is no result; this is the last line.
    Error(Problem),
}

/// Analyses a position and returns one or more lines. With `Accept: text/event-stream` or
/// `application/x-ndjson`, the response is a stream that ends with the result; otherwise it is only
/// the result. The analysis stops when the client disconnects.
#[cfg_attr(test, utoipa::path(post, path = "/v1/analyse", request_body = AnalyseRequest, responses(
    (status = 200, description = "The result, or a stream of updates", content(
        (MoveAnswer = "application/json"),
        (Update = "application/x-ndjson"),
        (Update = "text/event-stream"),
    )),
)))]
pub(in crate::serve) async fn analyse(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
    Body(request): Body<AnalyseRequest>,
) -> Result<Response, Problem> {
    let mut question = request.question(&state.config)?;
    let networks = state.networks()?;
    networks.choose(question.network.as_deref(), &mut question.settings)?;
    let game = question.game.clone();
    let Some(format) = Format::of(preferred(&headers, &[JSON, NDJSON, EVENTS])) else {
        let answer = state.answer(client, question).await?;
        return Ok(Json(MoveAnswer::of(answer, &game)).into_response());
    };
    let open = state.access.open_stream(&client)?;
    let (control, stop) = state.control();
    let events = state.players.ask(client, question, control)?;
    let beat = state.config.limits.beat();
    Ok(format.respond(updates(state, game, events, (open, stop)), beat))
}

/// Returns the receiver of events. A client that disconnects drops it, which stops the search.
fn updates(
    state: Arc<AppState>,
    game: Game,
    events: mpsc::Receiver<Event>,
    held: (OpenStream, StopOnDrop),
) -> impl Stream<Item = Update> {
    ReceiverStream::new(events).map(move |event| {
        let _held = &held;
        match event {
            Event::Report(report) => Update::Info(Progress::of(&report, &game)),
            Event::Answer(Ok(answer)) => {
                state.count(&answer);
                Update::Result(Box::new(MoveAnswer::of(answer, &game)))
            }
            Event::Answer(Err(problem)) => Update::Error(problem),
        }
    })
}
