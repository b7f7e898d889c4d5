//! Tests the page's review in a browser, using it as a person would.

use super::Server;
use super::browser::Browser;
use super::page;
use serde_json::{Value, json};

/// The scholar's mate. Black's last move allows the mate, as do most other moves.
const GAME: &str = "[White \"Anna\"]
[Black \"Bert\"]
[WhiteElo \"900\"]

1. e4 {[%clk 0:03:00]} e5 {[%clk 0:02:55]} 2. Bc4 {[%clk 0:02:50]} Nc6 {[%clk 0:02:51]}
3. Qh5 {[%clk 0:02:44]} Nf6 {[%clk 0:02:30]} 4. Qxf7# {[%clk 0:02:40]} 1-0
";

/// Opens the page, whose reviews use Tessera's own scores; returns `None` if it cannot be shown.
fn open(server: &Server, part: &str) -> Option<Browser> {
    let mut browser = page::open(server, part)?;
    browser.evaluate("localStorage.setItem('settings', '{\"judge\":\"none\"}')");
    browser.reload();
    Some(browser)
}

/// An expression that returns the page's faults: content wider than the window, and invalid
/// numbers.
const FAULTS: &str = r#"(() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  const blank = document.body.innerText.match(/.*\b(NaN|undefined|Infinity)\b.*/);
  return [scrollWidth > clientWidth ? scrollWidth : null, blank && blank[0]].filter(Boolean);
})()"#;

/// Pastes the game and waits for its review.
fn review(browser: &mut Browser) {
    browser.fill("#review-form [name=pgn]", GAME);
    browser.fill("#review-form [name=nodes]", "60");
    browser.click("#review-form .main");
    wait_for_review(browser);
}

fn wait_for_review(browser: &mut Browser) {
    browser.wait("document.querySelector('#review-status')?.textContent.includes('to look at')");
}

/// Clicks the button with this text.
fn press(browser: &mut Browser, text: &str) {
    let text = json!(text);
    let button = format!(
        "[...document.querySelectorAll('#review-why button')].find((it) => it.textContent === {text})"
    );
    browser.wait(&button);
    browser.evaluate(&format!("{button}.click()"));
}

fn assert_whole(browser: &mut Browser, what: &str) {
    for width in [390, 1440] {
        browser.resize(width);
        assert_eq!(browser.evaluate(FAULTS), json!([]), "{what} at {width}");
    }
}

