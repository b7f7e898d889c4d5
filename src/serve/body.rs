//! JSON bodies: limited in size, strictly parsed, and with errors that name the field.

use super::json::parse;
use super::media::is_json;
use super::problem::Problem;
use super::state::AppState;
use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use std::error::Error;
use std::iter::successors;
use std::sync::Arc;
use tokio::time::timeout;

/// A JSON body of up to `TIMES` times the usual limit.
pub(super) struct Body<T, const TIMES: usize = 1>(pub(super) T);

impl<T: DeserializeOwned, const TIMES: usize> FromRequest<Arc<AppState>> for Body<T, TIMES> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Self, Problem> {
        let limit = TIMES * state.config.limits.body;
        check_headers(request.headers(), limit)?;
        let bytes = to_bytes(request.into_body(), limit);
        let bytes = timeout(state.config.limits.silence, bytes).await;
        let bytes = bytes.map_err(|_| Problem::too_slow())?;
        parse(&bytes.map_err(|error| broken(&error, limit))?).map(Body)
    }
}

/// Returns the problem for a body that could not be read, because the connection failed or the body
/// is too large.
fn broken(error: &axum::Error, limit: usize) -> Problem {
    let first: Option<&(dyn Error + 'static)> = error.source();
    match successors(first, |&error| error.source()).any(|error| error.is::<hyper::Error>()) {
        true => Problem::broken(),
        false => Problem::too_large(limit),
    }
}

/// Rejects a body that is not JSON, or whose declared length is too large.
fn check_headers(headers: &HeaderMap, limit: usize) -> Result<(), Problem> {
    // Pages of other origins cannot send this content type without a preflight request.
    if !is_json(headers) {
        return Err(Problem::no_json());
    }
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok());
    match length.and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length > limit => Err(Problem::too_large(limit)),
        _ => Ok(()),
    }
}
