//! Tests silent, slow and closed connections.

use super::{Server, post, read_head};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Number of idle connections, which is below the limits on open files of this process and the
/// server.
const MANY: usize = 800;

fn answers(server: &Server) {
    let begun = Instant::now();
    assert_eq!(server.post("/v1/eval", "{}").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// Returns whether the server closes a connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).is_ok()
}

#[test]
fn idle_connections_block_nobody_and_are_closed() {
    let server = Server::start(&["--idle-time", "3s"]);
    let mut idle: Vec<TcpStream> = (0..MANY).map(|_| server.connect()).collect();
    answers(&server);
    assert!(idle.iter_mut().all(is_closed));
    answers(&server);
}

#[test]
fn half_a_head_times_out() {
    let server = Server::start(&["--idle-time", "1s"]);
    let mut half = server.connect();
    half.write_all(b"POST /v1/eval HTTP/1.1\r\nHost: tess")
        .unwrap();
    let begun = Instant::now();
    assert!(is_closed(&mut half));
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn half_a_body_times_out() {
    let server = Server::start(&["--idle-time", "1s"]);
    let request = post("/v1/eval", "", "{\"moves\": []}");
    let mut stream = server.connect();
    stream
        .write_all(&request.as_bytes()[..request.len() - 3])
        .unwrap();
    assert_eq!(read_head(&mut std::io::BufReader::new(stream)).0, 408);
}

#[test]
fn a_full_server_admits_the_next_client_when_one_leaves() {
    let server = Server::start(&["--connections", "2", "--idle-time", "1s"]);
    let _idle: Vec<TcpStream> = (0..2).map(|_| server.connect()).collect();
    // The request waits until the idle connections are closed, and is then served.
    answers(&server);
}

#[test]
fn stalled_readers_do_not_block_others() {
    let server = Server::start(&["--jobs", "1"]);
    let body = json!({"lines": 10, "limits": {"movetime_ms": 3000}}).to_string();
    let request = post("/v1/analyse", "Accept: application/x-ndjson\r\n", &body);
    let slow: Vec<_> = (0..4).map(|_| server.send(&request)).collect();
    let begun = Instant::now();
    let short = json!({"limits": {"nodes": 1}}).to_string();
    assert_eq!(server.post("/v1/move", &short).status, 200);
    // The four earlier requests delay this one at most by their full time.
    assert!(begun.elapsed() < Duration::from_secs(30));
    drop(slow);
    answers(&server);
}

#[test]
fn disconnected_clients_free_their_slots() {
    let server = Server::start(&["--jobs", "1", "--streams", "4"]);
    let body = json!({"limits": {"movetime_ms": 60_000}}).to_string();
    let request = post("/v1/analyse", "Accept: application/x-ndjson\r\n", &body);
    for _ in 0..4 {
        let mut stream = server.send(&request);
        assert_eq!(read_head(&mut stream).0, 200);
        drop(stream);
    }
    // The only slot is free again.
    let short = json!({"limits": {"nodes": 1}}).to_string();
    assert_eq!(server.post("/v1/move", &short).status, 200);
    let waiting = || {
        let metrics = server.get("/metrics").body;
        metrics.contains("tessera_waiting 0")
    };
    let begun = Instant::now();
    while !waiting() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        sleep(Duration::from_millis(50));
    }
}
