//! Tests reviews over HTTP: every format, unusual games, errors, and clients that disconnect.

use super::analyse::chunks;
use super::{Server, post, read_head};
use serde_json::{Value, json};
use std::io::Read;
use tessera::data::pgn::read_game;

/// A beginners' game with many mistakes, clock times, a comment and a variation.
pub const GAME: &str = "[Event \"Club night\"]
[White \"Anna\"]
[Black \"Bert <b>\"]
[WhiteElo \"1210\"]
[BlackElo \"1180\"]
[Result \"0-1\"]

1. e4 {[%clk 0:05:00]} e5 {[%clk 0:04:58]} 2. Nf3 {[%clk 0:04:50]} Nc6 (2... d6) 3. Bc4 Nd4?
4. Nxe5 Qg5 5. Nxf7 Qxg2 6. Rf1 Qxe4+ 7. Be2 Nf3# {smothered} 0-1
";

fn asked(pgn: &str) -> Value {
    json!({"pgn": pgn, "nodes": 40})
}

fn request(accept: &str, body: &Value) -> String {
    post(
        "/v1/review",
        &format!("Accept: {accept}\r\n"),
        &body.to_string(),
    )
}

/// Returns the lines of a stream.
fn stream(server: &Server, body: &Value) -> Vec<Value> {
    let mut stream = server.send(&request("application/x-ndjson", body));
    assert_eq!(read_head(&mut stream).0, 200);
    let text = chunks(&mut stream);
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn of<'a>(updates: &'a [Value], event: &str) -> Vec<&'a Value> {
    updates.iter().filter(|it| it["event"] == event).collect()
}

#[test]
fn searched_plies_are_streamed_before_the_review() {
    let server = Server::start(&[]);
    let updates = stream(&server, &asked(GAME));
    let begun = &updates[0];
    assert_eq!(begun["event"], "game");
    assert_eq!(
        (begun["number"].as_u64(), begun["games"].as_u64()),
        (Some(1), Some(1))
    );
    let plies = begun["report"]["plies"].as_array().unwrap();
    assert_eq!(plies.len(), 14);
    assert_eq!(
        (&plies[0]["san"], &plies[0]["win"]),
        (&json!("e4"), &Value::Null)
    );
    assert_eq!(begun["report"]["game"]["warnings"], json!([]));
    let searched = of(&updates, "ply");
    let counts: Vec<_> = searched.iter().map(|it| it["searched"].as_u64()).collect();
    assert_eq!(counts, (1..=14).map(Some).collect::<Vec<_>>());
    let mut places: Vec<_> = searched.iter().map(|it| it["ply"].as_u64()).collect();
    places.sort_unstable();
    assert_eq!(places, (0..14).map(Some).collect::<Vec<_>>());
    assert_eq!(of(&updates, "people").len(), 14);
    let [review] = of(&updates, "review")[..] else {
        panic!("one review")
    };
    let report = &review["report"];
    for update in searched {
        let win = match update["ply"].as_u64().unwrap() as usize {
            0 => &report["start"]["win"],
            ply => &report["plies"][ply - 1]["win"],
        };
        assert_eq!(&update["win"], win, "{update}");
    }
    assert_eq!(report["game"]["ending"], "checkmate");
    assert_eq!(report["plies"][0]["clock"], 300.0);
    assert!(report["white"]["accuracy"].is_f64() && report["black"]["estimate"].is_object());
    let pgn = review["pgn"].as_str().unwrap();
    let record = read_game(pgn.as_bytes()).unwrap().record;
    assert!(record.nodes.iter().any(|node| node.eval.is_some()), "{pgn}");
    // The author's remarks are still there.
    for part in ["(2... d6)", "{smothered}", "$2"] {
        assert!(pgn.contains(part), "{part} in {pgn}");
    }
    let last = updates.last().unwrap();
    assert_eq!(last["event"], "result");
    assert_eq!(last["summary"]["games"].as_array().unwrap().len(), 1);
    assert!(server.metric("tessera_nodes_total") > 14 * 20);
}

/// The same game in each format is searched only once.
#[test]
fn a_review_has_every_form() {
    let server = Server::start(&[]);
    let body = json!({"pgn": GAME, "nodes": 40, "side": "white", "elo": 1700});
    let answer = server.json("/v1/review", &body.to_string());
    let report = &answer["games"][0]["report"];
    assert_eq!(report["side"], "white");
    let words = report["plies"][0]["words"][0].as_str().unwrap();
    assert!(words.contains("rated 1700"), "{words}");
    let nodes = server.metric("tessera_nodes_total");
    let events = server.ask(&request("text/event-stream", &body));
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    for event in ["game", "ply", "people", "review", "result"] {
        let line = format!("event: {event}\ndata: {{");
        assert!(events.body.contains(&line), "{event} in {}", events.body);
    }
    let page = server.ask(&request("text/html", &body));
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(
        page.body
            .contains("<title>Anna – Bert &lt;b>, reviewed</title>")
    );
    let pgn = server.ask(&request("application/x-chess-pgn", &body));
    assert_eq!(pgn.header("content-type"), Some("application/x-chess-pgn"));
    assert_eq!(pgn.body, answer["games"][0]["pgn"].as_str().unwrap());
    assert_eq!(server.metric("tessera_nodes_total"), nodes);
}

/// Unusual games and their expected results.
#[test]
fn odd_games_are_reviewed_as_far_as_they_go() {
    let server = Server::start(&[]);
    let long = "Nf3 Nf6 Ng1 Ng8 ".repeat(150);
    for (pgn, plies, said) in [
        ("1. e4 e5 2. Nf3", 3, ""),
        (
            "1. e4 e5 2. Ke4 Nc6 3. d4 *",
            2,
            "2. Ke4 is not a legal move",
        ),
        ("1. e4 (1. d4 d5 (1... Nf6)) e5 {good} 1/2-1/2", 2, ""),
        (
            "[FEN \"4k3/8/8/8/8/8/4R3/4K3 b - - 0 1\"]\n[SetUp \"1\"]\n\n1... Kd7 2. Rd2+ *",
            2,
            "",
        ),
        (
            "[Variant \"Chess960\"]\n[FEN \"bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9\"]\n\n9. Nc3 Nd7 *",
            2,
            "",
        ),
        (&long, 600, ""),
        ("[White \"a\"]\n[Result \"*\"]\n\n*", 0, ""),
    ] {
        let answer = server.json("/v1/review", &json!({"pgn": pgn, "nodes": 10}).to_string());
        let report = &answer["games"][0]["report"];
        assert_eq!(report["plies"].as_array().unwrap().len(), plies, "{pgn}");
        let warnings = report["game"]["warnings"].to_string();
        assert!(warnings.contains(said), "{warnings}");
        assert_eq!(warnings == "[]", said.is_empty(), "{warnings}");
    }
}

#[test]
fn several_games_are_reviewed_and_a_broken_one_is_named() {
    let server = Server::start(&[]);
    let second = GAME.replace("Anna", "Dora").replace("Bert <b>", "Anna");
    let games = format!("{GAME}\n[FEN \"nonsense\"]\n\n1. e4 *\n\n{second}");
    let body = json!({"pgn": games, "nodes": 10, "player": "anna"});
    let updates = stream(&server, &body);
    let numbers = |event: &str| -> Vec<_> {
        let found = of(&updates, event).into_iter();
        found.map(|it| it["number"].as_u64().unwrap()).collect()
    };
    assert_eq!(
        (numbers("game"), numbers("review")),
        (vec![1, 2], vec![1, 2])
    );
    let sides: Vec<_> = of(&updates, "review")
        .iter()
        .map(|it| &it["report"]["side"])
        .collect();
    assert_eq!(sides, ["white", "black"]);
    let summary = &updates.last().unwrap()["summary"];
    assert_eq!(summary["player"], "anna");
    let unreadable = summary["unreadable"][0].as_str().unwrap();
    let line = 2 + GAME.lines().count();
    assert!(
        unreadable.starts_with(&format!("game 2, line {line}: `nonsense` is not a FEN")),
        "{unreadable}"
    );
    let page = server.ask(&request("text/html", &body));
    assert_eq!((page.status, &page.json()["field"]), (400, &json!("pgn")));
}

/// Errors are returned before a stream starts.
#[test]
fn faults_are_returned_as_problems() {
    let server = Server::start(&[]);
    for (body, field) in [
        (json!({}), "pgn"),
        (json!({"pgn": "hello"}), "pgn"),
        (json!({"pgn": "1. e4", "nodes": 900_000}), "nodes"),
        (json!({"pgn": "1. e4", "elo": 0}), "elo"),
        (json!({"pgn": "1. e4", "side": "both"}), "side"),
        (json!({"pgn": GAME, "player": "Zoe"}), "player"),
        (json!({"pgn": "1. e4", "network": "none such"}), "network"),
    ] {
        let answer = server.ask(&request("application/x-ndjson", &body));
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("application/problem+json"), "{answer:?}");
        assert_eq!(
            (answer.status, &answer.json()["field"]),
            (400, &json!(field)),
            "{body}"
        );
    }
}

#[test]
fn a_review_ends_when_its_client_leaves() {
    let server = Server::start(&["--max-nodes", "10000000000000"]);
    // This takes longer than the test waits for anything.
    let body = json!({"pgn": GAME, "nodes": 100_000_000_000_u64});
    let mut stream = server.send(&request("application/x-ndjson", &body));
    assert_eq!(read_head(&mut stream).0, 200);
    let mut beginning = [0; 100];
    stream.read_exact(&mut beginning).unwrap();
    // The next request starts when this one has ended.
    let mut next = server.send(&request("application/x-ndjson", &asked("1. e4 e5")));
    assert_eq!(read_head(&mut next).0, 200);
    server.wait_for_queue(1);
    drop(stream);
    assert!(chunks(&mut next).contains("\"event\":\"result\""));
}
