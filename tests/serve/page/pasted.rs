//! Tests the texts, files and links that people bring.

use super::{contains, count, open};
use crate::serve::Server;
use serde_json::json;

const SANS: &str =
    "[...document.querySelectorAll('#analyse-moves button')].map((it) => it.textContent).join(' ')";
const HASH: &str = "decodeURIComponent(location.hash)";

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn positions_are_read_in_all_their_forms() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    let fen = "4k3/8/8/8/8/8/4P3/4K3 b - - 0 1";
    let expected = format!("#analyse/{}", fen.replace(' ', "_"));
    for text in [
        fen.to_owned(),
        fen.replace("0 1", "- -"),
        fen.replace(" 0 1", ""),
        format!("\"{fen}\""),
        format!("“{fen}”"),
        fen.replace(' ', "_"),
        format!("position fen {fen}"),
        format!("fen {fen}"),
        fen.replace(" b ", " B "),
        format!("  {}  ", fen.replace(' ', "   ")),
        format!("[FEN \"{fen}\"]"),
        format!(
            "position fen {} moves e1e2 e8e7 e2e1 e7e8",
            fen.replace(" b ", " w ")
        ),
    ] {
        browser.load("1. e4");
        browser.load(&text);
        assert_eq!(browser.text("#analyse-problem"), "", "{text}");
        let moves = browser.evaluate(&count("#analyse-moves button"));
        match moves.as_u64().unwrap() {
            0 => assert_eq!(browser.evaluate(HASH), json!(expected), "{text}"),
            moves => assert_eq!(moves, 4, "{text}"),
        }
    }
    browser.load("position startpos moves e2e4 e7e5");
    assert_eq!(browser.evaluate(SANS), "1. e4 e5");
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn damaged_links_open_their_tab_with_a_message() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    for (link, part, message) in [
        ("analyse/4k3/8/8%2", "analyse", "The link is damaged"),
        ("play/4k3%2", "play", "The link is damaged"),
        ("analyse/4k3/8/8/8/8/8", "analyse", "it may be cut off"),
        ("constructor", "play", "there is no “constructor”"),
        ("toString/x", "play", "there is no “toString”"),
    ] {
        browser.go("about:blank");
        browser.go(&format!("http://{}/#play", server.address));
        browser.evaluate(&format!("location.hash = '#{link}'"));
        browser.wait(&format!("!document.querySelector('#{part}').hidden"));
        browser.wait(&contains("#trouble", message));
        browser.evaluate("location.reload()");
        browser.wait("document.readyState === 'complete' && document.body.dataset.ready");
        browser.wait(&format!("!document.querySelector('#{part}').hidden"));
        browser.click("#trouble");
        browser.assert_quiet();
    }
}

/// What a person wrote is in the exported PGN, in short lines.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn comments_signs_arrows_variations_and_null_moves_are_kept() {
    const GAME: &str = r#"[Event "Club"]
[Site "?"]
[Date "????.??.??"]
[Round "?"]
[White "Anna"]
[Black "Bert"]
[Result "1-0"]
[Annotator "A "good" friend"]
[Board "3"]

