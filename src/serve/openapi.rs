//! The description of the endpoints, generated from their types. It must equal `openapi.json`,
//! which the server returns.

use super::problem::Problem;
use super::routes;
use axum::http::StatusCode;
use utoipa::openapi::{Content, OpenApi as Document, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{Modify, OpenApi};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tessera",
        description = "A chess engine that searches on Chessformer networks. Every number is \
                       for the side to move in the position asked about (`perspective`).",
        license(name = "GPL-3.0-or-later", identifier = "GPL-3.0-or-later"),
    ),
    modifiers(&Problems),
    components(schemas(Problem)),
    paths(
        routes::agents,
        routes::choose_move,
        routes::eval,
        routes::people,
        routes::analyse,
        routes::review,
        routes::generate,
        routes::explain,
        routes::attention,
        routes::cloud_eval,
        routes::healthz,
        routes::readyz,
        routes::metrics,
    )
)]
struct Api;

/// Adds the error responses to each endpoint.
struct Problems;

/// The errors of every endpoint.
const ALWAYS: &[(StatusCode, &str)] = &[
    (StatusCode::BAD_REQUEST, "The request is wrong"),
    (StatusCode::METHOD_NOT_ALLOWED, "Another method is meant"),
    (StatusCode::MISDIRECTED_REQUEST, "Another host is meant"),
    (StatusCode::INTERNAL_SERVER_ERROR, "The server failed"),
];
/// The errors of endpoints that compute something or list the agents.
const GUARDED: &[(StatusCode, &str)] = &[
    (StatusCode::UNAUTHORIZED, "A token is needed"),
    (StatusCode::FORBIDDEN, "A page of another site asks"),
    (StatusCode::TOO_MANY_REQUESTS, "Too many requests"),
    (StatusCode::SERVICE_UNAVAILABLE, "Not at present"),
];
/// The errors of endpoints that read a body.
const WITH_BODY: &[(StatusCode, &str)] = &[
    (StatusCode::REQUEST_TIMEOUT, "The body does not come"),
    (StatusCode::PAYLOAD_TOO_LARGE, "The body is too large"),
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not JSON"),
];

impl Modify for Problems {
    fn modify(&self, document: &mut Document) {
        for (path, item) in &mut document.paths.paths {
            let is_guarded = path.starts_with("/v1/") || path.starts_with("/api/");
            for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
                let mut add = |problems: &[(StatusCode, &str)]| {
                    let responses = &mut operation.responses.responses;
                    for (status, description) in problems {
                        let known = responses.entry(status.as_u16().to_string());
                        known.or_insert_with(|| problem(description));
                    }
                };
                add(ALWAYS);
                if is_guarded {
                    add(GUARDED);
                }
                if operation.request_body.is_some() {
                    add(WITH_BODY);
                }
            }
        }
    }
}

fn problem(description: &str) -> RefOr<Response> {
    let problem = Content::new(Some(Ref::from_schema_name("Problem")));
    let response = ResponseBuilder::new().description(description);
    response.content("application/problem+json", problem).into()
}

/// Returns the endpoints' description in OpenAPI 3.1.
#[must_use]
pub(super) fn openapi() -> Document {
    Api::openapi()
}

#[cfg(test)]
mod tests {
    use super::openapi;

    #[test]
    fn the_copy_is_what_the_types_say() {
        let written = openapi().to_pretty_json().unwrap() + "\n";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/openapi.json");
        if std::env::var_os("WRITE_OPENAPI").is_some() {
            std::fs::write(&path, &written).unwrap();
        }
        let copy = std::fs::read_to_string(path).unwrap();
        assert_eq!(copy, written, "WRITE_OPENAPI=1 renews the copy");
    }
}
