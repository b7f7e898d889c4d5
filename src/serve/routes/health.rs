//! Whether the server lives and can be asked, and what it has done.

use crate::serve::metrics::CONTENT_TYPE;
use crate::serve::problem::Problem;
use crate::serve::state::State;
use axum::extract::State as Shared;
use axum::http::header;
use axum::response::IntoResponse;
use std::sync::Arc;

/// Whether the process lives.
#[cfg_attr(test, utoipa::path(get, path = "/healthz", responses((status = 200, description = "It does", body = String))))]
pub(in crate::serve) async fn healthz() -> &'static str {
    "ok"
}

/// Whether requests are taken: not while the network is loaded, nor at the end.
#[cfg_attr(test, utoipa::path(get, path = "/readyz", responses(
    (status = 200, description = "They are", body = String),
    (status = 503, description = "Not at present", body = Problem, content_type = "application/problem+json"),
)))]
pub(in crate::serve) async fn readyz(
    Shared(state): Shared<Arc<State>>,
) -> Result<&'static str, Problem> {
    state.check_open().map(|()| "ready")
}

/// Counters for Prometheus.
#[cfg_attr(test, utoipa::path(get, path = "/metrics", responses(
    (status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"),
)))]
pub(in crate::serve) async fn metrics(Shared(state): Shared<Arc<State>>) -> impl IntoResponse {
    let waiting = state.players.places.waiting() + state.evaluations.waiting();
    let text = state.metrics.text(waiting, state.players.trees());
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text)
}