{ Before it all } 1. e4 $1 { The best [%cal Ge2e4,Gd2d4] [%csl Re5] } 1... e5 (
{ Or } 1... c5 $5 { Sicilian } 2. -- { Black would like d5 } d5 ( 2... d6 ) )
2. Nf3 $16 { [%clk 0:03:00] } 2... Nc6 3. Bb5 { A long comment that has to be
broken into several lines, because lines of PGN are short. } 1-0
"#;
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    let written = GAME
        .replace("$1 ", "! ")
        .replace(" $16", " ±")
        .replace("$5 {", "!? {");
    browser.load(&written);
    assert_eq!(browser.text("#analyse-problem"), "");
    browser.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }");
    browser.click("#analyse-copy");
    browser.wait("window.copied");
    let escaped = GAME.replace("\"good\"", "\\\"good\\\"");
    assert_eq!(browser.evaluate("window.copied"), json!(escaped));
    // The comment is shown with its move, and a position after a null move is analysed.
    browser.click("#analyse-moves li:first-child button");
    assert_eq!(browser.text("#analyse-remark"), "! The best");
    browser.click("#analyse-moves .variation .variation button");
    browser.click("#analyse-run");
    browser.wait(&format!("{} > 0", count("#analyse-lines b")));
    browser.click("#analyse-run");
    // After a reload, everything is still there.
    browser.reload();
    browser.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }");
    browser.click("#analyse-copy");
    browser.wait("window.copied");
    assert_eq!(browser.evaluate("window.copied"), json!(escaped));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn one_of_several_games_is_chosen_with_or_without_tags() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    let options = |form: &str| {
        format!(
            "[...document.querySelectorAll('{form} [name=game] option')].map((it) => it.textContent)"
        )
    };
    for (text, names) in [
        (
            "1. e4 e5\n\n1. d4 d5 2. c4",
            ["1. 1. e4 e5", "2. 1. d4 d5 2. c4"],
        ),
        (
            "[White \"A\"]\n\n1. e4 e5 *\n[White \"B\"]\n\n1. d4 d5 2. c4 *",
            ["1. A – Black", "2. B – Black"],
        ),
    ] {
        for form in ["#analyse-form", "#review-form"] {
            let field = if form == "#analyse-form" {
                "text"
            } else {
                "pgn"
            };
            browser.fill(&format!("{form} [name={field}]"), text);
            if form == "#analyse-form" {
                browser.evaluate("document.querySelector('#analyse-form').requestSubmit()");
            }
            assert_eq!(
                browser.evaluate(&options(form)),
                json!(names),
                "{form}: {text}"
            );
        }
        browser.fill("#analyse-form [name=game]", "1");
        browser.wait(&format!("{SANS} === '1. d4 d5 2. c4'"));
    }
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn files_are_dropped_and_chosen_in_any_encoding() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    let text = "[White \"Müller\"]\n\n1. e4 {schön} e5 *\n";
    let latin: Vec<u8> = text.chars().map(|it| it as u8).collect();
    let wide = |order: fn(u16) -> [u8; 2], mark: bool| -> Vec<u8> {
        let units = mark
            .then_some(0xfeff)
            .into_iter()
            .chain(text.encode_utf16());
        units.flat_map(order).collect()
    };
    for (name, bytes) in [
        ("UTF-8", text.as_bytes().to_vec()),
        ("Latin-1", latin),
        ("UTF-16LE", wide(u16::to_le_bytes, true)),
        ("UTF-16BE", wide(u16::to_be_bytes, true)),
        ("UTF-16LE without a mark", wide(u16::to_le_bytes, false)),
    ] {
        for part in ["analyse", "review"] {
            browser.load("1. d4");
            browser.evaluate(&format!(
                "{{ const files = new DataTransfer(); \
                 files.items.add(new File([new Uint8Array({})], 'a.pgn')); \
                 const event = new DragEvent('drop', {{ bubbles: true, cancelable: true, dataTransfer: files }}); \
                 document.querySelector('#{part}').dispatchEvent(event); }}",
                json!(bytes)
            ));
            let field =
                format!("document.querySelector('#{part}-form textarea').value.includes('Müller')");
            browser.wait(&field);
        }
        browser.wait(&format!("{SANS} === '1. e4 e5'"));
        assert_eq!(browser.text("#analyse-problem"), "", "{name}");
    }
    browser.assert_quiet();
}

/// A long comment neither hinders the analysis nor the review.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_game_with_long_comments_is_read() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    let comment = "a word and ".repeat(10_000);
    let game = format!("1. e4 {{{comment}}} e5 2. Nf3 *");
    browser.load(&game);
    browser.wait(&format!("{SANS} === '1. e4 e5 2. Nf3'"));
    browser.evaluate("localStorage.setItem('settings', '{\"judge\":\"none\"}')");
    browser.go("about:blank");
    browser.go(&format!("http://{}/#review", server.address));
    browser.fill("#review-form [name=pgn]", &game);
    browser.fill("#review-form [name=nodes]", "30");
    browser.click("#review-form .main");
    browser.wait(&contains("#review-status", "to look at"));
    browser.assert_quiet();
    let outline = json!({"pgn": game}).to_string();
    assert_eq!(server.post("/v1/review/outline", &outline).status, 200);
}

/// A draw by repetition has to be claimed, so the position can still be analysed.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_claimable_draw_is_analysed() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    browser.load("1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8");
    browser.wait(&contains(
        "#analyse-status",
        "A draw can be claimed by threefold repetition.",
    ));
    browser.click("#analyse-run");
    browser.wait(&format!("{} > 0", count("#analyse-lines b")));
    browser.click("#analyse-run");
    browser.assert_quiet();
}
