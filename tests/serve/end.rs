//! Tests the startup and shutdown of a server.

use super::analyse::chunks;
use super::{LONG, LONG_SEARCHES, PATIENCE, Server, post, read_head};
use crate::support::{exit, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

/// Sends SIGTERM to the process.
fn terminate(server: &Server) {
    signal(server, "-TERM");
}

pub fn signal(server: &Server, signal: &str) {
    let pid = server.child.id().to_string();
    let killed = Command::new("kill").args([signal, &pid]).status().unwrap();
    assert!(killed.success());
}

pub fn wait(server: &mut Server) -> ExitStatus {
    exit(&mut server.child)
}

#[test]
fn a_running_request_is_answered_before_shutdown() {
    let mut server = Server::start(&[]);
    let body = json!({"limits": {"movetime_ms": 1500}}).to_string();
    let mut running = server.send(&post("/v1/move", "", &body));
    server.wait_for_searches(1);
    terminate(&server);
    let (status, _) = read_head(&mut running);
    let mut text = String::new();
    running.read_to_string(&mut text).unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 200);
    assert!(answer["move"]["uci"].is_string());
    assert!(wait(&mut server).success());
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_long_request_is_cut_short_with_its_results() {
    let options = ["--jobs", "1", "--max-nodes", "10000000000000"];
    let mut server = Server::start(&[&options[..], &LONG_SEARCHES].concat());
    let games = json!({"pgn": "1. e4 e5 2. Nf3", "nodes": 100_000_000_000_u64}).to_string();
    let streamed = "Accept: application/x-ndjson\r\n";
    let mut reviewing = server.send(&post("/v1/review", streamed, &games));
    assert_eq!(read_head(&mut reviewing).0, 200);
    // The first line comes when the review begins.
    assert!(!reviewing.fill_buf().unwrap().is_empty());
    let mut running = server.send(&post("/v1/move", "", LONG));
    server.wait_for_searches(1);
    // This request waits for the running one and never starts.
    let mut waiting = server.send(&post("/v1/move", "", LONG));
    server.wait_for_queue(1);
    terminate(&server);
    assert_eq!(read_head(&mut running).0, 200);
    let mut text = String::new();
    running.read_to_string(&mut text).unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert!(answer["move"]["uci"].is_string());
    assert_eq!(read_head(&mut waiting).0, 503);
    let text = chunks(&mut reviewing);
    assert!(
        text.contains("4 of 4 positions were not searched"),
        "{text}"
    );
    assert!(wait(&mut server).success());
}

/// Connected clients get either a complete response or none at all.
#[test]
fn under_load_every_request_is_answered_or_refused() {
    let mut server = Server::start(&["--jobs", "2"]);
    let body = json!({"limits": {"nodes": 300}}).to_string();
    let request = post("/v1/move", "", &body);
    let address = server.address.clone();
    let answers: Arc<[AtomicUsize; 8]> = Arc::default();
    let clients: Vec<_> = (0..answers.len())
        .map(|client| {
            let (address, request) = (address.clone(), request.clone());
            let answers = Arc::clone(&answers);
            std::thread::spawn(move || ask_until_refused(&address, &request, &answers[client]))
        })
        .collect();
    wait_until("every client has had answers", || {
        answers.iter().all(|count| count.load(Relaxed) >= 3)
    });
    terminate(&server);
    assert!(wait(&mut server).success());
    for client in clients {
        let statuses = client.join().unwrap();
        assert!(statuses.contains(&200), "{statuses:?}");
        let known = |status: &u16| [200, 503].contains(status);
        assert!(statuses.iter().all(known), "{statuses:?}");
    }
}

/// Repeats a request until the connection is refused; returns the statuses, and counts them.
fn ask_until_refused(address: &str, request: &str, count: &AtomicUsize) -> Vec<u16> {
    let mut statuses = Vec::new();
    loop {
        let Ok(mut stream) = TcpStream::connect(address) else {
            return statuses;
        };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut answer = String::new();
        let answered = stream.write_all(request.as_bytes());
        let answered = answered.and_then(|()| stream.read_to_string(&mut answer));
        if answered.is_err() || answer.is_empty() {
            return statuses;
        }
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
        statuses.push(head.split(' ').nth(1).unwrap().parse().unwrap());
        count.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_server_can_be_checked_for_readiness() {
    let server = Server::start(&[]);
    let check = |address: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
        command
            .args(["serve", "--check", address])
            .output()
            .unwrap()
    };
    // The check waits for seconds, and a busy machine may need more.
    wait_until("the server is ready", || {
        check(&server.address).status.success()
    });
    let by_name = server.address.replace("127.0.0.1", "localhost");
    wait_until("it is ready by name", || check(&by_name).status.success());
    let address = server.address.clone();
    drop(server);
    let output = check(&address);
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("is not ready"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

/// The log file is plain text, too.
#[test]
fn a_second_signal_ends_it_at_once() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
    command
        .args(["serve", "--port", "0", "--backend", "random"])
        .args(LONG_SEARCHES)
        .env("RUST_LOG", "info")
        .stderr(log.reopen().unwrap());
    let mut server = Server::of(&mut command);
    server.wait_until_ready();
    let _running = server.send(&post("/v1/move", "", LONG));
    server.wait_for_searches(1);
    signal(&server, "-INT");
    wait_until("connections are refused", || {
        TcpStream::connect(&server.address).is_err()
    });
    // Long enough for the server to end too early. It would end after ten seconds.
    sleep(Duration::from_millis(500));
    assert!(server.child.try_wait().unwrap().is_none());
    signal(&server, "-INT");
    assert!(!wait(&mut server).success());
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert!(log.contains("stopped at once"), "{log}");
    assert!(log.contains("/readyz 200"), "{log}");
    assert!(!log.contains('\x1b'), "{log}");
}

#[test]
fn names_and_bracketed_addresses_can_be_bound() {
    let mut binds = vec!["localhost"];
    if TcpListener::bind("[::1]:0").is_ok() {
        binds.extend(["[::1]", "::1"]);
    }
    for bind in binds {
        let server = Server::start(&["--bind", bind]);
        assert_eq!(server.get("/healthz").status, 200, "{bind}");
    }
    for (bind, reason) in [
        ("localhost:80", "--port"),
        ("[::1]:80", "--port"),
        ("", "--port"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
            .args([
                "serve",
                "--port",
                "0",
                "--backend",
                "random",
                "--bind",
                bind,
            ])
            .output()
            .unwrap();
        assert!(!output.status.success());
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn a_port_in_use_gets_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .args(["serve", "--backend", "random", "--port", &port])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("cannot listen on 127.0.0.1"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn a_missing_network_gets_one_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .args(["serve", "--port", "0", "--net", "no/such/network.pt"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[cfg(not(feature = "cloud"))]
#[test]
fn lichess_without_a_client_gets_one_line() {
    let mut token = tempfile::NamedTempFile::new().unwrap();
    writeln!(token, "lip_token").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .args(["serve", "--port", "0", "--backend", "random"])
        .arg("--lichess-token-file")
        .arg(token.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("--features cloud"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}