#[test]
fn a_game_is_pasted_and_stepped_through() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "review") else {
        return;
    };
    assert_whole(&mut browser, "the form");
    review(&mut browser);
    assert_whole(&mut browser, "the review");
    assert_eq!(browser.text("#review-title"), "Anna – Bert, 1-0");
    let count = |selector: &str| format!("document.querySelectorAll('{selector}').length");
    assert_eq!(browser.evaluate(&count("#review-graph path.white")), 1);
    assert_eq!(browser.evaluate(&count("#review-graph path.clock")), 2);
    // The name of a phase stays within the graph, however late the phase begins.
    let late = browser.evaluate(
        "import('/page/review_parts.js').then(({ scoreGraph }) => { \
           const ply = (index) => ({ ply: index + 1, win: 50, side: 'white', phase: index < 39 ? 'opening' : 'endgame', clock: null }); \
           const [svg] = scoreGraph({ start: { win: 50 }, plies: Array.from({ length: 40 }, (_, index) => ply(index)) }, () => {}); \
           document.querySelector('#review-graph').append(svg); \
           const right = (it) => it.getBoundingClientRect().right; \
           const room = right(svg) - right(svg.querySelector('text')); \
           svg.remove(); \
           return room; \
         })",
    );
    assert!(late.as_f64() >= Some(0.0), "{late}");
    browser.click("#review-moves [data-ply=\"6\"]");
    let heading = browser.text("#review-moment");
    assert_eq!(heading, "3... Nf6??: Blunder");
    let said = browser.text("#review-why");
    assert!(
        said.contains("Qxf7# is mate") && said.contains("rated"),
        "{said}"
    );
    for shown in [
        "#review-board .badge.blunder",
        "#review-board square.fact",
        "#review-curve .played",
        "#review-moves [aria-current].blunder",
    ] {
        browser.wait(&format!("document.querySelector('{shown}')"));
    }
    assert_eq!(browser.text("#review-below time"), "2:44");
    // Step with keys, and with a click on the middle of the graph.
    let place = "+document.querySelector('#review-graph').getAttribute('aria-valuenow')";
    for (key, ply) in [("ArrowRight", 7), ("Home", 0), ("ArrowDown", 6)] {
        browser.evaluate(&format!(
            "document.body.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}))"
        ));
        let found = browser.evaluate(place).as_u64().unwrap();
        // Other moves may also be marked.
        assert!(
            found == ply || key == "ArrowDown" && found > 0,
            "{key} {found}"
        );
    }
    browser.click("#review-graph svg");
    assert!([3, 4].contains(&browser.evaluate(place).as_u64().unwrap()));
    // Clicking a line's move plays it.
    browser.click("#review-moves [data-ply=\"6\"]");
    browser.click("#review-why .line button:last-of-type");
    browser.wait("document.querySelector('#review-why .line [aria-current]')");
    browser.assert_quiet();
    // The review is still open after returning to the page.
    browser.go("about:blank");
    browser.go(&format!("http://{}/#review", server.address));
    wait_for_review(&mut browser);
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn the_better_move_is_found_at_the_second_attempt() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "review") else {
        return;
    };
    review(&mut browser);
    let body = json!({"pgn": GAME, "nodes": 60}).to_string();
    let report = server.json("/v1/review", &body);
    let best = report["games"][0]["report"]["plies"][5]["best"]["moves"][0].clone();
    browser.click("#review-moves [data-ply=\"6\"]");
    press(&mut browser, "Try again");
    let heading = browser.text("#review-moment");
    assert_eq!(heading, "Find a better move than 3... Nf6");
    press(&mut browser, "Hint");
    let hint = browser.text("#review-why");
    let piece = format!("on {} moves", best["from"].as_str().unwrap());
    assert!(hint.contains(&piece), "{hint}");
    // This move also allows mate.
    browser.fill("#review-typed-move", "a6");
    browser.click("#review .typed button");
    browser.wait("document.querySelector('#review-why').textContent.includes('not good enough')");
    let said = browser.text("#review-why");
    assert!(
        said.contains("a6 is not good enough: #1 instead of"),
        "{said}"
    );
    assert!(said.contains("Qxf7# is mate"), "{said}");
    press(&mut browser, "Once more");
    for end in ["from", "to"] {
        browser.click_square("#review-board", best[end].as_str().unwrap());
    }
    browser.wait("document.querySelector('#review-why .right')");
    let said = browser.text("#review-why .right");
    assert!(
        said.starts_with(&format!(
            "{} is the best move",
            best["san"].as_str().unwrap()
        )),
        "{said}"
    );
    press(&mut browser, "Back to the game");
    press(&mut browser, "Try again");
    press(&mut browser, "Show the answer");
    let said = browser.text("#review-why");
    assert!(said.starts_with("The best move is "), "{said}");
    assert_whole(&mut browser, "the answer");
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_game_that_was_played_is_reviewed() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    browser.type_move("play", "e4");
    browser.wait("document.querySelectorAll('#play-moves button').length === 2");
    browser.click("#play-resign");
    browser.click("dialog[open] [value=yes]");
    browser.wait("document.querySelector('#play-status').textContent.includes('resignation')");
    browser.click("#play-review");
    wait_for_review(&mut browser);
    assert!(browser.text("#review-title").starts_with("You – "));
    assert_eq!(
        browser.evaluate("document.querySelectorAll('#review-moves button').length"),
        2
    );
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_review_is_saved_as_a_page_and_as_pgn() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "play") else {
        return;
    };
    // Other parts of the page pass on their game.
    browser.evaluate(&format!(
        "dispatchEvent(new CustomEvent('review', {{ detail: {} }}))",
        json!(GAME)
    ));
    wait_for_review(&mut browser);
    browser.evaluate(
        "window.saved = []; \
         URL.createObjectURL = (blob) => { window.saved.push(blob); return 'data:,'; }",
    );
    let saved = |browser: &mut Browser, count: usize| -> String {
        browser.wait(&format!("window.saved.length === {count}"));
        let text = browser.evaluate(&format!("window.saved[{}].text()", count - 1));
        text.as_str().unwrap().to_owned()
    };
    browser.click("#review-save");
    let page = saved(&mut browser, 1);
    assert!(page.starts_with("<!doctype html>") && page.contains("Anna – Bert, reviewed"));
    browser.click("#review-pgn");
    let pgn = saved(&mut browser, 2);
    assert!(
        pgn.contains("[Annotator \"Tessera") && pgn.contains("$4"),
        "{pgn}"
    );
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn one_of_several_games_is_chosen_and_faults_are_shown() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "review") else {
        return;
    };
    let games = format!("{GAME}\n{}", GAME.replace("Anna", "Carl"));
    browser.fill("#review-form [name=pgn]", &games);
    browser.wait("!document.querySelector('#review-form [name=game]').closest('label').hidden");
    let names = browser.evaluate(
        "[...document.querySelectorAll('#review-form [name=game] option')].map((it) => it.textContent)",
    );
    assert_eq!(names, json!(["1: Anna – Bert", "2: Carl – Bert"]));
    browser.fill("#review-form [name=game]", "1");
    browser.click("#review-form .main");
    wait_for_review(&mut browser);
    assert_eq!(browser.text("#review-title"), "Carl – Bert, 1-0");
    browser.click("#review-another");
    browser.fill("#review-form [name=pgn]", "1. e4 e5 2. Ke4 Nc6");
    browser.click("#review-form .main");
    wait_for_review(&mut browser);
    let status = browser.text("#review-status");
    assert!(
        status.contains("read up to 1... e5: 2. Ke4 is not a legal move"),
        "{status}"
    );
    browser.assert_quiet();
    browser.click("#review-another");
    browser.fill("#review-form [name=pgn]", "nonsense");
    browser.click("#review-form .main");
    browser.wait("document.querySelector('#trouble').textContent.includes('not reviewed')");
    let trouble: Value = browser.evaluate("document.querySelector('#trouble').textContent");
    assert!(trouble.as_str().unwrap().contains("nonsense"), "{trouble}");
}

