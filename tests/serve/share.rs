//! Tests reviews that are shared by a link: over HTTP, and in a browser as a person would.

use super::browser::Browser;
use super::review::GAME;
use super::{Answer, Server, page};
use crate::support::wait_until;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// A player's name that would run a script in a page that shows it as markup.
const HOSTILE: &str = "</script><img src=x onerror=document.title=1><script>document.title=2//";

fn sharing(folder: &Path, more: &[&str]) -> Server {
    let mut arguments = vec!["--share-in", folder.to_str().unwrap()];
    arguments.extend(more);
    Server::start(&arguments)
}

fn share(server: &Server, pgn: &str) -> Answer {
    let body = json!({"pgn": pgn, "nodes": 40}).to_string();
    server.post("/v1/review/share", &body)
}

/// Returns the path of a new link.
fn path(answer: &Answer) -> String {
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["path"].as_str().unwrap().to_owned()
}

#[test]
fn a_link_shows_the_review_until_it_expires_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("links");
    let server = sharing(&folder, &["--share-for", "2d"]);
    assert_eq!(
        server.get("/v1/agents").json()["limits"]["shared_s"],
        172_800
    );
    let answer = share(&server, GAME);
    let first = path(&answer);
    let name = first.strip_prefix("/shared/").unwrap();
    assert!(
        name.len() == 32 && name.bytes().all(|it| it.is_ascii_hexdigit()),
        "{name}"
    );
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let expires = answer.json()["expires"].as_u64().unwrap();
    assert!(
        (now + 172_700..=now + 172_800).contains(&expires),
        "{expires}"
    );
    let second = path(&share(&server, GAME));
    assert_ne!(first, second);
    drop(server);

    let server = sharing(&folder, &[]);
    let page = server.get(&first);
    assert_eq!(page.status, 200);
    assert!(page.body.contains("Anna – Bert"), "{}", page.body);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'sha256-",
        "style-src 'sha256-",
        "frame-ancestors 'none'",
        "sandbox allow-scripts",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    for (header, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-robots-tag", "noindex"),
    ] {
        assert_eq!(page.header(header), Some(value));
    }
    // The file's name has the expiry. An earlier one is heeded, and the file deleted.
    drop(server);
    let file = |expires: u64| folder.join(format!("{name}.{expires}.html"));
    fs::rename(file(expires), file(now + 2)).unwrap();
    let server = sharing(&folder, &[]);
    wait_until("the link expires", || server.get(&first).status == 404);
    let gone = server.get(&first);
    assert!(gone.body.contains("it has expired"), "{}", gone.body);
    assert!(!file(now + 2).exists());
    assert_eq!(server.get(&second).status, 200);
}

