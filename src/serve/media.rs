//! Media types: the type of a body, and the offered type that a client prefers.

use axum::http::{HeaderMap, header};

/// The media type of JSON.
pub(super) const JSON: &str = "application/json";
/// The media type of a page.
pub(super) const HTML: &str = "text/html";
/// The media type of games in PGN.
pub(super) const PGN: &str = "application/x-chess-pgn";
/// The specificity of a type that `Accept` names in full.
const EXACT: usize = 2;

/// Returns whether the headers declare a JSON body.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|value| value.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(JSON))
}

/// Returns the offered type that a client prefers, by the rules of RFC 9110. This is the first type
/// if the client states no preference or accepts none of them, and the last of several equally
/// preferred types.
pub(super) fn preferred<'a>(headers: &HeaderMap, offers: &[&'a str]) -> &'a str {
    let accept = headers.get_all(header::ACCEPT).iter();
    let accept = accept.filter_map(|value| value.to_str().ok());
    let ranges: Vec<&str> = accept.flat_map(|value| value.split(',')).collect();
    let rated = (0..).zip(offers).filter_map(|(place, offer)| {
        let ratings = ranges.iter().filter_map(|range| rate(range, offer));
        let (exactness, quality) = ratings.max().filter(|&(_, quality)| quality > 0)?;
        let order: i32 = if exactness == EXACT { place } else { -place };
        Some(((quality, exactness, order), *offer))
    });
    rated.max().map_or(offers[0], |(_, offer)| offer)
}

/// Returns the specificity of a media range in `Accept`, and its quality in thousandths.
fn rate(range: &str, kind: &str) -> Option<(usize, u16)> {
    let mut parts = range.split(';').map(str::trim);
    let named = parts.next()?;
    let (family, _) = kind.split_once('/')?;
    let names = ["*/*", &format!("{family}/*"), kind];
    let exactness = names
        .iter()
        .position(|name| name.eq_ignore_ascii_case(named))?;
    let quality = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let is_quality = name.trim_end().eq_ignore_ascii_case("q");
        is_quality.then(|| value.trim().parse::<f32>().unwrap_or(0.0))
    });
    let quality = quality.unwrap_or(1.0).clamp(0.0, 1.0);
    Some((exactness, (quality * 1000.0).round() as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFERS: [&str; 3] = [JSON, "application/x-ndjson", "text/event-stream"];

    fn headers(name: header::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn json_is_a_type_of_its_own() {
        let is_json = |kind| super::is_json(&headers(header::CONTENT_TYPE, &[kind]));
        for kind in [
            "application/json",
            "APPLICATION/JSON",
            " Application/Json ; charset=utf-8",
            "application/json;charset=utf-8",
        ] {
            assert!(is_json(kind), "{kind}");
        }
        for kind in [
            "",
            "application/jsonfoo",
            "application/json-seq",
            "application/json foo",
            "application/problem+json",
            "text/plain; application/json",
        ] {
            assert!(!is_json(kind), "{kind}");
        }
        assert!(!super::is_json(&HeaderMap::new()));
    }

    #[test]
    fn the_type_that_is_liked_best_is_chosen() {
        let [json, lines, events] = OFFERS;
        for (accept, chosen) in [
            (&[][..], json),
            (&["*/*"], json),
            (&["application/*"], json),
            (&["text/*"], events),
            (&["text/plain"], json),
            (&["text/event-stream"], events),
            (&["TEXT/Event-Stream; charset=utf-8"], events),
            (&["text/event-streams"], json),
            (&["application/json, application/x-ndjson"], lines),
            (&["application/json", "application/x-ndjson"], lines),
            (&["application/x-ndjson;q=0.5, application/json"], json),
            (
                &["application/x-ndjson;Q=0.5,text/event-stream; q=0.4"],
                lines,
            ),
            (&["application/x-ndjson;q=0"], json),
            (
                &["application/x-ndjson;q=0.000, text/event-stream;q=0.001"],
                events,
            ),
            (&["*/*, text/event-stream;q=0"], json),
            (&["*/*;q=0.9, application/json;q=0"], lines),
            (&["*/*;q=1, text/event-stream;q=0.2"], json),
            (&["application/x-ndjson;level=1;q=0, text/*"], events),
            (&["text/event-stream;q=nan"], json),
            (&[", ;, /, q=1"], json),
        ] {
            let headers = headers(header::ACCEPT, accept);
            assert_eq!(preferred(&headers, &OFFERS), chosen, "{accept:?}");
        }
    }
}
