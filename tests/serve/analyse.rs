//! Tests streamed analyses, which end when the client disconnects.

use super::{LONG, LONG_SEARCHES, Server, post, read_head};
use serde_json::{Value, json};
use std::io::{BufRead, Read};

/// Reads a chunked body to its end.
pub(super) fn chunks(stream: &mut impl BufRead) -> String {
    let mut body = String::new();
    loop {
        let mut size = String::new();
        stream.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).unwrap();
        body.push_str(std::str::from_utf8(&chunk[..size]).unwrap());
        if size == 0 {
            return body;
        }
    }
}

fn analysis(accept: &str, body: Value) -> String {
    let accept = format!("Accept: {accept}\r\n");
    post("/v1/analyse", &accept, &body.to_string())
}

#[test]
fn growing_lines_are_streamed_before_the_result() {
    let server = Server::start(&[]);
    // The first report comes after a second at the latest.
    let body = json!({"lines": 3, "limits": {"movetime_ms": 3000}});
    let mut stream = server.send(&analysis("application/x-ndjson", body));
    let (status, headers) = read_head(&mut stream);
    assert_eq!(status, 200);
    assert!(headers.contains(&("content-type".to_owned(), "application/x-ndjson".to_owned())));
    let text = chunks(&mut stream);
    let updates: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (result, infos) = updates.split_last().unwrap();
    assert_eq!(result["event"], "result");
    assert!(!infos.is_empty());
    assert!(infos.iter().all(|info| info["event"] == "info"));
    assert_eq!(result["lines"].as_array().unwrap().len(), 3);
    assert_eq!(result["perspective"], "side_to_move");
    assert!(result["statistics"].as_array().unwrap().len() >= 3);
    let nodes: Vec<_> = updates
        .iter()
        .map(|of| of["nodes"].as_u64().unwrap())
        .collect();
    assert!(nodes.is_sorted(), "{nodes:?}");
}

#[test]
fn events_have_names() {
    let server = Server::start(&[]);
    let mut stream = server.send(&analysis(
        "text/event-stream",
        json!({"limits": {"nodes": 200}}),
    ));
    let (status, headers) = read_head(&mut stream);
    assert_eq!(status, 200);
    let kind = headers.iter().find(|(name, _)| name == "content-type");
    assert_eq!(kind.unwrap().1, "text/event-stream");
    let text = chunks(&mut stream);
    let last = text.trim_end().rsplit("\n\n").next().unwrap();
    assert!(last.starts_with("event: result\ndata: {"), "{last}");
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_queued_stream_sends_heartbeats() {
    let options = ["--jobs", "1", "--idle-time", "2s"];
    let server = Server::start(&[&options[..], &LONG_SEARCHES].concat());
    let running = server.send(&post("/v1/move", "", LONG));
    server.wait_for_searches(1);
    let mut streams = [
        ("application/x-ndjson", "\n"),
        ("text/event-stream", ":\n\n"),
    ]
    .map(|(accept, beat)| {
        let mut stream = server.send(&analysis(accept, json!({"limits": {"nodes": 10}})));
        let (status, headers) = read_head(&mut stream);
        assert_eq!(status, 200);
        let unbuffered = ("x-accel-buffering".to_owned(), "no".to_owned());
        assert!(headers.contains(&unbuffered), "{headers:?}");
        // There are two heartbeats, each in its own chunk.
        let mut waiting = vec![0; 2 * (5 + beat.len())];
        stream.read_exact(&mut waiting).unwrap();
        let chunk = format!("{:X}\r\n{beat}\r\n", beat.len());
        assert_eq!(String::from_utf8(waiting).unwrap(), chunk.repeat(2));
        stream
    });
    drop(running);
    for stream in &mut streams {
        assert!(chunks(stream).contains("result"));
    }
    // A client that disconnects is removed from the queue.
    server.wait_for_queue(0);
    let [_running, queued] = [(); 2].map(|()| {
        let request = post("/v1/analyse", "Accept: text/event-stream\r\n", LONG);
        let mut stream = server.send(&request);
        assert_eq!(read_head(&mut stream).0, 200);
        stream
    });
    server.wait_for_queue(1);
    drop(queued);
    server.wait_for_queue(0);
}

#[test]
fn an_analysis_ends_when_its_client_leaves() {
    // Searches run one at a time, so the next starts when this one has ended.
    let server = Server::start(&[&["--jobs", "1"], &LONG_SEARCHES[..]].concat());
    let mut stream = server.send(&post(
        "/v1/analyse",
        "Accept: application/x-ndjson\r\n",
        LONG,
    ));
    assert_eq!(read_head(&mut stream).0, 200);
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    drop(stream);
    server.json("/v1/move", &json!({"limits": {"nodes": 10}}).to_string());
}

#[test]
fn an_abandoned_move_request_is_not_searched() {
    let server = Server::start(&[&["--jobs", "1"], &LONG_SEARCHES[..]].concat());
    let stream = server.send(&post("/v1/move", "", LONG));
    server.wait_for_searches(1);
    drop(stream);
    server.json("/v1/move", &json!({"limits": {"nodes": 10}}).to_string());
}

#[test]
fn a_stalled_reader_does_not_block_others() {
    let server = Server::start(&["--jobs", "1"]);
    let body = json!({"lines": 10, "limits": {"movetime_ms": 1000}});
    let _slow = server.send(&analysis("application/x-ndjson", body));
    let answer = server.json("/v1/move", &json!({"limits": {"nodes": 10}}).to_string());
    assert!(answer["move"]["uci"].is_string());
}
