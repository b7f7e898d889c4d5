//! The web page, its built-in board and Stockfish, and the API documentation. None of them load
//! anything from other sites.

use super::position::Written;
use super::problem::Problem;
use super::state::AppState;
use crate::openings::named_opening;
use crate::review::{PARTS_MODULE, PARTS_STYLE};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// The files of chessground and chessops that tools/setup downloaded: names and contents.
const BOARD: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/board.rs"));

/// The files of Stockfish compiled to WebAssembly, if tools/setup downloaded them.
const STOCKFISH: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/stockfish.rs"));

const PAGE: &str = include_str!("page/index.html");
const DOCUMENTATION: &str = include_str!("page/docs.html");
/// The message of a server without a board.
const NO_BOARD: &str = "  <p>The server runs, but this program was built without the board of its page. To have it, \
     install npm, run\n  <code>tools/setup</code>, and build again.</p>\n  <p>Programs can ask the server all the same: \
     see <a href=\"/docs\">the API</a>.</p>";

/// Expands to our own files, with their names.
macro_rules! files {
    ($($name:literal)*) => { &[$(($name, include_bytes!(concat!("page/", $name)))),*] };
}
const FILES: &[(&str, &[u8])] = files! {
    "address.js" "analyse.js" "analyses.js" "api.js" "beside.js" "board.css" "board.js" "chart.js" "clock.js"
    "compare.js" "docs.js" "dom.js" "draw.js" "editor.js" "evalbar.js" "explain.js" "fen.js" "fields.js" "files.js"
    "game.js" "generate.js" "illegal.js" "imagine.js" "judges.js" "judging.js" "kept.js" "lines.js" "main.js"
    "material.js" "messages.js" "messages_de.js" "messages_es.js" "messages_fr.js" "mistakes.js" "movelist.js"
    "notation.js" "openings.js" "opponents.js" "people.js" "pgn.js" "play.js" "played.js" "practice.js"
    "promotion.js" "rating.js" "review.css" "review.js" "review_games.js" "review_judged.js" "review_retry.js"
    "review_share.js" "review_view.js" "score.js" "settings.js" "setup.js" "sound.js" "stockfish.js" "store.js"
    "study.js" "style.css" "tree.js" "typed.js"
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

/// The policy of Stockfish's worker, which may also compile WebAssembly.
const WORKER_POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'";

/// Returns whether the board was available when the program was built.
pub(super) fn has_board() -> bool {
    !BOARD.is_empty()
}

/// A game whose opening the page asks for.
#[derive(Deserialize)]
struct Played {
    fen: Option<String>,
    /// The moves in UCI notation, separated by blanks.
    moves: String,
}

/// An opening's name as the page shows it.
#[derive(Serialize)]
struct Named {
    /// The ECO code and the name; `None` if the game has reached no named position.
    name: Option<String>,
}

pub(super) fn router() -> Router<Arc<AppState>> {
    Router::new()
        .route(
            "/",
            get(async || {
                if has_board() {
                    page(PAGE)
                } else {
                    message("Tessera", NO_BOARD)
                }
            }),
        )
        .route("/docs", get(async || page(DOCUMENTATION)))
        .route("/page/opening", get(opening))
        .route("/page/stockfish.json", get(stockfish))
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
        .route("/stockfish/{name}", get(stockfish_file))
}

fn page(html: &'static str) -> Response {
    guarded(Html(html).into_response())
}

/// Returns a page that only says something, in HTML.
pub(super) fn message(title: &str, message: &str) -> Response {
    let page = format!(
        include_str!("page/message.html"),
        title = title,
        message = message
    );
    guarded(Html(page).into_response())
}

async fn opening(
    State(state): State<Arc<AppState>>,
    query: Result<Query<Played>, QueryRejection>,
) -> Response {
    let Ok(Query(Played { fen, moves })) = query else {
        return Problem::not_found().into_response();
    };
    let moves: Vec<String> = moves.split_ascii_whitespace().map(str::to_owned).collect();
    let written = Written {
        fen: fen.as_deref(),
        moves: &moves,
        chess960: false,
    };
    let named = written.game(state.config.limits.moves).map(|game| Named {
        name: named_opening(&game).map(|(opening, _)| format!("{} {}", opening.eco, opening.name)),
    });
    guarded(named.map(Json).into_response())
}

/// Returns the path of the script that runs Stockfish in a worker, if it is built in.
async fn stockfish() -> Response {
    let mut names = STOCKFISH.iter().map(|(name, _)| name);
    let script = names.find(|name| name.ends_with(".js"));
    let script = script.map(|name| format!("/stockfish/{name}"));
    guarded(Json(json!({ "script": script })).into_response())
}

/// Returns a file of Stockfish, whose name contains the version.
async fn stockfish_file(name: Name) -> Response {
    let mut response = file(&[STOCKFISH], name);
    if response.status().is_success() {
        let policy = HeaderValue::from_static(WORKER_POLICY);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        let forever = HeaderValue::from_static("max-age=31536000, immutable");
        headers.insert(header::CACHE_CONTROL, forever);
    }
    response
}

/// A file name in a URL, if it is valid text.
type Name = Result<Path<String>, PathRejection>;

fn file(files: &[&'static [(&'static str, &'static [u8])]], name: Name) -> Response {
    let name = name.map_or_else(|_| String::new(), |Path(name)| name);
    let mut files = files.iter().copied().flatten();
    let Some(&(_, bytes)) = files.find(|(known, _)| *known == name) else {
        return Problem::not_found().into_response();
    };
    let kind = match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "wasm")) => "application/wasm",
        _ => "text/javascript; charset=utf-8",
    };
    guarded(([(header::CONTENT_TYPE, kind)], bytes).into_response())
}

