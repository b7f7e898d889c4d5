//! Tests real networks: generated games, attention, and imagination.

use super::{Server, post};
use serde_json::{Value, json};

fn net(name: &str) -> String {
    format!("{}/nets/{name}.pt", env!("CARGO_MANIFEST_DIR"))
}

/// Starts a server with these networks in addition to the built-in ones.
fn server(names: &[&str]) -> Server {
    let nets: Vec<String> = names.iter().map(|name| net(name)).collect();
    let mut arguments = vec!["--backend", "torch"];
    for net in &nets {
        arguments.extend(["--also", net]);
    }
    Server::start(&arguments)
}

#[test]
fn a_move_token_model_writes_games() {
    let server = server(&["tessera-gpt"]);
    let body = json!({
        "moves": ["e4", "c7c5"], "games": 3, "white_elo": 1800, "black_elo": 1600, "seed": 5,
    });
    let written = server.json("/v1/generate", &body.to_string());
    assert_eq!(written["network"], "tessera-gpt");
    let games = written["games"].as_array().unwrap();
    let numbers: Vec<u64> = games
        .iter()
        .map(|it| it["number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 2, 3]);
    for game in games {
        let sans: Vec<&str> = game["moves"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["san"].as_str().unwrap())
            .collect();
        assert_eq!(sans[..2], ["e4", "c5"]);
        let pgn = game["pgn"].as_str().unwrap();
        assert!(
            pgn.contains("[WhiteElo \"1800\"]") && pgn.contains("1. e4 c5 2."),
            "{pgn}"
        );
    }
    // The PGN and the stream contain the same games.
    let ask = |accept: &str| {
        let accept = format!("Accept: {accept}\r\n");
        let answer = server.ask(&post("/v1/generate", &accept, &body.to_string()));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer
    };
    let pgn = ask("application/x-chess-pgn");
    assert_eq!(pgn.header("content-type"), Some("application/x-chess-pgn"));
    for game in games {
        assert!(
            pgn.body
                .contains(game["pgn"].as_str().unwrap().lines().last().unwrap())
        );
    }
    assert_eq!(pgn.header("x-accel-buffering"), Some("no"));
    let lines = ask("application/x-ndjson").body;
    assert_eq!(lines.matches("\"event\":\"game\"").count(), 3);
    let (status, problem) = server.problem("/v1/generate", r#"{"games": 0}"#);
    assert_eq!((status, &problem["field"]), (400, &json!("games")));
    // Errors are returned before a stream starts.
    let accept = "Accept: application/x-ndjson\r\n";
    let moves = ["Nf3", "Nf6", "Ng1", "Ng8"].repeat(400);
    let long = json!({ "moves": moves }).to_string();
    for body in [long.as_str(), r#"{"network": "main"}"#] {
        let answer = server.ask(&post("/v1/generate", accept, body));
        assert_eq!(answer.status, 400, "{answer:?}");
    }
    // The network can also play.
    let body = r#"{"agent": "policy", "network": "tessera-gpt", "elo": 1500, "moves": ["d4"]}"#;
    assert!(server.json("/v1/move", body)["move"]["uci"].is_string());
}

#[test]
fn without_such_a_network_the_request_is_refused() {
    let server = Server::start(&[]);
    for (path, body, field) in [
        ("/v1/generate", "{}", "network"),
        ("/v1/explain", "{}", "network"),
        ("/v1/attention", r#"{"network": "none such"}"#, "network"),
        ("/v1/move", r#"{"agent": "diffusion"}"#, "agent"),
        ("/v1/analyse", r#"{"agent": "world"}"#, "agent"),
        ("/v1/move", r#"{"network": "../../etc/passwd"}"#, "network"),
        ("/v1/eval", r#"{"network": "other"}"#, "network"),
    ] {
        let (status, problem) = server.problem(path, body);
        assert_eq!(
            (status, &problem["field"]),
            (400, &json!(field)),
            "{path} {body}"
        );
    }
}

#[test]
fn attention_and_explanations_are_served() {
    let server = server(&[]);
    let seen = server.json("/v1/attention", r#"{"layer": 2, "head": 3}"#);
    let weights = seen["weights"].as_array().unwrap();
    assert_eq!(weights.len(), 64);
    for row in weights {
        let sum: f64 = row
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_f64().unwrap())
            .sum();
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
    }
    let (_, problem) = server.problem("/v1/attention", r#"{"head": 99}"#);
    assert_eq!(problem["field"], "head");
    // A request for one network is never answered by another network.
    let human = |network: &str| json!({"agent": "human", "network": network}).to_string();
    let (status, problem) = server.problem("/v1/move", &human("main"));
    assert_eq!((status, &problem["field"]), (400, &json!("network")));
    assert!(server.json("/v1/move", &human("human"))["move"]["uci"].is_string());
    let body = r#"{"moves": ["e4"], "move": "c5"}"#;
    let explained = server.json("/v1/explain", body)["explanation"].take();
    let chosen = explained["chosen"].as_u64().unwrap() as usize;
    assert_eq!(explained["moves"][chosen]["san"], "c5");
    let page = server.ask(&post("/v1/explain", "Accept: text/html\r\n", body));
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(page.body.starts_with("<!doctype html>") || page.body.starts_with("<!DOCTYPE html>"));
}

#[test]
fn agents_use_the_networks_that_they_need() {
    let server = server(&["tessera-diffusion", "tessera-world"]);
    let agents = server.get("/v1/agents").json();
    let names: Vec<&Value> = agents["networks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(
        names,
        [
            "main",
            "human",
            "tessera-diffusion",
            "tessera-world",
            "tessera-gpt"
        ]
    );
    for agent in ["diffusion", "world"] {
        let body = json!({"agent": agent, "limits": {"nodes": 30}}).to_string();
        assert!(
            server.json("/v1/move", &body)["move"]["uci"].is_string(),
            "{agent}"
        );
    }
    let body = r#"{"network": "tessera-diffusion", "steps": 3}"#;
    let imagined = server.json("/v1/explain", body);
    assert_eq!(imagined["denoising"]["steps"].as_array().unwrap().len(), 3);
    let (_, problem) = server.problem("/v1/move", r#"{"agent": "world", "network": "main"}"#);
    assert_eq!(problem["field"], "agent");
}

#[test]
fn human_moves_are_predicted_at_every_rating() {
    let server = server(&[]);
    let told = server.json("/v1/people", r#"{"moves": ["e4"]}"#);
    let ratings = told["ratings"].as_array().unwrap();
    assert_eq!((&ratings[0], &ratings[10]), (&json!(600), &json!(2600)));
    assert_eq!(told["network"], "tessera-human");
    assert_eq!(told["corrected"], true);
    let moves = told["moves"].as_array().unwrap();
    assert_eq!(moves.len(), 20);
    for index in 0..ratings.len() {
        let shares = moves.iter().map(|it| it["shares"][index].as_f64().unwrap());
        let sum: f64 = shares.sum();
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
    }
    // The shares equal the policy of a single evaluation.
    let body = r#"{"moves": ["e4"], "elo": 1400}"#;
    let evaluated = server.json("/v1/eval", body);
    let likeliest = &evaluated["policy"][0];
    let same = moves
        .iter()
        .find(|it| it["uci"] == likeliest["uci"])
        .unwrap();
    let [prior, share] = [&likeliest["prior"], &same["shares"][4]].map(|it| it.as_f64().unwrap());
    assert!((prior - share).abs() < 1e-4, "{prior} {share}");
    let (_, problem) = server.problem("/v1/people", r#"{"network": "main"}"#);
    assert_eq!(problem["field"], "network");
    // The better the players, the more of them give mate in the Scholar's Mate.
    let moves = ["e4", "e5", "Bc4", "Nc6", "Qh5", "Nf6"];
    let told = server.json("/v1/people", &json!({ "moves": moves }).to_string());
    let moves = told["moves"].as_array().unwrap();
    let mate = moves.iter().find(|it| it["san"] == "Qxf7#").unwrap();
    let shares = mate["shares"].as_array().unwrap().iter();
    let shares: Vec<f64> = shares.map(|share| share.as_f64().unwrap()).collect();
    assert!(shares.is_sorted() && shares[10] > 0.9, "{shares:?}");
    // A request can exclude attention maps from an explanation.
    let explained = server.json("/v1/explain", r#"{"attention": false}"#);
    assert!(explained["explanation"]["attention"].is_null());
    assert_eq!(
        explained["explanation"]["lens"]["layers"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
}
