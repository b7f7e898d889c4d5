//! Answers that come piece by piece, as the client takes them.

use axum::BoxError;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_stream::{Stream, StreamExt};

/// The type of a stream of JSON, one object a line.
pub(super) const NDJSON: &str = "application/x-ndjson";
/// The type of a stream of events.
pub(super) const EVENTS: &str = "text/event-stream";

/// The format of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Events as browsers read them.
    Events,
    /// A line of JSON for each piece.
    Lines,
}

/// A piece of a stream.
pub(super) trait Piece: Serialize {
    /// The name of its event.
    fn name(&self) -> &'static str;

    /// Itself as JSON.
    fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Format {
    /// The format of a type, if it is one of a stream.
    pub(super) fn of(kind: &str) -> Option<Format> {
        match kind {
            EVENTS => Some(Format::Events),
            NDJSON => Some(Format::Lines),
            _ => None,
        }
    }

    /// The response that tells these pieces, and after each such time without one that
    /// it is still there: by a comment, or by an empty line.
    pub(super) fn respond<P: Piece + Send + 'static>(
        self,
        pieces: impl Stream<Item = P> + Send + 'static,
        beat: Duration,
    ) -> Response {
        match self {
            Format::Events => {
                let events = pieces.map(|piece| {
                    let event = sse::Event::default().event(piece.name());
                    Ok::<_, Infallible>(event.data(piece.json()))
                });
                let events = Sse::new(events).keep_alive(KeepAlive::new().interval(beat));
                unbuffered(events.into_response())
            }
            Format::Lines => {
                let lines = pieces.map(|piece| Ok::<_, Infallible>(piece.json() + "\n"));
                text(NDJSON, lines, beat)
            }
        }
    }
}

/// A response of a type whose text comes piece by piece, with an empty line after each such
/// time without one. An error breaks it off.
pub(super) fn text<E: Into<BoxError> + 'static>(
    kind: &'static str,
    pieces: impl Stream<Item = Result<String, E>> + Send + 'static,
    beat: Duration,
) -> Response {
    let mut beats = interval_at(Instant::now() + beat, beat);
    // A slow reader gets one report, not all that were due.
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let pieces = pieces.timeout_repeating(beats);
    let pieces = pieces.map(|piece| piece.unwrap_or_else(|_| Ok("\n".to_owned())));
    let kind = [(header::CONTENT_TYPE, kind)];
    unbuffered((kind, Body::from_stream(pieces)).into_response())
}

/// A response that proxies hand on as it comes.
fn unbuffered(mut response: Response) -> Response {
    let no = HeaderValue::from_static("no");
    response.headers_mut().insert("x-accel-buffering", no);
    response
}
