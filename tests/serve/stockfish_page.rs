//! Tests Stockfish in the browser, as the judge of reviews and beside Tessera in the analysis, and
//! the server's judge in its place.

use super::Server;
use super::browser::Browser;
use super::page::open;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Black's last move allows the mate.
const GAME: &str = "[White \"Anna\"]\n\n1. e4 e5 2. Bc4 Nc6 3. Qh5 Nf6 4. Qxf7# 1-0";

/// Time limit for a search of Stockfish, allowing for a very busy machine.
const SEARCH: Duration = Duration::from_secs(600);

/// Counts the workers that are started and ended.
const COUNTED: &str = "window.workers = [0, 0]; \
    window.Worker = class extends Worker { \
      constructor(path) { super(path); window.workers[0] += 1; } \
      terminate() { if (!this.over) window.workers[1] += 1; this.over = true; super.terminate(); } \
    }";

/// Opens the page of a server without a judge; returns `None` if the page or Stockfish is missing.
fn page(server: &Server, part: &str) -> Option<Browser> {
    if server.get("/page/stockfish.json").json()["script"].is_null() {
        crate::skip::skip("Stockfish for the browser (tools/setup --stockfish fetches it)");
        return None;
    }
    open(server, part)
}

fn server() -> Server {
    Server::start(&["--judge", "none"])
}

/// Pastes the game and requests its review.
fn ask(browser: &mut Browser) {
    browser.fill("#review-form [name=pgn]", GAME);
    browser.fill("#review-form [name=nodes]", "60");
    browser.click("#review-form .main");
}

