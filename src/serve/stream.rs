//! Answers that come piece by piece, as the client takes them.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::convert::Infallible;
use tokio_stream::{Stream, StreamExt};

/// The type of a stream of JSON, one object a line.
pub(super) const NDJSON: &str = "application/x-ndjson";
/// The type of a stream of events.
pub(super) const EVENTS: &str = "text/event-stream";

/// How a stream is written.
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

/// What the client says that it takes.
pub(super) fn accepted(headers: &HeaderMap) -> &str {
    let accept = headers.get(header::ACCEPT);
    accept.and_then(|value| value.to_str().ok()).unwrap_or("")
}

impl Format {
    /// The format that a client takes, if it takes any.
    pub(super) fn of(headers: &HeaderMap) -> Option<Format> {
        let accepted = accepted(headers);
        [(EVENTS, Format::Events), (NDJSON, Format::Lines)]
            .into_iter()
            .find_map(|(kind, format)| accepted.contains(kind).then_some(format))
    }

    /// The response that tells these pieces.
    pub(super) fn respond<P: Piece + Send + 'static>(
        self,
        pieces: impl Stream<Item = P> + Send + 'static,
    ) -> Response {
        match self {
            Format::Events => {
                let events = pieces.map(|piece| {
                    let event = sse::Event::default().event(piece.name());
                    Ok::<_, Infallible>(event.data(piece.json()))
                });
                let events = Sse::new(events).keep_alive(KeepAlive::default());
                events.into_response()
            }
            Format::Lines => text(NDJSON, pieces.map(|piece| piece.json() + "\n")),
        }
    }
}

/// A response of a type whose text comes piece by piece.
pub(super) fn text(
    kind: &'static str,
    pieces: impl Stream<Item = String> + Send + 'static,
) -> Response {
    let pieces = pieces.map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
    let kind = [(header::CONTENT_TYPE, kind)];
    (kind, Body::from_stream(pieces)).into_response()
}
