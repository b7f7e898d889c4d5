//! Tests analyses for Lichess's board, using the real binary and a stand-in for Lichess that
//! follows the published protocol.

mod board;

use super::{LONG, LONG_SEARCHES, Server, post};
use crate::support::wait_until;
use board::{Analysis, Lichess, TOKEN, WEAK_TOKEN};
use serde_json::{Value, json};
use shakmaty::CastlingMode;
use std::io::Write;
use std::io::{ErrorKind, Read};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::Duration;
use tempfile::NamedTempFile;
use tessera::chess::Game;

const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

fn token_file(token: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    writeln!(file, "# Lichess\n{token}").unwrap();
    file
}

/// Starts a server connected to the Lichess stand-in.
fn tessera(lichess: &Lichess, arguments: &[&str]) -> Server {
    let token = token_file(TOKEN);
    let (site, token) = (lichess.address.as_str(), token.path().to_str().unwrap());
    let mut all = vec!["--lichess-token-file", token];
    all.extend(["--lichess-site", site, "--lichess-broker", site]);
    all.extend(arguments);
    Server::start(&all)
}

/// Returns a limited analysis request for the initial position, in a session.
fn work(session: &str, limit: Value) -> Value {
    let mut work = json!({
        "sessionId": session, "threads": 1, "hash": 16, "multiPv": 1, "variant": "chess",
        "initialFen": START, "moves": [],
    });
    let fields = work.as_object_mut().unwrap();
    fields.extend(limit.as_object().unwrap().clone());
    work
}

/// Returns the number after a word of an info line.
fn number(line: &str, word: &str) -> u64 {
    let mut words = line.split(' ').skip_while(|&other| other != word);
    let number = words.nth(1).unwrap_or_else(|| panic!("no {word}: {line}"));
    number.parse().unwrap()
}

/// Returns the last line of an analysis that ends by itself.
fn last(analysis: Analysis) -> String {
    let lines = analysis.all();
    assert!(lines.iter().all(|line| line.starts_with("info ")));
    lines.last().expect("no lines").clone()
}

#[test]
fn an_engine_is_registered_once_and_then_updated() {
    let others = [
        json!({"id": "eei_other", "name": "Fairy"}),
        json!({"id": "eei_ours", "name": "Tessera", "maxThreads": 1, "maxHash": 1}),
    ];
    let lichess = Lichess::start(&others);
    let server = tessera(&lichess, &["--threads", "2"]);
    let engine = lichess.registered("Tessera");
    let known = ["id", "maxThreads", "maxHash"].map(|name| engine[name].clone());
    assert_eq!(known, [json!("eei_ours"), json!(2), json!(64)]);
    assert_eq!(lichess.engines()[0], others[0]);
    assert_eq!(lichess.engines().len(), 2);
    drop(server);

    let lichess = Lichess::start(&[]);
    let server = tessera(&lichess, &[]);
    let first = lichess.registered("Tessera");
    drop(server);
    let _again = tessera(&lichess, &[]);
    wait_until("the registration is renewed", || {
        lichess.registered("Tessera") != first
    });
    let engines = lichess.engines();
    assert_eq!((engines.len(), &engines[0]["id"]), (1, &first["id"]));
}

#[test]
fn an_analysis_respects_each_limit_and_has_the_fields_that_lichess_reads() {
    let lichess = Lichess::start(&[]);
    let _server = tessera(&lichess, &[]);
    let line = last(lichess.ask(work("one", json!({"nodes": 700}))));
    assert!(number(&line, "nodes") >= 700, "{line}");
    for word in ["depth", "time", "multipv"] {
        number(&line, word);
    }
    assert!(
        line.contains(" score cp ") && line.contains(" pv "),
        "{line}"
    );
    let line = last(lichess.ask(work("two", json!({"movetime": 600}))));
    assert!((400..60_000).contains(&number(&line, "time")), "{line}");
    let line = last(lichess.ask(work("three", json!({"depth": 3}))));
    assert!(number(&line, "depth") >= 3, "{line}");
}

#[test]
fn analyses_have_the_requested_number_of_lines() {
    let lichess = Lichess::start(&[]);
    let _server = tessera(&lichess, &[]);
    let lines = lichess.ask(work("one", json!({"nodes": 500, "multiPv": 3})));
    let lines = lines.all();
    let places = lines
        .iter()
        .rev()
        .take(3)
        .map(|line| number(line, "multipv"));
    assert_eq!(places.collect::<Vec<_>>(), [3, 2, 1]);
}

#[test]
fn an_endless_analysis_ends_when_the_user_leaves() {
    let lichess = Lichess::start(&[]);
    // Searches run one at a time, so the next starts when this one has ended.
    let server = tessera(&lichess, &["--jobs", "1"]);
    for limit in [json!({"movetime": 86_400_000}), json!({"infinite": true})] {
        let mut analysis = lichess.ask(work("one", limit));
        analysis.next().unwrap();
        drop(analysis);
        server.json("/v1/move", &json!({"limits": {"nodes": 10}}).to_string());
    }
}