fn wait_for_review(browser: &mut Browser) {
    let is_done = "document.querySelector('#review-status')?.textContent.includes('to look at')";
    browser.wait_within(SEARCH, is_done);
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn its_files_may_compile_code_only_in_a_worker() {
    let server = server();
    let script = server.get("/page/stockfish.json").json()["script"].clone();
    let Some(script) = script.as_str() else {
        crate::skip::skip("Stockfish for the browser (tools/setup --stockfish fetches it)");
        return;
    };
    for (path, kind) in [
        (script.to_owned(), "text/javascript; charset=utf-8"),
        (script.replace(".js", ".wasm"), "application/wasm"),
    ] {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            server.address
        );
        let (status, headers) = super::read_head(&mut server.send(&head));
        assert_eq!(status, 200, "{path}");
        let header = |name: &str| {
            let found = headers.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        assert_eq!(header("content-type"), kind);
        assert!(header("content-security-policy").contains("'wasm-unsafe-eval'"));
        // The names contain the version.
        assert!(header("cache-control").contains("immutable"));
    }
    let policy = server.get("/");
    let policy = policy.header("content-security-policy").unwrap();
    assert!(!policy.contains("eval"), "{policy}");
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn it_judges_a_review_and_an_attempt() {
    let server = server();
    let Some(mut browser) = page(&server, "review") else {
        return;
    };
    let judge = browser.text("#review-judge");
    assert_eq!(
        judge,
        "Judge: Stockfish in this browser, 50,000 nodes a position."
    );
    browser.evaluate(COUNTED);
    ask(&mut browser);
    wait_for_review(&mut browser);
    let scores = browser.text("#review-scores");
    assert!(
        scores.starts_with("Scores by Stockfish 19 Lite WASM, 50"),
        "{scores}"
    );
    let workers = browser.evaluate("window.workers");
    assert!(workers[0].as_u64() > Some(0), "{workers}");
    assert_eq!(workers[0], workers[1]);
    browser.click("#review-moves [data-ply=\"6\"]");
    assert_eq!(browser.text("#review-moment"), "3... Nf6??: Blunder");
    // An attempt has the same judge.
    browser.wait("document.querySelector('#review-why .main')");
    browser.click("#review-why .main");
    browser.fill("#review-typed-move", "a6");
    browser.click("#review .typed button");
    let is_judged = "document.querySelector('#review-why').textContent.includes('not good enough')";
    browser.wait_within(SEARCH, is_judged);
    let workers = browser.evaluate("window.workers");
    assert_eq!(workers[0], workers[1]);
    // The scores are kept for a reload.
    browser.reload();
    wait_for_review(&mut browser);
    assert_eq!(browser.text("#review-scores"), scores);
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_review_is_cancelled() {
    let server = server();
    let Some(mut browser) = page(&server, "review") else {
        return;
    };
    browser.evaluate(COUNTED);
    ask(&mut browser);
    browser.wait("window.workers[0] > 0");
    assert_eq!(browser.text("#review-another"), "Cancel");
    browser.click("#review-another");
    browser.wait("!document.querySelector('#review-form').hidden");
    let workers = browser.evaluate("window.workers");
    assert_eq!(workers[0], workers[1]);
    browser.assert_quiet();
}

/// A worker that fails, and one that is silent, with clocks that make the page's patience short.
#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_failure_is_told_and_leaves_the_marks_to_tessera() {
    let server = server();
    let failing =
        "setTimeout(() => this.dispatchEvent(new ErrorEvent('error', { message: 'no memory' })))";
    let silent = "const wait = window.setTimeout; window.setTimeout = (act, time) => wait(act, time >= 60_000 ? 0 : time)";
    for (fault, reason) in [
        (failing, "no memory"),
        (silent, "it has not answered for 120 seconds"),
    ] {
        let Some(mut browser) = page(&server, "review") else {
            return;
        };
        browser.evaluate(&format!(
            "window.Worker = class extends EventTarget {{ \
               constructor() {{ super(); {fault}; }} postMessage() {{}} terminate() {{}} \
             }}"
        ));
        ask(&mut browser);
        wait_for_review(&mut browser);
        let trouble = browser.text("#trouble");
        let told = format!(
            "Stockfish failed in this browser: {reason}. The marks come from Tessera's own scores."
        );
        assert_eq!(trouble, told);
        let scores = browser.text("#review-scores");
        assert!(!scores.starts_with("Scores by Stockfish"), "{scores}");
    }
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_page_without_it_tells_how_to_get_it() {
    let server = server();
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let source = "const own = window.fetch; window.fetch = async (path, ...rest) => \
        path === '/page/stockfish.json' ? new Response('{\"script\":null}') : own(path, ...rest)";
    let source = json!({"source": source});
    browser.send("Page.addScriptToEvaluateOnNewDocument", source);
    if server.get("/").body.contains("built without the board") {
        crate::skip::skip("the board of the page (tools/setup fetches it by npm)");
        return;
    }
    browser.go(&format!("http://{}/#review", server.address));
    let step = "This page comes without Stockfish.";
    let judge = browser.text("#review-judge");
    assert_eq!(
        judge,
        format!("No judge: the marks come from Tessera's own scores. {step}")
    );
    for place in ["#settings-judge-note", "#analyse-judge"] {
        browser.go(&format!("http://{}/#analyse", server.address));
        assert_eq!(browser.text(place), step);
    }
    assert_eq!(
        browser.evaluate("document.querySelector('#analyse-beside').disabled"),
        true
    );
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn the_judge_is_chosen_and_remembered() {
    let server = server();
    let Some(mut browser) = page(&server, "review") else {
        return;
    };
    browser.click("#review-change");
    let is_disabled = "document.querySelector('#settings [name=judge][value=server]').disabled";
    assert_eq!(browser.evaluate(is_disabled), true);
    // Hidden nodes keep no review from being requested.
    browser.fill("#review-form [name=nodes]", "0");
    browser.fill("#review-form [name=pgn]", "1. e4");
    let is_valid = "document.forms['review-form'].checkValidity()";
    assert_eq!(browser.evaluate(is_valid), true);
    browser.click("#settings [name=judge][value=none] + span");
    browser.click("#settings .main");
    let none = "No judge: the marks come from Tessera's own scores.";
    assert_eq!(browser.text("#review-judge"), none);
    assert_eq!(browser.evaluate(is_valid), false);
    browser.reload();
    assert_eq!(browser.text("#review-judge"), none);
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn its_line_stands_beside_tesseras() {
    let server = server();
    let Some(mut browser) = page(&server, "analyse") else {
        return;
    };
    browser.click("#analyse-beside");
    browser.fill("#analyse-form [name=text]", "1. e4 e5 2. Qh5 Ke7");
    browser.click("#analyse-form .main");
    browser.fill("#analyse-engine [name=nodes]", "300");
    browser.click("#analyse-run");
    let line = "document.querySelector('#analyse-judged li')";
    let is_shown = format!("{line}?.textContent.startsWith('#1 3. Qxe5#')");
    browser.wait_within(SEARCH, &is_shown);
    let judge = browser.text("#analyse-judge");
    assert!(judge.starts_with("Stockfish 19 Lite WASM, "), "{judge}");
    // Text that is copied has a space between score and move as well.
    browser.wait("/^#1 3. Qxe5#/.test(document.querySelector('#analyse-lines li').textContent)");
    browser.key("ArrowLeft");
    browser.wait(&format!(
        "/^[+−]\\d+\\.\\d\\d 2… /.test({line}?.textContent)"
    ));
    browser.reload();
    let is_on = "document.querySelector('#analyse-beside').checked";
    assert_eq!(browser.evaluate(is_on), true);
    browser.assert_quiet();
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn the_servers_judge_comes_first() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/faulty_engine.py");
    let tessera = env!("CARGO_BIN_EXE_tessera");
    let mut command = Command::new(tessera);
    // The judge is Tessera, and fails nowhere.
    command.env("ENGINE", tessera).env("BACKEND", "random");
    command.env("AT", "no such position");
    command.args(["serve", "--port", "0", "--backend", "random"]);
    command.args(["--judge-nodes", "50", "--judge"]).arg(engine);
    let server = Server::of(&mut command);
    server.wait_until_ready();
    let Some(mut browser) = open(&server, "review") else {
        return;
    };
    let judge = browser.text("#review-judge");
    assert_eq!(
        judge,
        "Judge: Tessera 0.1.0 on the server, 50 nodes a position."
    );
    browser.evaluate(COUNTED);
    ask(&mut browser);
    wait_for_review(&mut browser);
    let scores = browser.text("#review-scores");
    assert!(
        scores.starts_with("Scores by Tessera 0.1.0, 50 nodes"),
        "{scores}"
    );
    browser.click("nav [href=\"#analyse\"]");
    browser.click("#analyse-beside");
    browser.fill("#analyse-form [name=text]", "1. f3 e5 2. g4");
    browser.click("#analyse-form .main");
    browser.fill("#analyse-engine [name=nodes]", "300");
    browser.click("#analyse-run");
    browser.wait(
        "document.querySelector('#analyse-judged li')?.textContent.startsWith('−#1 2… Qh4#')",
    );
    let judge = browser.text("#analyse-judge");
    assert!(judge.starts_with("Tessera 0.1.0, "), "{judge}");
    assert_eq!(browser.evaluate("window.workers"), json!([0, 0]));
    // A request that fails does not switch it off, and is repeated.
    browser.evaluate(
        "window.answer = fetch; window.fetch = () => Promise.reject(new TypeError('Failed to fetch'))",
    );
    browser.key("ArrowLeft");
    browser.wait("document.querySelector('#trouble button')");
    let trouble = browser.text("#trouble");
    assert!(trouble.ends_with("stopped. Try again"), "{trouble}");
    let is_on = "document.querySelector('#analyse-beside').checked";
    assert_eq!(browser.evaluate(is_on), true);
    browser.evaluate("window.fetch = window.answer");
    browser.click("#trouble button");
    browser.wait("document.querySelector('#analyse-judged li')?.textContent.includes('2. ')");
    browser.assert_quiet();
}

#[test]
fn an_outline_shows_how_the_server_reads_a_game() {
    let server = server();
    let body = json!({"pgn": "[White \"Anna\"]\n\n1. e4 e5 2. Ke4 Nc6", "side": "black"});
    let outline = server.json("/v1/review/outline", &body.to_string());
    let report = &outline["report"];
    assert_eq!(report["white"]["name"], "Anna");
    assert_eq!(report["side"], "black");
    let plies = report["plies"].as_array().unwrap().iter();
    let sans: Vec<_> = plies.map(|ply| ply["san"].as_str().unwrap()).collect();
    assert_eq!(sans, ["e4", "e5"]);
    assert!(report["start"]["win"].is_null() && report["plies"][0]["win"].is_null());
    let two = json!({"pgn": format!("{GAME}\n\n{GAME}")}).to_string();
    let (status, problem) = server.problem("/v1/review/outline", &two);
    assert_eq!((status, &problem["field"]), (400, &json!("pgn")));
}
