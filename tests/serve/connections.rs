//! Tests silent, slow and closed connections.

use super::{LONG, LONG_SEARCHES, Server, post, read_head};
use serde_json::json;
use std::io::ErrorKind;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

/// Number of idle connections, which is below the limits on open files of this process and the
/// server.
const MANY: usize = 800;

fn answers(server: &Server) {
    assert_eq!(server.post("/v1/eval", "{}").status, 200);
}

/// Returns whether the server closes a connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).is_ok()
}

#[test]
fn idle_connections_block_nobody_and_are_closed() {
    // These are idle for longer than the client waits for its answer.
    let server = Server::start(&["--idle-time", "1h"]);
    let idle: Vec<TcpStream> = (0..MANY).map(|_| server.connect()).collect();
    answers(&server);
    drop(idle);
    let server = Server::start(&["--idle-time", "1s"]);
    let mut idle: Vec<TcpStream> = (0..MANY).map(|_| server.connect()).collect();
    assert!(idle.iter_mut().all(is_closed));
    answers(&server);
}

#[test]
fn half_a_head_times_out() {
    let servers = ["1s", "1h"].map(|time| Server::start(&["--idle-time", time]));
    let mut halves = servers.each_ref().map(Server::connect);
    for half in &mut halves {
        half.write_all(b"POST /v1/eval HTTP/1.1\r\nHost: tess")
            .unwrap();
    }
    let [short, long] = &mut halves;
    assert!(is_closed(short));
    // If the option had no effect, the other one would be closed by now, too.
    sleep(Duration::from_secs(1));
    long.set_nonblocking(true).unwrap();
    let open = long.read(&mut [0]).unwrap_err();
    assert_eq!(open.kind(), ErrorKind::WouldBlock);
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
    let short = json!({"limits": {"nodes": 1}}).to_string();
    assert_eq!(server.post("/v1/move", &short).status, 200);
    drop(slow);
    answers(&server);
}

#[test]
fn disconnected_clients_free_their_slots() {
    let options = ["--jobs", "1", "--streams", "4"];
    let server = Server::start(&[&options[..], &LONG_SEARCHES].concat());
    let request = post("/v1/analyse", "Accept: application/x-ndjson\r\n", LONG);
    for _ in 0..4 {
        let mut stream = server.send(&request);
        assert_eq!(read_head(&mut stream).0, 200);
        drop(stream);
    }
    // The only slot is free again.
    let short = json!({"limits": {"nodes": 1}}).to_string();
    assert_eq!(server.post("/v1/move", &short).status, 200);
    server.wait_for_queue(0);
}
