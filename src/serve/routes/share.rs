//! `/v1/review/share` and `/shared`: reviews that can be read by a link.

use super::review::{REVIEW_TIMES, reviewed};
use crate::page::policy_of;
use crate::review::game_page;
use crate::serve::access::Client;
use crate::serve::body::Body;
use crate::serve::page::{guarded, message};
use crate::serve::problem::Problem;
use crate::serve::request::ReviewRequest;
use crate::serve::shared::{ShareError, SharedPages};
use crate::serve::state::AppState;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Serialize;
use std::sync::Arc;
use tokio::task::spawn_blocking;
#[cfg(test)]
use utoipa::ToSchema;

/// The message where there is no review.
const GONE: &str = "  <p>There is no review at this address: it has expired, or the link is incomplete.</p>\n  \
     <p><a href=\"/#review\">Review a game</a></p>";

/// The link to a shared review.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct ShareAnswer {
    /// The path of the page on this server. Its name is unguessable, and anyone with the link can read
    /// the page without a token.
    path: String,
    /// The time from which on the page cannot be read, in seconds since 1970.
    expires: u64,
}

/// Reviews a game and shares the report: a self-contained page, which can be read by a link until it
/// expires. The request is the review's, with one game. Only for servers started with `--share-in`.
#[cfg_attr(test, utoipa::path(post, path = "/v1/review/share", request_body = ReviewRequest, responses(
    (status = 201, description = "The link", body = ShareAnswer),
    (status = 404, description = "Not found", body = Problem, content_type = "application/problem+json"),
    (status = 507, description = "No room left", body = Problem, content_type = "application/problem+json"),
)))]
pub(in crate::serve) async fn share(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    Body(request): Body<ReviewRequest, REVIEW_TIMES>,
) -> Result<(StatusCode, Json<ShareAnswer>), Problem> {
    let shared = state.shared.clone().ok_or_else(Problem::not_shared)?;
    let task = request.reviewing(&state.config)?;
    if task.games.len() > 1 {
        let detail = "a shared page shows one game: send one";
        return Err(Problem::field("pgn", detail));
    }
    state.access.check_shares(&client)?;
    let answer = reviewed(&state, task).await?;
    let [game] = &answer.games[..] else {
        return Err(Problem::mistake());
    };
    let page = game_page(&game.report);
    let link = spawn_blocking(move || shared.add(&page)).await;
    let link = link.map_err(|_| Problem::mistake())?;
    let link = link.map_err(|error| match error {
        ShareError::Full(wait) => {
            let detail =
                "this server shares as many reviews as it can: save the report as a file instead";
            Problem::full(detail, wait)
        }
        ShareError::Write(error) => {
            tracing::error!("cannot share a review: {error}");
            Problem::internal("the review cannot be stored: tell the server's operator")
        }
    })?;
    let answer = ShareAnswer {
        path: format!("/shared/{}", link.name),
        expires: link.expires,
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Returns a shared review. Browsers run only the page's own script, apart from this server's pages.
pub(in crate::serve) async fn shared(
    State(state): State<Arc<AppState>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let shared = state.shared.clone().ok_or_else(Problem::not_shared)?;
    let read = |shared: &SharedPages, name: Option<Path<String>>| shared.read(&name?);
    let page = spawn_blocking(move || read(&shared, name.ok())).await;
    let page = page.map_err(|_| Problem::mistake())?;
    let Some(page) = page else {
        let gone = message("No longer shared – Tessera", GONE);
        return Ok((StatusCode::NOT_FOUND, gone).into_response());
    };
    let policy = policy_of(&page).unwrap_or("default-src 'none'");
    let policy = format!("{policy}; frame-ancestors 'none'; sandbox allow-scripts");
    let policy = HeaderValue::from_str(&policy).map_err(|_| Problem::mistake())?;
    let mut response = guarded(Html(page).into_response());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    // A page that has expired must not remain in caches.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-robots-tag", HeaderValue::from_static("noindex"));
    Ok(response)
}
