//! `/v1/explain` and `/v1/attention`: a network's internals.

use crate::backend::Decoding;
use crate::chess::Ratings;
use crate::explain::{
    ExplainError, Settings, attend, denoise, denoising_page, explain as look_into, page,
};
use crate::player::PlayerSettings;
use crate::serve::body::Body;
use crate::serve::media::{HTML, JSON, preferred};
use crate::serve::networks::Eager;
use crate::serve::problem::Problem;
use crate::serve::request::{AttentionRequest, ExplainRequest, Look, within};
use crate::serve::state::AppState;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Html, IntoResponse, Response};
use serde::Serialize;
use serde_json::json;
use shakmaty::Position;
use std::sync::Arc;
#[cfg(test)]
use utoipa::ToSchema;

/// One head's attention.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct AttentionAnswer {
    /// The network's name.
    network: String,
    /// The reported layer, from 1.
    layer: usize,
    /// The number of layers.
    layers: usize,
    /// The reported head, from 1.
    head: usize,
    /// The number of heads per layer.
    heads: usize,
    /// For each square in the order a1, b1, … h8, the shares of its attention on all squares.
    weights: Vec<Vec<f32>>,
}

/// Explains a network's view of a position: its policy, the value after each move, attention,
/// attribution and heads. The response is JSON or, with `Accept: text/html`, a self-contained page.
/// The guide's page on `tessera explain` describes each part. A request takes several seconds.
#[cfg_attr(test, utoipa::path(post, path = "/v1/explain", request_body = ExplainRequest, responses(
    (status = 200, description = "The explanation", content(
        (serde_json::Value = "application/json"),
        (String = "text/html"),
    )),
)))]
pub(in crate::serve) async fn explain(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    Body(request): Body<ExplainRequest>,
) -> Result<Response, Problem> {
    let (look, elo, mv) = request.look(&state.config)?;
    let steps = request.steps()?;
    let wants_attention = request.wants_attention();
    let is_page = preferred(&headers, &[JSON, HTML]) == HTML;
    look_inside(&state, look, move |network, mut game| {
        if let Some(steps) = steps {
            let decoding = Decoding::step_by_step(steps);
            let denoising = denoise(network, &game, decoding)?;
            return Ok(match is_page {
                true => Html(denoising_page(&denoising)).into_response(),
                false => Json(json!({ "denoising": denoising })).into_response(),
            });
        }
        game.set_ratings(match elo {
            Some(elo) => Ratings::both(elo),
            None => PlayerSettings::default().ratings(game.position().turn()),
        });
        let settings = Settings {
            mv,
            ..Settings::default()
        };
        let mut explanation = look_into(network, &game, &settings)?;
        Ok(match is_page {
            true => Html(page(&[explanation], None).html).into_response(),
            false => {
                explanation.attention.take_if(|_| !wants_attention);
                Json(json!({ "explanation": explanation })).into_response()
            }
        })
    })
    .await
}

/// Returns one attention head's attention from each square.
#[cfg_attr(test, utoipa::path(post, path = "/v1/attention", request_body = AttentionRequest, responses(
    (status = 200, description = "The attention", body = AttentionAnswer),
)))]
pub(in crate::serve) async fn attention(
    State(state): State<Arc<AppState>>,
    Body(request): Body<AttentionRequest>,
) -> Result<Json<AttentionAnswer>, Problem> {
    let (look, layer, head) = request.look(&state.config)?;
    let (network, attention) = look_inside(&state, look, |network, game| {
        Ok((network.about.name.clone(), attend(network, &game)?))
    })
    .await?;
    let layers = attention.layers.len();
    let layer = within("layer", layer.unwrap_or(layers), 1..=layers)?;
    let maps = &attention.layers[layer - 1].weights;
    let head = within("head", head.unwrap_or(1), 1..=maps.len())?;
    Ok(Json(AttentionAnswer {
        network,
        layer,
        layers,
        head,
        heads: maps.len(),
        weights: maps[head - 1].chunks(64).map(<[f32]>::to_vec).collect(),
    }))
}

/// Reads a network's internals on a separate thread.
async fn look_inside<T: Send + 'static>(
    state: &AppState,
    look: Look,
    with: impl FnOnce(&Eager, crate::chess::Game) -> Result<T, ExplainError> + Send + 'static,
) -> Result<T, Problem> {
    let networks = state.networks()?.clone();
    networks.named(&look.network)?;
    let place = state.players.places.enter()?.await?;
    let looked = tokio::task::spawn_blocking(move || {
        let _place = place;
        let network = networks.named(&look.network)?;
        network.look_into(|network| with(network, look.game).map_err(refused))
    });
    looked.await.map_err(|_| Problem::mistake())?
}

/// Returns the problem for an explanation error.
fn refused(error: ExplainError) -> Problem {
    match error {
        ExplainError::Over(_) => Problem::field("fen", error.to_string()),
        ExplainError::Illegal => Problem::field("move", error.to_string()),
        ExplainError::NotFinite(_) => Problem::internal(error.to_string()),
        error => Problem::field("network", error.to_string()),
    }
}