/// Mistakes of a reviewed side come back until they are solved.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn mistakes_are_practised() {
    let server = Server::start(&[]);
    let Some(mut browser) = open(&server, "review") else {
        return;
    };
    let link = "document.querySelector('nav [href=\"#mistakes\"]').hidden";
    assert_eq!(browser.evaluate(link), true);
    browser.fill("#review-form [name=side]", "black");
    review(&mut browser);
    browser.wait(&format!("!{link}"));
    browser.key("Home");
    press(&mut browser, "Practise my mistakes");
    browser.wait("location.hash === '#mistakes'");
    let status = |text: &str| {
        format!(
            "document.querySelector('#mistakes-status').textContent.includes({})",
            json!(text)
        )
    };
    let stored = "JSON.parse(localStorage.mistakes)";
    // Other mistakes may have been found as well: only the one that allows mate is kept.
    browser.evaluate(&format!(
        "localStorage.mistakes = JSON.stringify({stored}.filter(({{ played }}) => played === 'Nf6'))"
    ));
    assert_eq!(browser.evaluate(&format!("{stored}.length")), 1);
    browser.reload();
    browser.wait(&status("Black to move: find a better move than Nf6."));
    let solution = browser.evaluate(&format!("{stored}[0].best.moves[0].san"));
    let solution = solution.as_str().unwrap().to_owned();
    browser.type_move("mistakes", "Nf6");
    browser.wait(&status("Nf6 was played in the game."));
    browser.type_move("mistakes", "a6");
    browser.wait(&status("a6 is not good enough."));
    browser.type_move("mistakes", &solution);
    browser.wait(&status("is the best move."));
    let told = browser.text("#mistakes-told");
    assert!(
        told.contains(&format!("The best line is 3… {solution}"))
            && told.contains(" from White's view."),
        "{told}"
    );
    // It was not solved at first sight, so it comes back soon; at first sight, a day later.
    let wait = format!("({stored}[0].due - Date.now()) / 60000");
    let minutes = browser.evaluate(&wait).as_f64().unwrap();
    assert!((0.0..=10.0).contains(&minutes), "{minutes}");
    browser.click("#mistakes-next");
    browser.wait(&status("Nothing to solve now."));
    let soon = format!(
        "{{ const kept = {stored}; kept[0].due = 0; localStorage.mistakes = JSON.stringify(kept); }}"
    );
    for days in [1, 3, 7, 21] {
        browser.evaluate(&soon);
        browser.reload();
        browser.type_move("mistakes", &solution);
        browser.wait(&status("is the best move."));
        let minutes = browser.evaluate(&wait).as_f64().unwrap();
        let expected = f64::from(days) * 1440.0;
        assert!((expected - 5.0..=expected).contains(&minutes), "{minutes}");
    }
    browser.evaluate(&soon);
    browser.reload();
    browser.type_move("mistakes", &solution);
    browser.wait("document.querySelector('#mistakes-count').textContent.includes('1 learned')");
    browser.evaluate("URL.createObjectURL = (blob) => { window.saved = blob; return 'data:,'; }");
    browser.click("#mistakes-save");
    let csv = browser.evaluate("window.saved.text()");
    let csv: Vec<&str> = csv.as_str().unwrap().lines().collect();
    assert_eq!(csv[0], "FEN,Solution,Played,Game,Solved,Due");
    assert!(csv[1].contains(",Nf6,\"Anna – Bert, 1-0\",5,"), "{csv:?}");
    // From here, the position can be analysed and played.
    browser.click("#mistakes-analyse");
    browser.wait("document.querySelector('#analyse-moves button')");
    browser.assert_quiet();
}