/// Adds the headers of every file of the page to a response.
pub(super) fn guarded(mut response: Response) -> Response {
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
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let texts = [PAGE, include_str!("page/message.html"), DOCUMENTATION].map(str::as_bytes);
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

    /// Returns the messages that a module passes to `t` and `message`.
    fn messages_of(module: &str) -> impl Iterator<Item = String> {
        let calls = ["t(\"", "message(\""].into_iter().flat_map(|call| {
            let places = module.match_indices(call);
            places.map(|(at, _)| (&module[..at], &module[at + call.len() - 1..]))
        });
        calls.filter_map(|(before, given)| {
            if before.ends_with(|it: char| it.is_alphanumeric() || "_.$".contains(it)) {
                return None;
            }
            let mut values = serde_json::Deserializer::from_str(given).into_iter::<String>();
            Some(values.next().unwrap().unwrap())
        })
    }

    /// Returns the messages in the document's texts and attributes.
    fn messages_in(html: &str) -> impl Iterator<Item = String> {
        let (_, body) = html.split_once("<body>").unwrap();
        let pieces = body.split('<').skip(1);
        let pieces = pieces.map(|piece| piece.split_once('>').unwrap());
        let translated = pieces.filter(|(tag, _)| !tag.contains("translate=\"no\""));
        translated.flat_map(|(tag, text)| {
            let attribute = |name: &str| {
                let (_, value) = tag.split_once(&format!(" {name}=\""))?;
                Some(value.split_once('"').unwrap().0)
            };
            let note = attribute("data-about").map_or_else(String::new, |it| format!("|{it}"));
            let attributes = ["aria-label", "title", "placeholder"].map(attribute);
            let texts = attributes.into_iter().flatten().chain([text]);
            let texts = texts.filter(|text| text.contains(char::is_alphabetic));
            let bare = texts.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
            bare.map(|text| text + &note).collect::<Vec<_>>()
        })
    }

    /// Returns the names in braces, in alphabetical order.
    fn values_in(message: &str) -> Vec<&str> {
        let pieces = message.split('{').skip(1);
        let mut names: Vec<_> = pieces
            .map(|piece| piece.split_once('}').unwrap().0)
            .collect();
        names.sort_unstable();
        names
    }

    /// No language misses a message of the page, or has one that the page does not use.
    #[test]
    fn every_language_has_every_message() {
        let modules = FILES
            .iter()
            .chain(REVIEW)
            .filter(|(name, _)| name.ends_with(".js") && *name != "docs.js");
        let texts = modules.map(|&(name, bytes)| (name, std::str::from_utf8(bytes).unwrap()));
        let (languages, modules): (Vec<_>, Vec<_>) =
            texts.partition(|(name, _)| name.starts_with("messages_"));
        let messages: BTreeSet<String> = modules
            .iter()
            .flat_map(|(_, text)| messages_of(text))
            .chain(messages_in(PAGE))
            .collect();
        for (name, text) in &modules {
            assert!(
                !text.contains("confirmed(\""),
                "{name}: an untranslated question"
            );
        }
        assert_eq!(languages.len(), 3);
        for (name, text) in languages {
            let table = &text[text.find('{').unwrap()..=text.rfind('}').unwrap()];
            let table: BTreeMap<String, String> = serde_json::from_str(table).unwrap();
            let missing: Vec<_> = messages
                .iter()
                .filter(|it| !table.contains_key(*it))
                .collect();
            let unused: Vec<_> = table.keys().filter(|it| !messages.contains(*it)).collect();
            assert!(missing.is_empty(), "{name} misses {missing:?}");
            assert!(unused.is_empty(), "{name} has unused {unused:?}");
            for (message, translation) in &table {
                assert_eq!(
                    values_in(message),
                    values_in(translation),
                    "{name}: {message}"
                );
                assert!(!translation.trim().is_empty(), "{name}: {message}");
            }
        }
    }
}
