//! Streamed responses.

use axum::BoxError;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_stream::{Stream, StreamExt};

/// The media type of a stream of JSON objects, one per line.
pub(super) const NDJSON: &str = "application/x-ndjson";
/// The media type of an event stream.
pub(super) const EVENTS: &str = "text/event-stream";

/// The format of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Server-sent events, which browsers can read.
    Events,
    /// One line of JSON per piece.
    Lines,
}

/// The tag of a piece, which names its event.
#[derive(Deserialize)]
struct Tag<'a> {
    event: &'a str,
}

fn json(piece: &impl Serialize) -> String {
    serde_json::to_string(piece).unwrap_or_default()
}

impl Format {
    /// Returns the stream format for a media type, if it has one.
    pub(super) fn of(kind: &str) -> Option<Format> {
        match kind {
            EVENTS => Some(Format::Events),
            NDJSON => Some(Format::Lines),
            _ => None,
        }
    }

    /// Returns a response that sends these pieces. After each interval of this length without a
    /// piece, it sends a keep-alive: a comment or an empty line.
    pub(super) fn respond<P: Serialize + Send + 'static>(
        self,
        pieces: impl Stream<Item = P> + Send + 'static,
        beat: Duration,
    ) -> Response {
        match self {
            Format::Events => {
                let events = pieces.map(|piece| {
                    let json = json(&piece);
                    let name = serde_json::from_str(&json).map_or("error", |tag: Tag| tag.event);
                    Ok::<_, Infallible>(sse::Event::default().event(name).data(&json))
                });
                let events = Sse::new(events).keep_alive(KeepAlive::new().interval(beat));
                unbuffered(events.into_response())
            }
            Format::Lines => {
                let lines = pieces.map(|piece| Ok::<_, Infallible>(json(&piece) + "\n"));
                text(NDJSON, lines, beat)
            }
        }
    }
}

/// Returns a streamed text response of this type. After each interval of this length without text,
/// it sends an empty line. An error aborts the response.
pub(super) fn text<E: Into<BoxError> + 'static>(
    kind: &'static str,
    pieces: impl Stream<Item = Result<String, E>> + Send + 'static,
    beat: Duration,
) -> Response {
    let mut beats = interval_at(Instant::now() + beat, beat);
    // A slow reader gets a single keep-alive rather than all that were due.
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let pieces = pieces.timeout_repeating(beats);
    let pieces = pieces.map(|piece| piece.unwrap_or_else(|_| Ok("\n".to_owned())));
    let kind = [(header::CONTENT_TYPE, kind)];
    unbuffered((kind, Body::from_stream(pieces)).into_response())
}

/// Marks a response so that proxies forward it without buffering.
fn unbuffered(mut response: Response) -> Response {
    let no = HeaderValue::from_static("no");
    response.headers_mut().insert("x-accel-buffering", no);
    response
}
