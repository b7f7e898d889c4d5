//! Tests the page in another language than English.

use super::{contains, count, open};
use crate::serve::Server;
use serde_json::json;

/// The texts that are shown on a tab: those of elements, and the names of controls.
const SHOWN: &str = "[...document.querySelectorAll('header *, main:not([hidden]) *, #settings *')] \
    .filter((it) => !it.closest('[lang=en]')) \
    .flatMap((it) => [it.ariaLabel, it.title, it.placeholder, ...[...it.childNodes].map((node) => node.data)]) \
    .filter(Boolean).join(' | ')";
/// Words that only English has.
const ENGLISH: &str =
    "/\\b(the|of|and|or|with|is|are|your|move|moves|game|side|rated|White|Black)\\b/";

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn the_tabs_speak_german() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    assert_eq!(browser.evaluate("document.documentElement.lang"), "en");
    browser.click("#settings-open");
    browser.fill("#settings [name=language]", "de");
    browser.wait("document.documentElement?.lang === 'de' && document.body?.dataset.ready");
    // A choice is kept.
    browser.reload();
    for (part, name) in [
        ("play", "Spielen"),
        ("analyse", "Analyse"),
        ("review", "Auswertung"),
        ("explain", "Erklären"),
        ("mistakes", "Fehler"),
        ("generate", "Erzeugen"),
    ] {
        assert_eq!(browser.text(&format!("nav [href=\"#{part}\"]")), name);
        browser.evaluate(&format!("location.hash = '{part}'"));
        browser.wait(&format!("!document.getElementById('{part}').hidden"));
        let shown = browser.evaluate(SHOWN);
        let english = browser.evaluate(&format!("({SHOWN}).match({ENGLISH})?.[0] ?? ''"));
        assert_eq!(english, "", "{part}: {shown}");
    }
    // Messages about games are German as well, and reasons are marked as English.
    browser.evaluate("location.hash = 'play'");
    browser.type_move("play", "Ke3");
    let problem = browser.text("#play-typed-move-problem");
    assert_eq!(problem, "Der König auf e1 kann nicht nach e3 ziehen.");
    browser.type_move("play", "e4");
    browser.wait(&contains("#play-status", "Du bist am Zug."));
    browser.evaluate("location.hash = 'review'");
    browser
        .evaluate("localStorage.setItem('settings', '{\"judge\":\"none\",\"language\":\"de\"}')");
    browser.reload();
    browser.fill(
        "#review-form [name=pgn]",
        "1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0",
    );
    browser.fill("#review-form [name=nodes]", "60");
    browser.click("#review-form .main");
    browser.wait(&contains("#review-status", "zum Ansehen"));
    browser.click("#review-moves [data-ply=\"6\"]");
    browser.wait(&contains("#review-moment", "Fehler"));
    assert_eq!(
        browser.evaluate(&format!("{} > 0", count("#review-why [lang=en]"))),
        json!(true)
    );
    // Names of networks, which the figures have, are not translated.
    let told = SHOWN.replace("main:not([hidden]) *", "#review-told *");
    let english = browser.evaluate(&format!("({told}).match({ENGLISH})?.[0] ?? ''"));
    assert_eq!(english, "");
    browser.assert_quiet();
}

/// Longer words neither overflow nor are cut off on a phone or a tablet.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn every_language_fits_on_small_screens() {
    let server = Server::start(&["--backend", "torch"]);
    for language in ["de", "es", "fr"] {
        let Some(mut browser) = open(&server, "play") else {
            return;
        };
        browser.evaluate(&format!(
            "localStorage.setItem('settings', '{{\"language\":\"{language}\"}}')"
        ));
        browser.reload();
        browser
            .evaluate("for (const link of document.querySelectorAll('nav a')) link.hidden = false");
        for part in [
            "play", "analyse", "review", "explain", "mistakes", "generate",
        ] {
            browser.evaluate(&format!("location.hash = '{part}'"));
            browser.wait(&format!("!document.getElementById('{part}').hidden"));
            for (width, height) in [(360, 640), (390, 844), (667, 375), (768, 1024)] {
                browser.screen(width, height);
                let overflow =
                    browser.evaluate("document.documentElement.scrollWidth - innerWidth");
                let screen = format!("{part} at {width}×{height} in {language}");
                assert!(overflow.as_f64() <= Some(0.0), "{screen}: {overflow}");
                let cut = browser.evaluate(
                    "[...document.querySelectorAll('nav a, button, .chips span')].filter((it) => it.checkVisibility() && it.scrollWidth > it.clientWidth + 1 \
                       || it.closest('nav') && it.getBoundingClientRect().top < 0) \
                       .map((it) => it.textContent)",
                );
                assert_eq!(cut, json!([]), "{screen}");
            }
        }
        browser.assert_quiet();
    }
}

/// A language is chosen without losing what is on the page.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_new_language_keeps_what_was_made_and_typed() {
    let server = Server::start(&["--backend", "torch"]);
    let Some(mut browser) = open(&server, "generate") else {
        return;
    };
    browser.fill("#generate-form [name=games]", "2");
    browser.fill("#generate-form [name=opening]", "1. d4 d5");
    browser.click("#generate-start");
    let games = count("#generate-games li");
    browser.wait(&format!(
        "{games} === 2 && document.getElementById('generate-stop').hidden"
    ));
    let list = "[...document.querySelectorAll('#generate-games li')] \
                .map((it) => it.textContent.replace(/^.*?: /, '')).join()";
    let written = browser.evaluate(list);
    browser.fill("#review-form [name=pgn]", "1. e4 e5 *");
    browser.fill("#analyse-form [name=text]", "1. c4");
    browser.fill("#review-form [name=side]", "black");
    browser.click("#settings-open");
    browser.fill("#settings [name=language]", "fr");
    browser.wait("document.documentElement?.lang === 'fr' && document.body?.dataset.ready");
    assert_eq!(browser.evaluate(&games), 2);
    assert_eq!(browser.evaluate(list), written);
    for (field, value) in [
        ("generate-form [name=opening]", "1. d4 d5"),
        ("generate-form [name=games]", "2"),
        ("review-form [name=pgn]", "1. e4 e5 *"),
        ("review-form [name=side]", "black"),
        ("analyse-form [name=text]", "1. c4"),
    ] {
        let found = browser.evaluate(&format!("document.querySelector('#{field}').value"));
        assert_eq!(found, value, "{field}");
    }
    browser.click("#settings-open");
    assert_eq!(
        browser.evaluate("document.querySelector('#settings [name=language]').value"),
        "fr"
    );
    browser.assert_quiet();
}
