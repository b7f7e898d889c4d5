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
        description = "A chess engine that searches on Chessformer networks. All values are from \
                       the view of the side to move in the requested position (`perspective`), \
                       unless a field says otherwise.",
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
        routes::outline,
        routes::share,
        routes::judge,
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
    (StatusCode::BAD_REQUEST, "Invalid request"),
    (StatusCode::METHOD_NOT_ALLOWED, "Method not allowed"),
    (StatusCode::MISDIRECTED_REQUEST, "Wrong host"),
    (StatusCode::INTERNAL_SERVER_ERROR, "Internal error"),
];
/// The errors of endpoints that compute something or list the agents.
const GUARDED: &[(StatusCode, &str)] = &[
    (StatusCode::UNAUTHORIZED, "Token required"),
    (StatusCode::FORBIDDEN, "Cross-site request"),
    (StatusCode::TOO_MANY_REQUESTS, "Too many requests"),
    (StatusCode::SERVICE_UNAVAILABLE, "Temporarily unavailable"),
];
/// The errors of endpoints that read a body.
const WITH_BODY: &[(StatusCode, &str)] = &[
    (StatusCode::REQUEST_TIMEOUT, "The body arrives too slowly"),
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
