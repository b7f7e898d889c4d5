//! Liveness, readiness and metrics.

use crate::serve::metrics::CONTENT_TYPE;
use crate::serve::problem::Problem;
use crate::serve::state::AppState;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use std::sync::Arc;

/// Reports liveness: whether the process is running.
#[cfg_attr(test, utoipa::path(get, path = "/healthz", responses((status = 200, description = "The process is running", body = String))))]
pub(in crate::serve) async fn healthz() -> &'static str {
    "ok"
}

/// Reports readiness: whether the server accepts requests. It does not while networks load or while
/// the server shuts down.
#[cfg_attr(test, utoipa::path(get, path = "/readyz", responses(
    (status = 200, description = "The server accepts requests", body = String),
    (status = 503, description = "The server accepts no requests at present", body = Problem, content_type = "application/problem+json"),
)))]
pub(in crate::serve) async fn readyz(
    State(state): State<Arc<AppState>>,
) -> Result<&'static str, Problem> {
    state.check_open().map(|()| "ready")
}

/// Returns counters for Prometheus.
#[cfg_attr(test, utoipa::path(get, path = "/metrics", responses(
    (status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"),
)))]
pub(in crate::serve) async fn metrics(State(state): State<Arc<AppState>>) -> impl IntoResponse {
    let places = [
        &state.players.places,
        &state.evaluations,
        &state.judging,
        &state.reviews.places,
    ];
    let waiting = places.iter().map(|it| it.waiting()).sum();
    let text = state.metrics.text(waiting, state.players.trees());
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text)
}
