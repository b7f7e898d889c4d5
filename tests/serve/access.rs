//! Tokens, rates, queues and origins.

use super::{Server, post, read_head};
use serde_json::json;
use std::io::Write;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

#[test]
fn without_a_token_nobody_gets_in() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "# for the site\nletmein").unwrap();
    let server = Server::start(&["--token-file", file.path().to_str().unwrap()]);
    let ask = |headers: &str| server.ask(&post("/v1/eval", headers, "{}"));
    for headers in [
        "",
        "Authorization: Bearer letmei\r\n",
        "Authorization: letmein\r\n",
    ] {
        let answer = ask(headers);
        assert_eq!(answer.status, 401, "{headers}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(ask("Authorization: Bearer letmein\r\n").status, 200);
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn others_than_this_machine_are_let_in_only_on_purpose() {
    let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .args([
            "serve",
            "--port",
            "0",
            "--backend",
            "random",
            "--bind",
            "0.0.0.0",
        ])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("--token-file"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn who_asks_too_often_is_told_when_to_come_again() {
    let server = Server::start(&["--rate", "2"]);
    let answers: Vec<_> = (0..10).map(|_| server.post("/v1/eval", "{}")).collect();
    assert_eq!(answers[0].status, 200);
    let refused: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 429)
        .collect();
    assert!(!refused.is_empty());
    for answer in refused {
        let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..5).contains(&seconds));
    }
}

#[test]
fn a_full_queue_sends_away() {
    let server = Server::start(&["--parallel", "1", "--queue", "0"]);
    let long = json!({"limits": {"movetime_ms": 20_000}}).to_string();
    let _running = server.send(&post("/v1/move", "", &long));
    // It needs a moment to begin.
    let refused = (0..100).find_map(|_| {
        sleep(Duration::from_millis(20));
        let short = json!({"limits": {"nodes": 1}}).to_string();
        Some(server.post("/v1/move", &short)).filter(|answer| answer.status != 200)
    });
    let refused = refused.unwrap();
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    // Evaluations have a queue of their own.
    assert_eq!(server.post("/v1/eval", "{}").status, 200);
}

#[test]
fn a_client_has_so_many_streams_and_no_more() {
    let server = Server::start(&["--streams", "1"]);
    let body = json!({"limits": {"movetime_ms": 20_000}}).to_string();
    let request = post("/v1/analyse", "Accept: application/x-ndjson\r\n", &body);
    let mut first = server.send(&request);
    assert_eq!(read_head(&mut first).0, 200);
    assert_eq!(server.ask(&request).status, 429);
    drop(first);
    let again = (0..200).any(|_| {
        sleep(Duration::from_millis(50));
        read_head(&mut server.send(&request)).0 == 200
    });
    assert!(again);
}

#[test]
fn pages_elsewhere_may_ask_if_their_origin_is_named() {
    let server = Server::start(&["--origin", "https://example.org"]);
    let allowed = |origin: &str| {
        let answer = server.ask(&post("/v1/eval", &format!("Origin: {origin}\r\n"), "{}"));
        let allowed = answer.header("access-control-allow-origin");
        allowed.map(str::to_owned)
    };
    assert_eq!(
        allowed("https://example.org").as_deref(),
        Some("https://example.org")
    );
    assert_eq!(allowed("https://example.com"), None);
}
