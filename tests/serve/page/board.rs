//! Tests what people expect of a board: premoves, drawings, promotion by keys, captured pieces, clocks
//! and offers of a draw.

use super::{contains, count, open};
use crate::serve::Server;
use crate::serve::browser::Browser;
use serde_json::json;

const BOARD: &str = "#play-board";
const STATUS: &str = "#play-status";
/// Holds the answers to requests for a move back until `window.release` is called.
const HOLD: &str = "const own = fetch; \
    const held = new Promise((resolve) => (window.release = resolve)); \
    window.fetch = (path, ...rest) => path === '/v1/move' ? held.then(() => own(path, ...rest)) : own(path, ...rest)";

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_premove_is_played_unless_a_click_cancels_it() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    let premoves = count("#play-board square.current-premove");
    browser.evaluate(HOLD);
    browser.play(BOARD, "e2", "e4");
    browser.wait(&contains(STATUS, "thinking"));
    browser.play(BOARD, "d2", "d4");
    browser.wait(&format!("{premoves} === 2"));
    browser.wait(&contains(STATUS, "Your next move is d2–d4"));
    browser.click_square(BOARD, "h6");
    browser.wait(&format!("{premoves} === 0"));
    browser.play(BOARD, "b1", "c3");
    browser.wait(&format!("{premoves} === 2"));
    browser.evaluate("release()");
    browser.wait(&format!("{} >= 3", count("#play-moves button")));
    browser.wait(&contains("#play-moves li:nth-child(3)", "2. Nc3"));
    browser.wait(&format!("{premoves} === 0"));
    browser.assert_quiet();
}

/// Sends a mouse event with the right button.
fn right(browser: &mut Browser, kind: &str, [x, y]: [f64; 2]) {
    let event =
        json!({"type": kind, "x": x, "y": y, "button": "right", "buttons": 2, "clickCount": 1});
    browser.send("Input.dispatchMouseEvent", event);
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn arrows_and_circles_are_drawn_by_mouse_and_touch() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    let arrows = count("#play-board .cg-shapes line");
    let circles = count("#play-board .cg-shapes circle");
    let [from, to] = ["g1", "f3"].map(|square| browser.square(BOARD, square));
    right(&mut browser, "mousePressed", from);
    right(&mut browser, "mouseMoved", to);
    browser.wait(&format!("{arrows} === 1"));
    right(&mut browser, "mouseReleased", to);
    browser.wait(&format!("{arrows} === 1 && {circles} === 0"));
    // They stay if the same position is shown again.
    browser.choose("#play-form", "3+2");
    assert_eq!(browser.evaluate(&arrows), 1);
    // A long touch draws too, and moves nothing.
    browser.send(
        "Emulation.setTouchEmulationEnabled",
        json!({"enabled": true}),
    );
    let [x, y] = browser.square(BOARD, "e2");
    let touch =
        |points: serde_json::Value, kind: &str| json!({"type": kind, "touchPoints": points});
    browser.send(
        "Input.dispatchTouchEvent",
        touch(json!([{"x": x, "y": y}]), "touchStart"),
    );
    browser.wait(&format!("{circles} === 1"));
    browser.send("Input.dispatchTouchEvent", touch(json!([]), "touchEnd"));
    browser.wait(&format!("{circles} === 1 && {arrows} === 1"));
    assert_eq!(browser.evaluate(&count("#play-board square.selected")), 0);
    // A new position erases them.
    browser.type_move("play", "e4");
    browser.wait(&format!("{circles} === 0 && {arrows} === 0"));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_key_chooses_the_promotion_and_captures_are_counted() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.fill("#play-form [name=fen]", "3r4/4P1k1/8/8/8/8/8/K7 w - - 0 1");
    browser.play(BOARD, "e7", "d8");
    browser.wait(&format!("{} === 4", count("#play-board .promotion button")));
    browser.key("r");
    browser.wait(&contains("#play-moves", "exd8=R"));
    browser.wait(&format!(
        "{} === 1",
        count("#play-mine .taken piece.rook.black")
    ));
    let words = "document.querySelector('#play-mine .taken').ariaLabel";
    browser.wait(&format!("{words} === 'Captured: rook. Ahead by 5.'"));
    assert_eq!(browser.text("#play-mine .taken b"), "+5");
    browser.assert_quiet();
}

/// With a clock, every move in the list and in the PGN has its player's time, which a reload keeps.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn the_move_list_has_clocks_and_the_opponent_takes_its_time() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    // Answers state a time that is told from the pause between moves.
    browser.evaluate(
        "const own = fetch; window.fetch = async (path, ...rest) => { \
           const answer = await own(path, ...rest); \
           if (path !== '/v1/move') return answer; \
           const body = { ...await answer.json(), thinking_ms: 2500 }; \
           window.moved = performance.now(); \
           return new Response(JSON.stringify(body)); }",
    );
    browser.choose("#play-form", "10+5");
    browser.play(BOARD, "e2", "e4");
    browser.wait(&format!("{} === 2", count("#play-moves button")));
    browser.evaluate("window.took = performance.now() - window.moved");
    let took = browser.evaluate("window.took").as_f64().unwrap();
    assert!(took > 1500.0, "{took}");
    let clocks =
        "[...document.querySelectorAll('#play-moves time')].map((it) => it.textContent).join()";
    let shown = browser.evaluate(clocks);
    let shown = shown.as_str().unwrap();
    assert!(
        shown.starts_with("10:0") && shown.matches(':').count() == 2,
        "{shown}"
    );
    browser.reload();
    browser.wait(&format!("{clocks} === '{shown}'"));
    // The PGN has the clocks, which the analysis shows.
    browser.click("#play-resign");
    browser.click("dialog .danger");
    browser.wait("localStorage.games?.split('[%clk 0:10:0').length === 3");
    browser.click("#play-analyse");
    browser.wait(&contains("#analyse-moves", &format!("e4 {}", &shown[..5])));
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn the_opponent_accepts_a_draw_only_if_it_is_not_winning() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    for (fen, answer) in [
        ("6k1/8/8/8/8/r7/1r6/6K1 w - - 0 1", "declines the draw"),
        ("6k1/8/R7/8/8/8/8/1R4K1 w - - 0 1", "A draw: agreement"),
    ] {
        browser.fill("#play-form [name=fen]", fen);
        browser.click("#play-form .main");
        browser.click("#play-draw");
        browser.wait(&contains(STATUS, answer));
        if answer.starts_with('A') {
            break;
        }
        // An offer is made once a move.
        assert_eq!(
            browser.evaluate("document.querySelector('#play-draw').disabled"),
            true
        );
        browser.click("#play-new");
        browser.wait("!document.querySelector('#play-form').hidden");
    }
    let games = browser.evaluate("localStorage.getItem('games')");
    let games = games.as_str().unwrap();
    assert!(games.contains("1/2-1/2"), "{games}");
    browser.assert_quiet();
}
