//! Tests properties that every tab of the page has.

use super::{contains, open};
use crate::serve::Server;
use crate::serve::browser::Browser;
use serde_json::json;

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn every_control_has_a_name_and_fits_a_phone() {
    let server = Server::start(&[]);
    for part in ["play", "analyse", "review", "explain", "generate"] {
        let Some(mut browser) = open(&server, part) else {
            return;
        };
        let nameless = browser.evaluate(
            "[...document.querySelectorAll('button, input, select, textarea')]\
             .filter((it) => !(it.ariaLabel || it.labels?.length || it.textContent.trim()))\
             .map((it) => it.outerHTML)",
        );
        assert_eq!(nameless, json!([]));
        browser.screen(360, 700);
        browser.wait("document.documentElement.scrollWidth <= 360");
        browser.assert_quiet();
    }
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_tab_begins_at_its_top() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    browser.screen(390, 500);
    browser.evaluate("scrollTo(0, 10000)");
    browser.wait("scrollY > 100");
    browser.evaluate("document.getElementById('analyse-play').click()");
    browser.wait("!document.getElementById('play').hidden");
    assert_eq!(browser.evaluate("scrollY"), 0);
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn settings_are_kept() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.click("#settings-open");
    browser.choose("#settings", "dark");
    browser.choose("#settings", "blue");
    browser.choose("#settings", "tessera");
    browser.click("#settings [name=sound]");
    browser.click("#settings .main");
    browser.reload();
    let data =
        "(({ theme, board, pieces }) => [theme, board, pieces])(document.documentElement.dataset)";
    assert_eq!(browser.evaluate(data), json!(["dark", "blue", "tessera"]));
    let dark = "getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.evaluate(dark), "rgb(23, 25, 27)");
    // The pieces are our own drawings.
    browser.wait(
        "getComputedStyle(document.querySelector('#play-board piece')).backgroundImage.includes('svg+xml,')",
    );
    browser.click("#settings-open");
    let sound = "document.querySelector('#settings [name=sound]').checked";
    assert_eq!(browser.evaluate(sound), false);
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn parts_without_a_network_are_hidden() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    for part in ["explain", "generate"] {
        let hidden = format!("document.querySelector('nav [href=\"#{part}\"]').hidden");
        assert_eq!(browser.evaluate(&hidden), true, "{part}");
    }
    browser.assert_quiet();
}

/// Play, Analyse, the review and the exported PGN give a game the same opening, whose position
/// comes after positions that the table does not contain.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn an_opening_has_one_name_everywhere() {
    const NAME: &str = "D90 Grünfeld Defense: Three Knights Variation";
    let moves = "1. Nf3 Nf6 2. c4 g6 3. Nc3 d5 4. d4 *";
    let server = Server::start(&[]);
    let uci = "moves=g1f3+g8f6+c2c4+g7g6+b1c3+d7d5+d2d4";
    let answer = server.get(&format!("/page/opening?{uci}")).json();
    assert_eq!(answer, json!({"name": NAME}));
    let answer = server.get("/page/opening?moves=").json();
    assert_eq!(answer, json!({"name": null}));
    assert_eq!(server.get("/page/opening?moves=e2e5").status, 400);
    assert_eq!(server.get("/page/opening").status, 404);
    let pgn = format!("[Opening \"English\"]\n[ECO \"A15\"]\n\n{moves}");
    let review = server.post("/v1/review", &json!({"pgn": pgn, "nodes": 1}).to_string());
    for part in NAME.splitn(2, ' ') {
        assert!(review.body.contains(part), "{}", review.body);
    }
    assert!(
        !review.body.contains("[Opening \\\"English"),
        "{}",
        review.body
    );
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    browser.load(moves);
    browser.wait(&contains("#analyse-opening", NAME));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn the_documentation_names_every_endpoint_and_tries_one() {
    let server = Server::start(&[]);
    let Some(mut browser) = Browser::open(&format!("http://{}/docs", server.address)) else {
        return;
    };
    let description = server.get("/openapi.json").json();
    let shown = browser.text("#docs");
    for path in description["paths"].as_object().unwrap().keys() {
        assert!(shown.contains(path.as_str()), "{path}");
    }
    assert!(!shown.contains('`'));
    assert!(browser.text("#docs h2").ends_with("/v1/move"));
    browser.click("#choose_move button");
    browser.wait(&contains("#choose_move pre:last-of-type", "\"uci\""));
    browser.assert_quiet();
}

/// The first load, with the files of a language and without those of the judge, is small: up to 300 kB if it is
/// compressed. Prints its size and how long it took.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn the_first_load_is_small() {
    const NOTE: &str = "new MutationObserver(() => { window.readyAt ??= performance.now(); }) \
        .observe(document, { subtree: true, attributes: true, attributeFilter: ['data-ready'] })";
    const LOADED: &str = "(async () => { \
        const entries = performance.getEntriesByType('resource').map((it) => it.name); \
        const names = [...new Set(['/', ...entries])].filter((it) => !it.startsWith('data:')); \
        let bytes = 0; \
        for (const name of names) { \
          const { body } = await fetch(name); \
          const packed = new Response(body.pipeThrough(new CompressionStream('gzip'))); \
          bytes += (await packed.arrayBuffer()).byteLength; \
        } \
        return [bytes, window.readyAt, names.length]; \
      })()";
    let server = Server::start(&["--backend", "torch"]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.send(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({"source": NOTE}),
    );
    browser.send("Network.enable", json!({}));
    browser.send("Network.setCacheDisabled", json!({"cacheDisabled": true}));
    for language in ["en", "de", "es", "fr"] {
        browser.evaluate(&format!(
            "localStorage.setItem('settings', '{{\"language\":\"{language}\"}}')"
        ));
        let mut times = Vec::new();
        for _ in 0..5 {
            browser.go("about:blank");
            browser.go(&format!("http://{}/", server.address));
            times.push(browser.evaluate("window.readyAt").as_f64().unwrap());
        }
        times.sort_by(f64::total_cmp);
        let loaded = browser.evaluate(LOADED);
        let (bytes, files) = (loaded[0].as_u64().unwrap(), loaded[2].as_u64().unwrap());
        println!(
            "{language}: {files} files, {bytes} bytes compressed, {:.0} ms",
            times[2]
        );
        assert!((50_000..300_000).contains(&bytes), "{language}: {bytes}");
        assert!(files > 60, "{language}: {files}");
    }
    browser.assert_quiet();
}
