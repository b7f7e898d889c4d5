//! `/v1/review`: reviews of games, with each position reported as it is searched.

use crate::play::Control;
use crate::review::{Report, Summary, game_page, unscored};
use crate::serve::access::Client;
use crate::serve::body::Body;
use crate::serve::media::{HTML, JSON, PGN, preferred};
use crate::serve::networks::{Loaded, Networks};
use crate::serve::players::run_in_turn;
use crate::serve::problem::Problem;
use crate::serve::request::{ReviewRequest, Reviewing};
use crate::serve::reviews::{ReviewUpdate, ReviewedGame, Reviewer};
use crate::serve::state::AppState;
use crate::serve::stream::{EVENTS, Format, NDJSON};
use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
#[cfg(test)]
use utoipa::ToSchema;

/// A review's body may have this many times the usual limit, because it may contain scores.
pub(in crate::serve) const REVIEW_TIMES: usize = 16;

/// Reviewed games.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct ReviewAnswer {
    pub(super) games: Vec<ReviewedGame>,
    /// The games' summary, and the games that could not be read.
    summary: Summary,
}

/// Reviews games: marks, reasons in words, and the moves that people of each rating play. The scores
/// are those of the server's judge (see `/v1/agents`), of Tessera's own search, or of the client's
/// engine. With
/// `Accept: text/event-stream` or `application/x-ndjson`, the response is a stream that reports
/// each position as it is searched; with `text/html`, a self-contained page for one game; with
/// `application/x-chess-pgn`, the games with marks and comments. A game that cannot be read to its
/// end is reviewed as far as possible, with warnings. The review stops when the client disconnects.
#[cfg_attr(test, utoipa::path(post, path = "/v1/review", request_body = ReviewRequest, responses(
    (status = 200, description = "The reviews, or a stream of updates", content(
        (ReviewAnswer = "application/json"),
        (String = "text/html"),
        (String = "application/x-chess-pgn"),
        (ReviewUpdate = "application/x-ndjson"),
        (ReviewUpdate = "text/event-stream"),
    )),
)))]
pub(in crate::serve) async fn review(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
    Body(request): Body<ReviewRequest, REVIEW_TIMES>,
) -> Result<Response, Problem> {
    let task = request.reviewing(&state.config)?;
    let networks = state.networks()?.clone();
    searching(&networks, &task)?;
    let kind = preferred(&headers, &[JSON, HTML, PGN, NDJSON, EVENTS]);
    if kind == HTML && task.games.len() > 1 {
        let detail = "a page shows one game: send one, or take JSON or PGN";
        return Err(Problem::field("pgn", detail));
    }
    let format = Format::of(kind);
    let open = format
        .map(|_| state.access.open_stream(&client))
        .transpose()?;
    let Some(format) = format else {
        return Ok(written(kind, reviewed(&state, task).await?));
    };
    let (control, stop) = state.control();
    let updates = ReceiverStream::new(start(&state, networks, task, control)?);
    let held = (open, stop);
    let updates = updates.map(move |update| {
        // A client that leaves drops it, which stops the searches.
        let _held = &held;
        update
    });
    Ok(format.respond(updates, state.config.limits.beat()))
}

/// A game that nobody has scored yet.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct OutlineAnswer {
    /// Its report, which contains only the moves, players and opening.
    report: Report,
}

/// Returns a game as a review reads it, without scores. A client with an engine of its own scores
/// the positions and sends them to `/v1/review` as `judged`. The request is the review's, with one
/// game.
#[cfg_attr(test, utoipa::path(post, path = "/v1/review/outline", request_body = ReviewRequest, responses(
    (status = 200, description = "The game", body = OutlineAnswer),
)))]
pub(in crate::serve) async fn outline(
    State(state): State<Arc<AppState>>,
    Body(request): Body<ReviewRequest, REVIEW_TIMES>,
) -> Result<Json<OutlineAnswer>, Problem> {
    let task = request.reviewing(&state.config)?;
    let [game] = &task.games[..] else {
        let detail = "an outline shows one game: send one";
        return Err(Problem::field("pgn", detail));
    };
    let report = unscored(&game.source, game.side);
    Ok(Json(OutlineAnswer { report }))
}

/// Returns the network that searches.
fn searching<'a>(networks: &'a Networks, task: &Reviewing) -> Result<&'a Loaded, Problem> {
    let network = networks.named(&task.network)?;
    let has_value = network.backend.properties().require_value();
    has_value.map_err(|error| Problem::field("network", error.to_string()))?;
    Ok(network)
}

/// Reviews games on a separate thread, once it is their turn and as long as the client listens.
fn start(
    state: &Arc<AppState>,
    networks: Arc<Networks>,
    task: Reviewing,
    control: Arc<Control>,
) -> Result<mpsc::Receiver<ReviewUpdate>, Problem> {
    let place = state.reviews.places.enter()?;
    let plies = task.games.iter().map(|it| it.source.game.plies().len());
    // There is room for every event, so a slow reader neither delays the review nor misses an
    // event: a judge reports a position up to twice, then Tessera's search may, and the model of
    // human play does.
    let (updates, heard) = mpsc::channel(4 * plies.sum::<usize>() + 2 * task.games.len() + 2);
    let state = state.clone();
    run_in_turn(place, updates, ReviewUpdate::Error, move |updates| {
        let reviewer = Reviewer {
            reviews: &state.reviews,
            judge: state.config.judge.as_deref().filter(|_| task.uses_judge),
            main: searching(&networks, &task)?,
            human: networks.human.as_ref().ok(),
            threads: state.config.limits.parallel,
            control,
            tell: &|update| updates.try_send(update).is_ok(),
            count_nodes: &|nodes| {
                state.metrics.nodes.inc_by(nodes);
            },
        };
        reviewer.review_all(&task)
    });
    Ok(heard)
}

/// Returns the reviews. If the client leaves, they stop.
pub(super) async fn reviewed(
    state: &Arc<AppState>,
    task: Reviewing,
) -> Result<ReviewAnswer, Problem> {
    let networks = state.networks()?.clone();
    searching(&networks, &task)?;
    let (control, _stop) = state.control();
    finished(ReceiverStream::new(start(state, networks, task, control)?)).await
}

/// Returns all reviews once the last one is finished.
async fn finished(
    mut updates: impl Stream<Item = ReviewUpdate> + Unpin,
) -> Result<ReviewAnswer, Problem> {
    let mut games = Vec::new();
    while let Some(update) = updates.next().await {
        match update {
            ReviewUpdate::Review(game) => games.push(*game),
            ReviewUpdate::Result(end) => {
                let summary = end.summary;
                return Ok(ReviewAnswer { games, summary });
            }
            ReviewUpdate::Error(problem) => return Err(problem),
            ReviewUpdate::Game(_) | ReviewUpdate::Ply(_) | ReviewUpdate::People(_) => {}
        }
    }
    Err(Problem::internal("the review stopped unexpectedly"))
}

/// Returns the response in the requested format.
fn written(kind: &str, answer: ReviewAnswer) -> Response {
    let games = &answer.games;
    match kind {
        HTML => Html(
            games
                .first()
                .map_or_else(String::new, |it| game_page(&it.report)),
        )
        .into_response(),
        PGN => {
            let text: String = games.iter().map(|it| it.pgn.as_str()).collect();
            ([(header::CONTENT_TYPE, PGN)], text).into_response()
        }
        _ => Json(answer).into_response(),
    }
}
