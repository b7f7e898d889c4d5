//! The endpoints.

mod agents;
pub(super) mod analyse;
mod cloud_eval;
mod eval;
mod explain;
mod generate;
mod health;
mod judge;
mod moves;
mod people;
mod review;
mod share;

pub(super) use agents::*;
pub(super) use analyse::*;
pub(super) use cloud_eval::*;
pub(super) use eval::*;
pub(super) use explain::*;
pub(super) use generate::*;
pub(super) use health::*;
pub(super) use judge::*;
pub(super) use moves::*;
pub(super) use people::*;
pub(super) use review::*;
pub(super) use share::*;

use super::gate::{admit, observe, own_hosts};
use super::origins::Origin;
use super::page;
use super::problem::Problem;
use super::state::AppState;
use axum::Router;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use std::sync::Arc;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::CorsLayer;

const JSON: [(HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];
/// The OpenAPI description of the endpoints. A test compares it with their types.
const OPENAPI: &str = include_str!("openapi.json");

pub(super) fn router(state: Arc<AppState>) -> Router {
    let guarded = Router::new()
        .route("/v1/agents", get(agents))
        .route("/v1/move", post(choose_move))
        .route("/v1/eval", post(eval))
        .route("/v1/people", post(people))
        .route("/v1/analyse", post(analyse))
        .route("/v1/generate", post(generate))
        .route("/v1/review", post(review))
        .route("/v1/review/outline", post(outline))
        .route("/v1/review/share", post(share))
        .route("/v1/judge", post(judge))
        .route("/v1/explain", post(explain))
        .route("/v1/attention", post(attention))
        .route("/api/cloud-eval", get(cloud_eval))
        .layer(from_fn_with_state(state.clone(), admit));
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(async || (JSON, OPENAPI)))
        .route("/shared/{name}", get(shared))
        .merge(page::router())
        .merge(guarded)
        .fallback(async || Problem::not_found())
        .method_not_allowed_fallback(async || Problem::wrong_method())
        .layer(CatchPanicLayer::custom(panicked))
        .layer(cors(&state.config.origins))
        .layer(from_fn_with_state(state.clone(), own_hosts))
        .layer(from_fn_with_state(state.clone(), observe))
        .with_state(state)
}

/// Allows requests from pages of these origins.
fn cors(origins: &[Origin]) -> CorsLayer {
    let origins = origins.iter().map(|origin| origin.header().clone());
    CorsLayer::new()
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([header::CONTENT_TYPE, header::ACCEPT, header::AUTHORIZATION])
        .allow_origin(origins.collect::<Vec<HeaderValue>>())
}

fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let message = crate::panics::message(panic.as_ref());
    tracing::error!("a request panicked: {message}");
    Problem::mistake().into_response()
}
