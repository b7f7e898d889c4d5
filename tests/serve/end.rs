//! How a server begins and ends.

use super::{PATIENCE, Server, post, read_head};
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Asks the process to end.
fn terminate(server: &Server) {
    let pid = server.child.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(killed.success());
}

fn wait(server: &mut Server) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = server.child.try_wait().unwrap() {
            return status;
        }
        assert!(begun.elapsed() < PATIENCE);
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_request_that_runs_is_answered_before_the_end() {
    let mut server = Server::start(&[]);
    let body = json!({"limits": {"movetime_ms": 1500}}).to_string();
    let mut running = server.send(&post("/v1/move", "", &body));
    sleep(Duration::from_millis(500));
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
fn a_request_that_takes_too_long_is_cut_with_what_it_has() {
    let mut server = Server::start(&[]);
    let body = json!({"limits": {"movetime_ms": 60_000}}).to_string();
    let mut running = server.send(&post("/v1/move", "", &body));
    sleep(Duration::from_millis(500));
    let begun = Instant::now();
    terminate(&server);
    assert_eq!(read_head(&mut running).0, 200);
    let mut text = String::new();
    running.read_to_string(&mut text).unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert!(answer["move"]["uci"].is_string());
    assert!(wait(&mut server).success());
    assert!(begun.elapsed() < Duration::from_secs(25));
}

#[test]
fn a_port_that_is_taken_is_one_line() {
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
fn a_network_that_is_not_there_ends_the_server_in_one_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .args(["serve", "--port", "0", "--net", "no/such/network.pt"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message.lines().count(), 1, "{message}");
}
