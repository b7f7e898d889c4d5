//! The web page, its built-in board, and the API documentation. None of them load anything from
//! other sites.

use super::problem::Problem;
use super::state::State;
use crate::chess::fen;
use crate::openings::named_openings;
use crate::review::{PARTS_MODULE, PARTS_STYLE};
use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, LazyLock};

/// The files of chessground and chessops that tools/setup downloaded: names and contents.
const BOARD: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/board.rs"));

const PAGE: &str = include_str!("page/index.html");
const NO_BOARD: &str = include_str!("page/no_board.html");
const DOCUMENTATION: &str = include_str!("page/docs.html");

/// Expands to our own files, with their names.
macro_rules! files {
    ($($name:literal)*) => { &[$(($name, include_bytes!(concat!("page/", $name)))),*] };
}
const FILES: &[(&str, &[u8])] = files! {
    "address.js" "analyse.js" "api.js" "board.css" "board.js" "chart.js" "clock.js" "compare.js"
    "docs.js" "dom.js" "editor.js" "evalbar.js" "explain.js" "fen.js" "game.js" "generate.js"
    "illegal.js" "imagine.js" "lines.js" "main.js" "movelist.js" "openings.js" "opponents.js"
    "people.js" "play.js" "played.js" "promotion.js" "rating.js" "review.css" "review.js"
    "review_games.js" "review_retry.js" "review_view.js" "score.js" "settings.js" "setup.js"
    "sound.js" "store.js" "study.js" "style.css" "tree.js" "typed.js"
};
/// The parts of the review page that the web page shares.
const REVIEW: &[(&str, &[u8])] = &[
    ("review_parts.css", PARTS_STYLE.as_bytes()),
    ("review_parts.js", PARTS_MODULE.as_bytes()),
];

/// Our own pieces, as SVG symbols.
const PIECES: &str = include_str!("../explain/pieces.svg");
const SVG: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "image/svg+xml")];

/// The page's content security policy, which allows only this server's files, and images inlined in
/// styles.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns whether the board was available when the program was built.
pub(super) fn has_board() -> bool {
    !BOARD.is_empty()
}

/// The names of openings by the first four fields of their FEN, as gzipped JSON, which every
/// browser can read.
static OPENINGS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let named = named_openings().into_iter().map(|(opening, game)| {
        let fields = fen(game.position());
        let fields: Vec<&str> = fields.split(' ').take(4).collect();
        (
            fields.join(" "),
            format!("{} {}", opening.eco, opening.name),
        )
    });
    let json = serde_json::to_vec(&named.collect::<BTreeMap<_, _>>());
    let packed = json.map_err(io::Error::from).and_then(|json| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&json)?;
        encoder.finish()
    });
    packed.unwrap_or_default()
});

pub(super) fn router() -> Router<Arc<State>> {
    Router::new()
        .route(
            "/",
            get(async || page(if has_board() { PAGE } else { NO_BOARD })),
        )
        .route("/docs", get(async || page(DOCUMENTATION)))
        .route("/page/openings.json", get(openings))
        .route(
            "/page/pieces.svg",
            get(async || guarded((SVG, PIECES).into_response())),
        )
        .route(
            "/page/{name}",
            get(async |name: Name| file(&[FILES, REVIEW], name)),
        )
        .route(
            "/board/{*name}",
            get(async |name: Name| file(&[BOARD], name)),
        )
}

fn page(html: &'static str) -> Response {
    guarded(Html(html).into_response())
}

async fn openings() -> Response {
    let packed = tokio::task::spawn_blocking(|| OPENINGS.as_slice()).await;
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CONTENT_ENCODING, "gzip"),
    ];
    guarded((headers, packed.unwrap_or_default()).into_response())
}

/// A file name in a URL, if it is valid text.
type Name = Result<Path<String>, PathRejection>;

fn file(files: &[&'static [(&'static str, &'static [u8])]], name: Name) -> Response {
    let name = name.map_or_else(|_| String::new(), |Path(name)| name);
    let mut files = files.iter().copied().flatten();
    let Some(&(_, bytes)) = files.find(|(known, _)| *known == name) else {
        return Problem::not_found().into_response();
    };
    let kind = match name.ends_with(".css") {
        true => "text/css; charset=utf-8",
        false => "text/javascript; charset=utf-8",
    };
    guarded(([(header::CONTENT_TYPE, kind)], bytes).into_response())
}

fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // Another program may use this address tomorrow.
        (header::CACHE_CONTROL, "no-cache"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let texts = [PAGE, NO_BOARD, DOCUMENTATION].map(str::as_bytes);
        let files = FILES.iter().chain(REVIEW).map(|&(_, bytes)| bytes);
        for bytes in texts.into_iter().chain(files) {
            let text = std::str::from_utf8(bytes).unwrap();
            // The SVG namespace is a name, not an address.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            // Images inlined in a style are not loaded.
            let text = text.replace("url(\"${image}\")", "");
            for foreign in ["http://", "https://", "src=\"//", "@import", "url("] {
                assert!(!text.contains(foreign), "{foreign}: {text}");
            }
        }
    }

    /// Every file that the page's modules import exists.
    #[test]
    fn every_import_is_built_in() {
        let files = || FILES.iter().chain(REVIEW);
        for &(name, bytes) in files().filter(|(name, _)| name.ends_with(".js")) {
            let text = std::str::from_utf8(bytes).unwrap();
            let imports = text.lines().filter(|line| line.starts_with("import "));
            for line in imports {
                let from = line.split('"').nth(1).unwrap();
                let is_own = files().any(|(own, _)| from == format!("./{own}"));
                let is_board = from.starts_with("/board/");
                assert!(is_own || is_board, "{name}: {line}");
            }
        }
    }
}
