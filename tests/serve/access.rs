//! Tests tokens, rate limits, queues and origins.

use super::{LONG, LONG_SEARCHES, Server, post, read_head};
use crate::support::wait_until;
use serde_json::json;
use std::io::Write;
use std::process::Command;

#[test]
fn requests_without_a_token_are_refused() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "# for the site\nletmein").unwrap();
    let server = Server::start(&["--token-file", file.path().to_str().unwrap()]);
    // The host is checked before the token.
    let rebound = post("/v1/eval", "", "{}").replace("localhost", "evil.example");
    assert_eq!(server.ask(&rebound).status, 421);
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
    assert_eq!(ask("Authorization: bearer letmein\r\n").status, 200);
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn a_token_that_no_request_can_send_keeps_the_server_from_starting() {
    for (token, character) in [
        ("schlüssel", "the character ü (U+00FC)"),
        ("two words", "a blank (U+0020)"),
        ("bell\u{7}", "a control character (U+0007)"),
    ] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "# for the site\nletmein\n{token}").unwrap();
        for option in ["--token-file", "--lichess-token-file"] {
            let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
                .args(["serve", "--port", "0", "--backend", "random", option])
                .arg(file.path())
                .output()
                .unwrap();
            assert!(!output.status.success());
            let message = String::from_utf8(output.stderr).unwrap();
            assert!(message.contains("line 3 of "), "{message}");
            assert!(message.contains(character), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }
}

#[test]
fn other_machines_are_admitted_only_on_request() {
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
fn excess_requests_get_a_retry_time() {
    let server = Server::start(&["--rate", "2"]);
    let ask = || server.post("/v1/eval", "{}");
    assert_eq!(ask().status, 200);
    let mut refused = None;
    // The slower the machine, the longer it takes to ask too often.
    wait_until("a request is refused", || {
        refused = Some(ask()).filter(|answer| answer.status != 200);
        refused.is_some()
    });
    let refused = refused.unwrap();
    assert_eq!(refused.status, 429);
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..5).contains(&seconds), "{seconds}");
}

#[test]
fn a_full_queue_refuses_requests() {
    let options = ["--jobs", "1", "--queue", "0"];
    let server = Server::start(&[&options[..], &LONG_SEARCHES].concat());
    let _running = server.send(&post("/v1/move", "", LONG));
    server.wait_for_searches(1);
    let refused = server.post("/v1/move", &json!({"limits": {"nodes": 1}}).to_string());
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    // Evaluations have their own queue.
    assert_eq!(server.post("/v1/eval", "{}").status, 200);
}

#[test]
fn a_client_has_a_limited_number_of_streams() {
    let server = Server::start(&[&["--streams", "1"], &LONG_SEARCHES[..]].concat());
    let request = post("/v1/analyse", "Accept: application/x-ndjson\r\n", LONG);
    let mut first = server.send(&request);
    assert_eq!(read_head(&mut first).0, 200);
    assert_eq!(server.ask(&request).status, 429);
    drop(first);
    wait_until("the stream is free again", || {
        read_head(&mut server.send(&request)).0 == 200
    });
}

#[test]
fn foreign_pages_are_admitted_by_origin() {
    let server = Server::start(&["--origin", "https://Example.org:443/"]);
    let ask = |origin: &str| {
        let headers = format!("Origin: {origin}\r\nSec-Fetch-Site: cross-site\r\n");
        server.ask(&post("/v1/eval", &headers, "{}"))
    };
    let allowed = |origin: &str| {
        let answer = ask(origin);
        let allowed = answer.header("access-control-allow-origin");
        allowed.map(str::to_owned)
    };
    assert_eq!(
        allowed("https://example.org").as_deref(),
        Some("https://example.org")
    );
    assert_eq!(allowed("https://example.com"), None);
    assert_eq!(ask("https://example.org").status, 200);
    assert_eq!(ask("https://example.com").status, 403);
    // Requests for images have no origin.
    let image = "GET /api/cloud-eval?fen=8/8/8/8/8/8/8/8 HTTP/1.1\r\nHost: localhost\r\n\
                 Sec-Fetch-Site: cross-site\r\nConnection: close\r\n\r\n";
    assert_eq!(server.ask(image).status, 403);
    // Links to the page are allowed.
    let link = image.replace("/api/cloud-eval?fen=8/8/8/8/8/8/8/8", "/docs");
    assert_eq!(server.ask(&link).status, 200);
}

#[test]
fn only_known_hosts_are_answered() {
    let server = Server::start(&["--host", "chess.example.org"]);
    let port = server.address.rsplit(':').next().unwrap();
    let ask = |target: &str, headers: &str| {
        let request = format!("GET {target} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        let answer = server.ask(&request);
        if answer.status != 200 {
            let kind = answer.header("content-type");
            assert_eq!(kind, Some("application/problem+json"), "{answer:?}");
        }
        (answer.status, answer.body)
    };
    for host in ["localhost", "127.0.0.1", "LOCALHOST.", "chess.example.org"] {
        for headers in [
            format!("Host: {host}\r\n"),
            format!("Host: {host}:{port}\r\n"),
        ] {
            assert_eq!(ask("/v1/agents", &headers).0, 200, "{headers}");
        }
    }
    for target in ["/", "/v1/agents", "/healthz", "/metrics", "/nothing"] {
        let (status, body) = ask(target, "Host: evil.example\r\n");
        assert_eq!(status, 421, "{target}");
        assert!(body.contains("`--host evil.example`"), "{body}");
    }
    let absolute = ask("http://evil.example/v1/agents", "Host: localhost\r\n");
    assert_eq!(absolute.0, 421);
    for headers in [
        "",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: a b\r\n",
    ] {
        assert_eq!(ask("/v1/agents", headers).0, 400, "{headers}");
    }
    assert_eq!(server.ask("GET /v1/agents HTTP/1.0\r\n\r\n").status, 200);
}
