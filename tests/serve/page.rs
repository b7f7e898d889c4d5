//! The page in a browser, used as a person would.

use super::Server;
use super::browser::Browser;
use serde_json::json;

/// The page of a server; nothing where it cannot be shown.
fn open(server: &Server, part: &str) -> Option<Browser> {
    if server.get("/").body.contains("built without the board") {
        crate::skip::skip("the board of the page (tools/setup fetches it by npm)");
        return None;
    }
    Browser::open(&format!("http://{}/#{part}", server.address))
}

/// Two rooks against a king: two moves to mate, whatever it does.
const LADDER: &str = "6k1/8/R7/8/8/8/8/1R4K1 w - - 0 1";

#[test]
fn a_game_is_played_to_mate_by_clicks() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.fill("#play-form [name=fen]", LADDER);
    browser.click("#play-form .main");
    browser.wait("document.querySelector('#play-status').textContent.startsWith('Your move')");
    for (count, [from, to]) in [(2, ["a6", "a7"]), (3, ["b1", "b8"])] {
        browser.click_square("#play-board", from);
        browser.click_square("#play-board", to);
        browser.wait(&format!(
            "document.querySelectorAll('#play-moves li').length >= {count}"
        ));
    }
    browser.wait("document.querySelector('#play-status').textContent.startsWith('You win')");
    assert_eq!(browser.text("#play-status"), "You win: checkmate. 1-0");
    let games = browser.evaluate("document.querySelector('#play-pgn').value");
    let games = games.as_str().unwrap();
    assert!(games.contains("Rb8#") && games.contains(LADDER), "{games}");
    // The next game leaves this one where it is.
    browser.click("#play-rematch");
    browser.wait("document.querySelector('#play-count').textContent === '(1)'");
    browser.assert_quiet();
}

#[test]
fn moves_are_typed_taken_back_and_hinted() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.click("#play-form .main");
    let moves = "document.querySelectorAll('#play-moves li').length";
    for (count, text) in [(2, "e4"), (4, "b1c3")] {
        browser.wait("document.querySelector('#play-status').textContent.startsWith('Your move')");
        browser.fill("#play-board-move", text);
        browser.click("#play .typed button");
        browser.wait(&format!("{moves} === {count}"));
    }
    browser.click("#play-hint");
    browser.wait("document.querySelector('#play-status').textContent.startsWith('Hint')");
    browser.click("#play-back");
    browser.wait(&format!("{moves} === 2"));
    browser.click("#play-resign");
    browser.wait("document.querySelector('#play-status').textContent.includes('resignation')");
    browser.assert_quiet();
}

#[test]
fn an_analysis_grows_and_a_game_is_gone_through() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    browser.fill("#analyse-form [name=text]", "1. e4 e5 2. Nf3 Nc6 3. Bb5");
    browser.fill("#analyse-form [name=nodes]", "3000");
    browser.click("#analyse-form button");
    browser.wait("document.querySelectorAll('#analyse-moves button').length === 5");
    browser.click("#analyse-run");
    browser.wait("document.querySelectorAll('#analyse-lines li').length === 3");
    browser.wait("/^3,0\\d\\d nodes/.test(document.querySelector('#analyse-status').textContent)");
    browser.wait("document.querySelectorAll('#analyse-board .cg-shapes line').length > 0");
    browser.click("#analyse-previous");
    let current = "document.querySelector('#analyse-moves [aria-current]').textContent";
    browser.wait(&format!("{current} === 'Nc6'"));
    browser.evaluate("document.querySelector('#compare').open = true");
    browser.wait("document.querySelectorAll('#compare-table tr').length > 5");
    browser.assert_quiet();
}

/// With the networks that are built in.
#[test]
fn a_square_that_is_clicked_shows_where_a_network_looks() {
    let server = Server::start(&["--backend", "torch"]);
    let Some(mut browser) = open(&server, "analyse") else {
        return;
    };
    browser.evaluate("document.querySelector('#see').open = true");
    browser.click_square("#analyse-board", "e4");
    browser.wait("document.querySelectorAll('#analyse-board square.seen').length > 0");
    let told = browser.text("#see-status");
    assert!(told.starts_with("e4 in layer 1 of"), "{told}");
    browser.assert_quiet();
}

#[test]
fn whatever_can_be_used_has_a_name_and_fits_a_phone() {
    let server = Server::start(&[]);
    for part in ["play", "analyse", "generate"] {
        let Some(mut browser) = open(&server, part) else {
            return;
        };
        let nameless = browser.evaluate(
            "[...document.querySelectorAll('button, input, select, textarea')]\
             .filter((it) => !(it.ariaLabel || it.labels?.length || it.textContent.trim()))\
             .map((it) => it.outerHTML)",
        );
        assert_eq!(nameless, json!([]));
        let phone = json!({"width": 360, "height": 700, "deviceScaleFactor": 2, "mobile": true});
        browser.send("Emulation.setDeviceMetricsOverride", phone);
        browser.wait("document.documentElement.scrollWidth <= 360");
        browser.assert_quiet();
    }
}

#[test]
fn the_documentation_names_every_endpoint() {
    let server = Server::start(&[]);
    let Some(mut browser) = Browser::open(&format!("http://{}/docs", server.address)) else {
        return;
    };
    let description = server.get("/openapi.json").json();
    let shown = browser.text("#docs");
    for path in description["paths"].as_object().unwrap().keys() {
        assert!(shown.contains(path.as_str()), "{path}");
    }
    browser.assert_quiet();
}
