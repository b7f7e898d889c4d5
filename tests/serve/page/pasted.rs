//! Tests the texts that people paste.

use super::{contains, count, open};
use crate::serve::Server;
use serde_json::json;

const SANS: &str =
    "[...document.querySelectorAll('#analyse-moves button')].map((it) => it.textContent).join(' ')";

/// The exported PGN contains a person's remarks, in short lines.
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
    browser.click("#analyse-copy");
    let button = "document.querySelector('#analyse-copy').textContent";
    browser.wait(&format!("{button} === 'Copied'"));
    browser.wait(&format!("{button} === 'Copy PGN'"));
    let escaped = GAME.replace("\"good\"", "\\\"good\\\"");
    assert_eq!(browser.evaluate("window.copied"), json!(escaped));
    // The list shows signs and clocks.
    for move_text in ["1. e4!", "c5!?", "Nf3± 3:00"] {
        assert_eq!(
            browser.evaluate(&contains("#analyse-moves", move_text)),
            true
        );
    }
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
            ["1: 1. e4 e5", "2: 1. d4 d5 2. c4"],
        ),
        (
            "[White \"A\"]\n\n1. e4 e5 *\n[White \"B\"]\n\n1. d4 d5 2. c4 *",
            ["1: A – Black", "2: B – Black"],
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
    // A file may have nothing or too much.
    browser.evaluate(
        "window.choose = (text) => { \
           const files = new DataTransfer(); \
           files.items.add(new File([text], 'games.pgn')); \
           const field = document.querySelector('#analyse-file'); \
           field.files = files.files; \
           field.dispatchEvent(new Event('change')); \
         }",
    );
    browser.evaluate("window.choose(' ')");
    browser.wait(&contains("#trouble", "The file is empty."));
    browser.wait(&format!("{SANS} === '1. d4 d5 2. c4'"));
    browser.evaluate("window.choose('1. e4 e5 *\\n\\n'.repeat(501))");
    browser.wait(&contains(
        "#trouble",
        "Only the first 500 games are listed.",
    ));
    let listed = count("#analyse-form [name=game] option");
    assert_eq!(browser.evaluate(&listed), 500);
    browser.click("#trouble");
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

/// A FEN is found in what people copy along with it.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_fen_is_read_with_what_surrounds_it() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    let fen = "8/8/8/4k3/8/8/4P3/4K3 w - - 0 1";
    let hash = format!("location.hash === '#analyse/{}'", fen.replace(' ', "_"));
    for text in [
        format!("FEN: {fen}"),
        format!("fen:{fen}"),
        format!("position fen {fen}"),
        format!("“{fen}”"),
        "8/8/8/4k3/8/8/4P3/4K3 W - - - -".to_owned(),
        "8/8/8/4k3/8/8/4P3/4K3".to_owned(),
        "8/8/8/4k3/8/8/4P3/4K3 w - - bm e4; id \"a b\";".to_owned(),
        "https://www.chess.com/analysis?fen=8%2F8%2F8%2F4k3%2F8%2F8%2F4P3%2F4K3+w+-+-+0+1&flip=true"
            .to_owned(),
        format!("https://lichess.org/analysis/{}", fen.replace(' ', "_")),
        format!(
            "https://lichess.org/analysis/standard/{}?color=white",
            fen.replace(' ', "_")
        ),
        format!(
            "http://{}/#analyse/{}",
            server.address,
            fen.replace(' ', "_")
        ),
    ] {
        browser.load("1. e4");
        browser.wait(&format!("{SANS} === '1. e4'"));
        browser.load(&text);
        assert_eq!(browser.text("#analyse-problem"), "", "{text}");
        assert_eq!(browser.evaluate(&hash), true, "{text}");
    }
    browser.load("startpos moves e2e4");
    browser.wait(&format!("{SANS} === '1. e4'"));
    assert_eq!(browser.text("#analyse-problem"), "");
    // A link to no part of the page only says so.
    browser.go(&format!("http://{}/#nonsense/x", server.address));
    browser.wait(&contains("#trouble", "no “nonsense”"));
    assert_eq!(browser.text("#play-fen-problem"), "");
}

/// A draw by threefold repetition has to be claimed, so the position can still be analysed.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_claimable_draw_is_analysed() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    let over = "the game is over by fivefold repetition.";
    browser.load(&"Nf3 Nf6 Ng1 Ng8 ".repeat(4));
    browser.wait(&contains("#analyse-status", over));
    browser.load("4k3/8/8/8/8/8/4P3/4K3 w - - 150 100");
    let over = "The game is over by seventy-five moves.";
    browser.wait(&contains("#analyse-status", over));
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
