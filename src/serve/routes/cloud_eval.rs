//! `/api/cloud-eval`: an analysis in the format of Lichess's cloud evaluations. Scores are from
//! White's view, and castling is written as the king taking its rook.

use crate::chess::Game;
use crate::play::{Report, WrittenScore};
use crate::serve::access::Client;
use crate::serve::problem::Problem;
use crate::serve::request::analysis;
use crate::serve::state::AppState;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use shakmaty::{CastlingMode, Position};
use std::sync::Arc;
#[cfg(test)]
use utoipa::{IntoParams, ToSchema};

/// Default number of nodes of an analysis.
const NODES: u64 = 1000;

/// The query.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(IntoParams))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, into_params(parameter_in = Query))]
pub(in crate::serve) struct CloudQuery {
    /// The position.
    fen: String,
    /// Number of lines to return; 1 if absent.
    #[cfg_attr(test, param(required = false))]
    multi_pv: Option<usize>,
    /// `standard`, `chess960` or `fromPosition`.
    #[cfg_attr(test, param(required = false))]
    variant: Option<String>,
}

/// A line.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct CloudLine {
    /// The moves in UCI notation, separated by spaces.
    moves: String,
    /// Centipawns, from White's view.
    #[serde(skip_serializing_if = "Option::is_none")]
    cp: Option<i32>,
    /// Mate in N moves; negative if White is mated.
    #[serde(skip_serializing_if = "Option::is_none")]
    mate: Option<i32>,
}

/// An analysis in Lichess's cloud format.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct CloudEval {
    fen: String,
    /// Number of nodes, in thousands.
    knodes: u64,
    depth: u32,
    pvs: Vec<CloudLine>,
}

/// An error in Lichess's format.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(in crate::serve) struct CloudError {
    error: String,
}

/// Analyses a position in the format of the Lichess endpoint `GET /api/cloud-eval`.
#[cfg_attr(test, utoipa::path(get, path = "/api/cloud-eval", params(CloudQuery), responses(
    (status = 200, description = "The analysis, from White's view", body = CloudEval),
    (status = 400, description = "The position or the query cannot be read", content(
        (CloudError = "application/json"),
        (Problem = "application/problem+json"),
    )),
    (status = 404, description = "No analysis for this variant or position", body = CloudError),
)))]
pub(in crate::serve) async fn cloud_eval(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    query: Result<Query<CloudQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let query = match query {
        Ok(Query(query)) => query,
        Err(reason) => return Ok(error(StatusCode::BAD_REQUEST, &reason.body_text())),
    };
    let variant = query.variant.as_deref().unwrap_or("standard");
    if !["standard", "chess960", "fromPosition"].contains(&variant) {
        return Ok(error(
            StatusCode::NOT_FOUND,
            "this variant has no evaluations",
        ));
    }
    // Lichess writes castling this way in every game.
    let game = match Game::from_fen(&query.fen, CastlingMode::Chess960) {
        Ok(game) => game,
        Err(reason) => return Ok(error(StatusCode::BAD_REQUEST, &reason.to_string())),
    };
    if game.position().legal_moves().is_empty() {
        return Ok(error(StatusCode::NOT_FOUND, "the game is over"));
    }
    let lines = query
        .multi_pv
        .unwrap_or(1)
        .clamp(1, state.config.limits.lines);
    let question = analysis(&state.config, game.clone(), lines, NODES);
    let report = state.answer(client, question).await?.choice.report;
    Ok(Json(CloudEval::of(query.fen, &report, &game)).into_response())
}

fn error(status: StatusCode, error: &str) -> Response {
    let error = error.to_owned();
    (status, Json(CloudError { error })).into_response()
}

impl CloudEval {
    fn of(fen: String, report: &Report, game: &Game) -> CloudEval {
        let sign = game.position().turn().fold_wb(1, -1);
        let lines = report.lines.iter().map(|line| {
            let (cp, mate) = match line.score.into() {
                WrittenScore::Centipawns(score) => (Some(sign * score), None),
                WrittenScore::Mate(moves) => (None, Some(sign * moves)),
            };
            let moves: Vec<_> = line.moves.iter().map(|&mv| game.format_move(mv)).collect();
            CloudLine {
                moves: moves.join(" "),
                cp,
                mate,
            }
        });
        CloudEval {
            fen,
            knodes: report.nodes.div_ceil(1000),
            depth: report.depth,
            pvs: lines.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::{Line, Score, centipawns};

    #[test]
    fn scores_are_whites_and_those_of_tablebases_beyond_all_others() {
        let fen = "7k/8/8/8/8/8/1R6/K7 b - - 0 1";
        let game = Game::from_fen(fen, CastlingMode::Chess960).unwrap();
        let moves = vec![game.position().legal_moves()[0]];
        let line = |score| Line {
            score,
            wdl: [0.0, 0.0, 1.0],
            moves_left: None,
            moves: moves.clone(),
        };
        let scores = [
            Score::Expected(-1.0),
            Score::Tablebase { won: false },
            Score::Mate(-9),
        ];
        let report = Report {
            lines: scores.map(line).to_vec(),
            ..Report::default()
        };
        let told = CloudEval::of(fen.to_owned(), &report, &game).pvs;
        let told: Vec<_> = told.iter().map(|line| (line.cp, line.mate)).collect();
        let won = centipawns(1.0);
        let expected = [(Some(won), None), (Some(20_000), None), (None, Some(9))];
        assert_eq!(told, expected);
    }
}