#[test]
fn only_servers_with_a_folder_share_and_only_one_game_at_a_time() {
    let server = Server::start(&[]);
    assert_eq!(
        server.get("/v1/agents").json()["limits"]["shared_s"],
        Value::Null
    );
    let said = "this server shares no reviews: start it with `--share-in` and a folder";
    let answer = share(&server, GAME);
    assert_eq!(
        (answer.status, &answer.json()["detail"]),
        (404, &json!(said))
    );
    let answer = server.get("/shared/00000000000000000000000000000000");
    assert_eq!(
        (answer.status, &answer.json()["detail"]),
        (404, &json!(said))
    );

    let folder = tempfile::tempdir().unwrap();
    let server = sharing(folder.path(), &[]);
    let answer = share(&server, &format!("{GAME}\n{GAME}"));
    assert_eq!(
        (answer.status, &answer.json()["field"]),
        (400, &json!("pgn"))
    );
    for path in [
        "",
        "x",
        "../Cargo.toml",
        "..%2F..%2FCargo.toml",
        "%FF",
        "a/b",
    ] {
        assert_eq!(server.get(&format!("/shared/{path}")).status, 404, "{path}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A link is read without a token, but made only with one.
#[test]
fn tokens_guard_the_making_of_links() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "secret\n").unwrap();
    let links = folder.path().join("links");
    let server = sharing(&links, &["--token-file", tokens.to_str().unwrap()]);
    assert_eq!(share(&server, GAME).status, 401);
    let body = json!({"pgn": GAME, "nodes": 40}).to_string();
    let made = server.ask(&super::post(
        "/v1/review/share",
        "Authorization: Bearer secret\r\n",
        &body,
    ));
    assert_eq!(server.get(&path(&made)).status, 200);
    let foreign = "Authorization: Bearer secret\r\nSec-Fetch-Site: cross-site\r\n";
    let refused = server.ask(&super::post("/v1/review/share", foreign, &body));
    assert_eq!(refused.status, 403);
}

#[test]
fn a_folder_that_cannot_be_used_is_one_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .args([
            "serve",
            "--port",
            "0",
            "--backend",
            "random",
            "--judge",
            "none",
            "--share-in",
        ])
        .arg(file.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("cannot share reviews in "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Opens the page on a review of a game.
fn review(server: &Server, pgn: &str) -> Option<Browser> {
    let mut browser = page::open(server, "review")?;
    browser.evaluate("localStorage.setItem('settings', '{\"judge\":\"none\"}')");
    browser.reload();
    browser.fill("#review-form [name=pgn]", pgn);
    browser.fill("#review-form [name=nodes]", "40");
    browser.click("#review-form .main");
    browser.wait("document.querySelector('#review-status').textContent.includes('to look at')");
    Some(browser)
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn a_review_is_shared_from_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let server = sharing(folder.path(), &["--share-for", "1d"]);
    let Some(mut browser) = review(&server, &GAME.replace("Bert <b>", HOSTILE)) else {
        return;
    };
    browser.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }");
    browser.click("#review-share");
    browser.wait("document.getElementById('share').open");
    let about = browser.text("#share-about");
    assert!(
        about.starts_with("Anyone with this link can read the review until "),
        "{about}"
    );
    browser.click("#share-copy");
    browser.wait("document.getElementById('share-status').textContent === 'Copied'");
    let link = browser.evaluate("window.copied");
    let link = link.as_str().unwrap();
    assert!(
        link.starts_with(&format!("http://{}/shared/", server.address)),
        "{link}"
    );
    // The same review keeps its link.
    browser.click("#share button:not([type])");
    browser.click("#review-share");
    browser.wait("document.getElementById('share').open");
    assert_eq!(
        browser.evaluate("document.getElementById('share-link').value"),
        link
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    browser.assert_quiet();
    browser.go(link);
    browser.wait("document.querySelectorAll('#moves button').length === 14");
    let title = browser.evaluate("document.title");
    assert_eq!(title, format!("Anna – {HOSTILE}, reviewed"));
    assert_eq!(
        browser.evaluate("document.querySelectorAll('img').length"),
        0
    );
    browser.click("#next-mark");
    assert!(!browser.text("#moment").is_empty());
    // The page has the styles that its script sets, but nothing of this server's pages.
    let bar = "document.querySelector('#bar > div').getBoundingClientRect().height > 0";
    assert_eq!(browser.evaluate(bar), true);
    let storage = "(() => { try { return localStorage.length; } catch { return 'none'; } })()";
    assert_eq!(browser.evaluate(storage), "none");
    let fetched = browser.evaluate("fetch('/v1/agents').then(() => 'read', () => 'refused')");
    assert_eq!(fetched, "refused");
}

#[test]
#[ignore = "in a browser: runs in tools/test --all"]
fn the_page_offers_no_link_where_none_is_made() {
    let server = Server::start(&[]);
    let Some(mut browser) = review(&server, GAME) else {
        return;
    };
    assert_eq!(
        browser.evaluate("document.getElementById('review-share').hidden"),
        true
    );
    browser.assert_quiet();
}
