//! The description of the endpoints, written from their types.

use super::routes;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tessera",
        description = "A chess engine that searches on Chessformer networks. Every number is \
                       for the side to move in the position asked about (`perspective`).",
        license(name = "GPL-3.0-or-later", identifier = "GPL-3.0-or-later"),
    ),
    paths(
        routes::agents,
        routes::choose_move,
        routes::eval,
        routes::analyse,
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

/// The endpoints in the words of OpenAPI 3.1. `src/serve/openapi.json` is a copy.
#[must_use]
pub fn openapi() -> Document {
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