#[test]
fn a_session_keeps_its_tree_and_another_has_its_own() {
    let lichess = Lichess::start(&[]);
    let _server = tessera(&lichess, &[]);
    last(lichess.ask(work("one", json!({"nodes": 3000}))));
    let line = last(lichess.ask(work("one", json!({"nodes": 100}))));
    assert!(number(&line, "nodes") >= 3000, "{line}");
    let line = last(lichess.ask(work("two", json!({"nodes": 100}))));
    assert!(number(&line, "nodes") < 1000, "{line}");
}

#[test]
fn a_request_replaces_the_one_before_it_in_its_session_only() {
    let lichess = Lichess::start(&[]);
    let _server = tessera(&lichess, &["--jobs", "2"]);
    let endless = |session| {
        let mut analysis = lichess.ask(work(session, json!({"infinite": true})));
        analysis.next().unwrap();
        analysis
    };
    let (first, mut other) = (endless("one"), endless("two"));
    let line = last(lichess.ask(work("one", json!({"nodes": 100, "moves": ["e2e4"]}))));
    assert!(line.starts_with("info "));
    first.all();
    other.next().unwrap();
}

#[test]
fn castling_is_king_takes_rook_in_both_directions() {
    let lichess = Lichess::start(&[]);
    let _server = tessera(&lichess, &[]);
    // The second position is a Chess960 position in which the king castles within its corner.
    for (fen, moves) in [
        (
            "r3k2r/pppq1ppp/8/8/8/8/PPPQ1PPP/R3K2R w KQkq - 0 1",
            vec!["e1h1", "e8a8"],
        ),
        ("6kr/pppp1ppp/8/8/8/8/PPPP1PPP/6KR w Hh - 0 1", vec!["g1h1"]),
        ("6kr/pppp1ppp/8/8/8/8/PPPP1PPP/6KR w Hh - 0 1", vec![]),
    ] {
        let position = json!({"initialFen": fen, "moves": moves, "nodes": 300, "multiPv": 5});
        let lines = lichess.ask(work(fen, position)).all();
        let mut game = Game::from_fen(fen, CastlingMode::Chess960).unwrap();
        for mv in &moves {
            game.play(game.parse_move(mv).unwrap());
        }
        assert!(!lines.is_empty());
        for line in lines {
            let mut game = game.clone();
            for mv in line.split_once(" pv ").unwrap().1.split(' ') {
                let mv = game
                    .parse_move(mv)
                    .unwrap_or_else(|error| panic!("{error}: {line}"));
                game.play(mv);
            }
        }
    }
}

#[test]
fn impossible_work_ends_without_lines_and_the_next_is_answered() {
    let lichess = Lichess::start(&[]);
    let _server = tessera(&lichess, &[]);
    for wrong in [json!({"moves": ["e2e5"]}), json!({"variant": "atomic"})] {
        assert_eq!(lichess.ask(work("one", wrong)).all(), [""; 0]);
    }
    last(lichess.ask(work("one", json!({"nodes": 50}))));
}

#[test]
fn errors_of_lichess_are_survived() {
    let lichess = Lichess::start(&[]);
    lichess.fail(&[503, 502]);
    let _server = tessera(&lichess, &[]);
    lichess.registered("Tessera");
    last(lichess.ask(work("one", json!({"nodes": 50}))));
    // The failure hits the next request of any kind.
    lichess.fail(&[500]);
    wait_until("the failure has hit a request", || lichess.failures() == 0);
    last(lichess.ask(work("one", json!({"nodes": 50}))));
}

fn refused(lichess: &Lichess, token: &str) -> Output {
    let token = token_file(token);
    let site = lichess.address.as_str();
    Command::new(env!("CARGO_BIN_EXE_tessera"))
        .args(["serve", "--port", "0", "--backend", "random"])
        .args(["--lichess-site", site, "--lichess-broker", site])
        .arg("--lichess-token-file")
        .arg(token.path())
        .output()
        .unwrap()
}

#[test]
fn a_token_that_is_refused_ends_the_server_in_one_line() {
    let lichess = Lichess::start(&[]);
    for (token, says) in [
        ("lip_unknown", "does not accept the token"),
        (WEAK_TOKEN, "engine:read and engine:write"),
        ("two words", "line 2 of"),
    ] {
        let output = refused(&lichess, token);
        assert!(!output.status.success());
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(says), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(!message.contains(token), "{message}");
    }
    assert_eq!(lichess.engines(), [Value::Null; 0]);
}

#[cfg(unix)]
#[test]
#[ignore = "long: runs in tools/test --all"]
fn an_interrupt_ends_an_analysis_and_the_server() {
    let lichess = Lichess::start(&[]);
    let mut server = tessera(&lichess, &[&["--jobs", "2"], &LONG_SEARCHES[..]].concat());
    let mut running = server.send(&post("/v1/move", "", LONG));
    server.wait_for_searches(1);
    let mut analysis = lichess.ask(work("one", json!({"infinite": true})));
    analysis.next().unwrap();
    super::end::signal(&server, "-INT");
    analysis.all();
    // HTTP clients have ten seconds, but analyses for Lichess end immediately.
    sleep(Duration::from_millis(500));
    running.get_ref().set_nonblocking(true).unwrap();
    let unanswered = running.read(&mut [0]).unwrap_err();
    assert_eq!(unanswered.kind(), ErrorKind::WouldBlock);
    assert!(super::end::wait(&mut server).success());
}
