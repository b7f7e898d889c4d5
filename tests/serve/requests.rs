//! Tests moves and evaluations, and invalid requests.

use super::{Server, post};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;

/// White mates with Ra8.
const MATE: &str = "6k1/5ppp/8/8/8/8/8/R6K w - - 0 1";
/// Black is to move but has no legal move.
const STALEMATE: &str = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1";

#[test]
fn a_move_is_chosen_with_its_evaluation() {
    let server = Server::start(&[]);
    let body = json!({"fen": MATE, "limits": {"nodes": 500}}).to_string();
    let answer = server.json("/v1/move", &body);
    assert_eq!(answer["move"], json!({"uci": "a1a8", "san": "Ra8#"}));
    assert_eq!(answer["perspective"], "side_to_move");
    assert_eq!(answer["turn"], "white");
    let line = &answer["lines"][0];
    assert_eq!(line["score"], json!({"value": 1.0, "mate": 1}));
    assert_eq!(line["moves"][0]["uci"], "a1a8");
    assert!(answer["ending"].is_null());
}

#[test]
fn moves_are_read_in_both_notations() {
    let server = Server::start(&[]);
    let ask = |moves: &[&str]| {
        let body = json!({"moves": moves, "agent": "policy"}).to_string();
        server.json("/v1/move", &body)["fen"].clone()
    };
    let uci = ask(&["e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "f8c5", "e1g1"]);
    let san = ask(&["e4", "e5", "Nf3", "Nc6", "Bc4", "Bc5", "O-O"]);
    assert_eq!(uci, san);
    let bent = ask(&["e2-e4", "e5!", "Ng1f3", "Nc6?!", "Bf1-c4", "Bc5", "0-0"]);
    assert_eq!(uci, bent);
    assert!(uci.as_str().unwrap().contains("RNBQ1RK1 b kq"), "{uci}");
}

#[test]
fn every_agent_answers_by_name() {
    let server = Server::start(&[]);
    let described = server.get("/v1/agents").json();
    let agents = described["agents"].as_array().unwrap();
    let names: Vec<_> = agents.iter().map(|agent| agent["name"].clone()).collect();
    assert_eq!(names, ["mcts", "policy", "value", "human"]);
    for name in names {
        let body = json!({"agent": name, "limits": {"nodes": 20}}).to_string();
        let answer = server.json("/v1/move", &body);
        assert!(answer["move"]["uci"].is_string(), "{answer}");
    }
}

/// The time depends on the whole clock, although a search may use only a minute.
#[test]
fn the_human_agent_says_how_long_a_person_might_think() {
    let server = Server::start(&[]);
    let ask = |agent: &str, time: u64| {
        let body = json!({"agent": agent, "elo": 1500, "limits": {"clock": {"time_ms": time}}});
        server.json("/v1/move", &body.to_string())["thinking_ms"].as_u64()
    };
    let hours = ask("human", 36_000_000).unwrap();
    assert!((60_000..=3_600_000).contains(&hours), "{hours}");
    assert!(ask("human", 1000).unwrap() <= 100);
    assert_eq!(ask("policy", 1000), None);
    let answer = server.json("/v1/move", r#"{"agent": "human"}"#);
    assert!(answer["thinking_ms"].is_null(), "{answer}");
}

#[test]
fn a_game_that_is_over_has_an_ending_and_no_move() {
    let server = Server::start(&[]);
    let body = json!({"fen": STALEMATE}).to_string();
    for path in ["/v1/move", "/v1/analyse"] {
        let answer = server.json(path, &body);
        assert!(answer["move"].is_null());
        assert_eq!(answer["ending"], "stalemate");
    }
    let answer = server.json("/v1/eval", &body);
    assert_eq!(answer["policy"], json!([]));
}

#[test]
fn an_evaluation_has_results_and_a_policy() {
    let server = Server::start(&[]);
    let answer = server.json("/v1/eval", "{}");
    let policy = answer["policy"].as_array().unwrap();
    assert_eq!(policy.len(), 20);
    let priors: Vec<f64> = policy
        .iter()
        .map(|of| of["prior"].as_f64().unwrap())
        .collect();
    assert!((priors.iter().sum::<f64>() - 1.0).abs() < 1e-4);
    assert!(priors.is_sorted_by(|a, b| a >= b));
    let wdl = &answer["wdl"];
    let sum: f64 = ["win", "draw", "loss"]
        .map(|of| wdl[of].as_f64().unwrap())
        .iter()
        .sum();
    assert!((sum - 1.0).abs() < 1e-4);
    assert_eq!(answer["network"], "random");
}

#[test]
fn castling_in_chess960_is_king_takes_rook() {
    let server = Server::start(&[]);
    let fen = "7k/8/8/8/8/8/8/RK2R3 w EA - 0 1";
    for moves in [["b1e1"], ["O-O"]] {
        let body = json!({"fen": fen, "moves": moves, "chess960": true}).to_string();
        let answer = server.json("/v1/eval", &body);
        let fen = answer["fen"].as_str().unwrap();
        assert!(fen.starts_with("7k/8/8/8/8/8/8/R4RK1 b"), "{fen}");
    }
    let body = json!({"fen": fen, "chess960": true}).to_string();
    let policy = server.json("/v1/eval", &body)["policy"].to_string();
    assert!(policy.contains(r#""uci":"b1e1""#), "{policy}");
}

#[test]
fn a_wrong_field_is_named() {
    let server = Server::start(&["--max-nodes", "1000", "--max-time", "2s"]);
    for (path, body, field) in [
        ("/v1/move", json!({"fen": "no fen"}), "fen"),
        ("/v1/move", json!({"fen": 3}), "fen"),
        ("/v1/eval", json!({"moves": ["e2e4", "e2e4"]}), "moves[1]"),
        ("/v1/eval", json!({"moves": vec!["e4"; 3000]}), "moves"),
        ("/v1/move", json!({"agent": "people"}), "agent"),
        ("/v1/move", json!({"elo": 0}), "elo"),
        ("/v1/move", json!({"elo": 70_000}), "elo"),
        ("/v1/move", json!({"opponent_elo": 5000}), "opponent_elo"),
        ("/v1/move", json!({"temperature": -1}), "temperature"),
        ("/v1/eval", json!({"elo": 1500}), "elo"),
        ("/v1/move", json!({"limits": {"nodes": 0}}), "limits.nodes"),
        (
            "/v1/move",
            json!({"limits": {"nodes": 1001}}),
            "limits.nodes",
        ),
        (
            "/v1/move",
            json!({"limits": {"movetime_ms": 2001}}),
            "limits.movetime_ms",
        ),
        ("/v1/move", json!({"limits": {"depth": 0}}), "limits.depth"),
        (
            "/v1/move",
            json!({"limits": {"moves": ["e2e5"]}}),
            "limits.moves[0]",
        ),
        ("/v1/analyse", json!({"lines": 0}), "lines"),
        ("/v1/analyse", json!({"lines": 99}), "lines"),
    ] {
        let (status, problem) = server.problem(path, &body.to_string());
        assert_eq!(
            (status, problem["field"].as_str()),
            (400, Some(field)),
            "{problem}"
        );
        assert!(!problem["detail"].as_str().unwrap().contains('\n'));
    }
}

#[test]
fn invalid_requests_are_refused() {
    let server = Server::start(&[]);
    for body in [
        "",
        "{",
        "[]",
        r#"[null, ["e4"], false]"#,
        "7",
        "{} {}",
        r#"{"nodes": 7}"#,
    ] {
        assert_eq!(server.problem("/v1/move", body).0, 400, "{body}");
    }
    assert_eq!(server.problem("/v1/nothing", "{}").0, 404);
    assert_eq!(server.problem("/v1/agents", "{}").0, 405);
    let large = json!({"fen": "x".repeat(70_000)}).to_string();
    assert_eq!(server.problem("/v1/eval", &large).0, 413);
    for (kind, status) in [
        ("text/plain", 415),
        ("application/jsonfoo", 415),
        ("APPLICATION/JSON; charset=utf-8", 200),
    ] {
        let typed = post("/v1/eval", "", "{}").replace("application/json", kind);
        assert_eq!(server.ask(&typed).status, status, "{kind}");
    }
    let chunked = |chunks: &str| {
        let head = post("/v1/eval", "", "");
        let head = head.replace("Content-Length: 0", "Transfer-Encoding: chunked");
        server.ask(&format!("{head}{chunks}")).status
    };
    assert_eq!(chunked("2\r\n{}\r\n0\r\n\r\n"), 200);
    assert_eq!(chunked("zz\r\n{}\r\n0\r\n\r\n"), 400);
    assert_eq!(
        chunked(&format!("2\r\n{{}}\r\n11170\r\n{}", " ".repeat(70_000))),
        413
    );
    for path in ["/page/%ff", "/board/%ff", "/page/nothing"] {
        let answer = server.get(path);
        assert_eq!(
            (answer.status, &answer.json()["status"]),
            (404, &json!(404))
        );
    }
}

#[test]
fn a_continued_game_reuses_its_tree() {
    let server = Server::start(&[]);
    let ask = |moves: &[&str], nodes: u64| {
        let body = json!({"moves": moves, "limits": {"nodes": nodes}}).to_string();
        server.json("/v1/move", &body)
    };
    let first = ask(&[], 2000);
    let reply = first["move"]["uci"].as_str().unwrap();
    let answer = first["ponder"]["uci"].as_str().unwrap();
    // The reused tree has more nodes than this limit.
    let second = ask(&[reply, answer], 20);
    assert!(second["nodes"].as_u64().unwrap() > 20, "{second}");
}

#[test]
fn metrics_count_by_endpoint_and_status() {
    let server = Server::start(&[]);
    server.json("/v1/eval", "{}");
    server.problem("/v1/eval", "{");
    let text = server.get("/metrics").body;
    for line in [
        r#"tessera_requests_total{path="/v1/eval",status="200"} 1"#,
        r#"tessera_requests_total{path="/v1/eval",status="400"} 1"#,
        "tessera_evaluations_total 1",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn the_cloud_endpoint_answers_as_lichess_does() {
    let server = Server::start(&[]);
    // Black gets mated in one; the spaces in the FEN are escaped for the query.
    let mate = MATE.replace(' ', "%20");
    let answer = server
        .get(&format!("/api/cloud-eval?fen={mate}&multiPv=2"))
        .json();
    assert_eq!(answer["fen"], MATE);
    assert_eq!(answer["pvs"][0], json!({"moves": "a1a8", "mate": 1}));
    assert_eq!(answer["pvs"].as_array().unwrap().len(), 2);
    // If the colours are reversed, the sign is still from White's view.
    let mirrored = "r6k/8/8/8/8/8/5PPP/6K1%20b%20-%20-%200%201";
    let answer = server
        .get(&format!("/api/cloud-eval?fen={mirrored}"))
        .json();
    assert_eq!(answer["pvs"][0], json!({"moves": "a8a1", "mate": -1}));
    for (query, status) in [
        ("fen=nothing", 400),
        ("", 400),
        ("multiPv=2", 400),
        ("fen=4k3/8/8/8/8/8/8/4K2R%20w%20K&multiPv=two", 400),
        ("fen=4k3/8/8/8/8/8/8/4K2R%20w%20K&fen=x", 400),
        ("fen=%ff", 400),
        ("fen=7k/5Q2/6K1/8/8/8/8/8%20b%20-%20-%200%201", 404),
        (
            "fen=8/8/8/8/8/8/8/8%20w%20-%20-%200%201&variant=atomic",
            404,
        ),
    ] {
        let answer = server.get(&format!("/api/cloud-eval?{query}"));
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.json()["error"].is_string());
    }
}

/// The statuses with which an endpoint rejects requests are those in its description, except for
/// statuses that depend on time and load.
#[test]
fn every_status_is_described() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "letmein").unwrap();
    let server = Server::start(&["--token-file", file.path().to_str().unwrap()]);
    let document = server.get("/openapi.json").json();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let declared: BTreeSet<u16> = operation["responses"]
                .as_object()
                .unwrap()
                .keys()
                .map(|status| status.parse().unwrap())
                .collect();
            let method = method.to_uppercase();
            let ask = |method: &str, headers: &str| {
                server
                    .ask(&format!(
                        "{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"
                    ))
                    .status
            };
            let token = "Host: localhost\r\nAuthorization: Bearer letmein\r\n";
            let json = "Content-Type: application/json\r\n";
            let answered = BTreeSet::from([
                ask(&method, ""),
                ask(&method, "Host: evil.example\r\n"),
                ask("DELETE", token),
                ask(&method, &format!("{token}Sec-Fetch-Site: cross-site\r\n")),
                ask(&method, "Host: localhost\r\n"),
                ask(&method, token),
                ask(&method, &format!("{token}{json}")),
                ask(
                    &method,
                    &format!("{token}{json}Content-Length: 900000000\r\n"),
                ),
            ]);
            let rest = [200, 201, 404, 408, 429, 500, 503, 507];
            for status in declared.union(&answered) {
                let is_both = declared.contains(status) && answered.contains(status);
                let is_rare = declared.contains(status) && rest.contains(status);
                assert!(is_both || is_rare, "{method} {path} {status}: {answered:?}");
            }
        }
    }
}

#[test]
fn the_endpoints_are_described() {
    let server = Server::start(&[]);
    let document = server.get("/openapi.json").json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    for path in [
        "/v1/move",
        "/v1/eval",
        "/v1/analyse",
        "/v1/agents",
        "/api/cloud-eval",
    ] {
        assert!(document["paths"][path].is_object(), "{path}");
    }
}
