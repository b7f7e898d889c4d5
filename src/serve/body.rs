//! JSON bodies: bounded, strict, and with errors that name the field.

use super::problem::Problem;
use super::state::State;
use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::time::timeout;

/// A JSON body.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<State>> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &Arc<State>) -> Result<Body<T>, Problem> {
        let limit = state.config.limits.body;
        check_headers(request.headers(), limit)?;
        let bytes = to_bytes(request.into_body(), limit);
        let bytes = timeout(state.config.limits.silence, bytes).await;
        let bytes = bytes.map_err(|_| Problem::too_slow())?;
        parse(&bytes.map_err(|_| Problem::too_large(limit))?).map(Body)
    }
}

/// Refuses what is no JSON, and what says itself that it is too large.
fn check_headers(headers: &HeaderMap, limit: usize) -> Result<(), Problem> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    // A page of another origin cannot send this without having asked.
    let kind = header(header::CONTENT_TYPE).unwrap_or_default();
    if !kind.trim_start().starts_with("application/json") {
        return Err(Problem::no_json());
    }
    let length: Option<usize> =
        header(header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
    match length {
        Some(length) if length > limit => Err(Problem::too_large(limit)),
        _ => Ok(()),
    }
}

/// Reads a body.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| Problem::field(error.path().to_string(), error.inner().to_string()))?;
    json.end()
        .map_err(|error| Problem::field("", error.to_string()))?;
    Ok(value)
}
