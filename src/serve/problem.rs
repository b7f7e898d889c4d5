//! Errors in the format of RFC 9457: `application/problem+json`.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::time::Duration;
#[cfg(test)]
use utoipa::ToSchema;

/// The problem with a request.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ToSchema))]
pub(super) struct Problem {
    /// The problem type, as a reference.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The problem type, in words.
    title: &'static str,
    /// The status code of the response.
    status: u16,
    /// The problem and its remedy.
    pub(super) detail: String,
    /// The invalid field of the request, as in `limits.nodes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip)]
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Returns the type of the problems with this status, as a reference and in words.
fn kind_of(status: StatusCode) -> (&'static str, &'static str) {
    match status {
        StatusCode::BAD_REQUEST => ("/problems/bad-request", "Invalid request"),
        StatusCode::MISDIRECTED_REQUEST => ("/problems/misdirected", "Wrong host"),
        StatusCode::FORBIDDEN => ("/problems/cross-site", "Cross-site request"),
        StatusCode::PAYLOAD_TOO_LARGE => ("/problems/too-large", "The body is too large"),
        StatusCode::REQUEST_TIMEOUT => ("/problems/too-slow", "The body arrives too slowly"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ("/problems/no-json", "The body is not JSON"),
        StatusCode::NOT_FOUND => ("/problems/not-found", "Not found"),
        StatusCode::METHOD_NOT_ALLOWED => ("/problems/wrong-method", "Method not allowed"),
        StatusCode::UNAUTHORIZED => ("/problems/unauthorised", "Token required"),
        StatusCode::TOO_MANY_REQUESTS => ("/problems/too-many-requests", "Too many requests"),
        StatusCode::SERVICE_UNAVAILABLE => ("/problems/unavailable", "Temporarily unavailable"),
        StatusCode::INSUFFICIENT_STORAGE => ("/problems/full", "No room left"),
        _ => ("/problems/internal", "Internal error"),
    }
}

impl Problem {
    fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        let (kind, title) = kind_of(status);
        Problem {
            kind,
            title,
            status: status.as_u16(),
            detail: detail.into(),
            field: None,
            headers: Vec::new(),
        }
    }

    /// Returns the problem for a field with an invalid value.
    pub(super) fn field(field: impl Into<String>, detail: impl Into<String>) -> Problem {
        let field = field.into();
        Problem {
            field: Some(field).filter(|field| !field.is_empty() && field != "."),
            ..Problem::new(StatusCode::BAD_REQUEST, detail)
        }
    }

    /// Returns the problem for a request for the judge of a server without one.
    pub(super) fn no_judge(field: &str) -> Problem {
        let detail = "this server has no judge: install Stockfish, or start the server with \
                      `--judge` and a UCI engine";
        Problem::field(field, detail)
    }

    /// Returns the problem for a request that does not name its host.
    pub(super) fn wrong_host() -> Problem {
        let detail = "send one header `Host` with the name and port of this server";
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Returns the problem for a request for another host.
    pub(super) fn misdirected(host: &str) -> Problem {
        let detail = format!(
            "this server does not answer for `{host}`; if it should, start it with `--host {host}`"
        );
        Problem::new(StatusCode::MISDIRECTED_REQUEST, detail)
    }

    /// Returns the problem for a request from another site's page.
    pub(super) fn cross_site() -> Problem {
        let detail = "a page of another site may send requests only if the server was started with `--origin` \
             and that site's origin";
        Problem::new(StatusCode::FORBIDDEN, detail)
    }

    /// Returns the problem for a body that is framed incorrectly or ends too early.
    pub(super) fn broken() -> Problem {
        let detail = "the body is cut off, or its chunks are not framed as HTTP requires";
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(super) fn too_large(limit: usize) -> Problem {
        let detail = format!("a body may have at most {limit} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    }

    pub(super) fn too_slow() -> Problem {
        Problem::new(StatusCode::REQUEST_TIMEOUT, "send the whole body at once")
    }

    pub(super) fn no_json() -> Problem {
        let detail = "send the header `Content-Type: application/json`";
        Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
    }

    pub(super) fn not_found() -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "/openapi.json lists the endpoints")
    }

    /// Returns the problem for a link or a review that a server without shared reviews should share.
    pub(super) fn not_shared() -> Problem {
        let detail = "this server shares no reviews: start it with `--share-in` and a folder";
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    pub(super) fn wrong_method() -> Problem {
        Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "/openapi.json lists the methods of each endpoint",
        )
    }

    pub(super) fn unauthorised() -> Problem {
        let detail = "send the header `Authorization: Bearer TOKEN` with a token of this server";
        let bearer = HeaderValue::from_static("Bearer");
        Problem::new(StatusCode::UNAUTHORIZED, detail).with(header::WWW_AUTHENTICATE, bearer)
    }

    pub(super) fn too_many(detail: impl Into<String>, wait: Duration) -> Problem {
        Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).after(wait)
    }

    pub(super) fn unavailable(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).after(Duration::from_secs(1))
    }

    /// Returns the problem for something for which there is no room until `wait` has passed.
    pub(super) fn full(detail: impl Into<String>, wait: Duration) -> Problem {
        Problem::new(StatusCode::INSUFFICIENT_STORAGE, detail).after(wait)
    }

    /// Returns the problem for a failing device.
    pub(super) fn internal(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    /// Returns the problem for a bug in the program.
    pub(super) fn mistake() -> Problem {
        Problem::internal("a mistake in the program; please report it")
    }

    pub(super) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn after(self, wait: Duration) -> Problem {
        let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
        self.with(header::RETRY_AFTER, seconds.into())
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Problem {
        self.headers.push((name, value));
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status(), body).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        headers.extend(self.headers);
        response
    }
}
