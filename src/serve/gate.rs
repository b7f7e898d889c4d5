//! Middleware for every request: admission and logging.

use super::access::check_site;
use super::problem::Problem;
use super::state::AppState;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Admits a request if its client may send one now, and records the client.
pub(super) async fn admit(
    State(state): State<Arc<AppState>>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    check_site(request.headers(), &state.config.origins)?;
    let client = state.access.client(request.headers(), address)?;
    state.access.check_rate(&client)?;
    state.check_open()?;
    request.extensions_mut().insert(client);
    Ok(next.run(request).await)
}

/// Admits a request only if it is for one of this server's hosts.
pub(super) async fn own_hosts(
    State(state): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    state.hosts.check(&request)?;
    Ok(next.run(request).await)
}

/// Counts and logs a request.
pub(super) async fn observe(
    State(state): State<Arc<AppState>>,
    path: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let response = next.run(request).await;
    let path = path.as_ref().map_or("other", |path| path.as_str());
    let (status, took) = (response.status().as_u16(), began.elapsed());
    state.metrics.count(path, status, took);
    tracing::info!(
        "{method} {path} {status} in {:.1} ms",
        took.as_secs_f64() * 1e3
    );
    response
}
