//! Reviews with a judge, on the command line and over HTTP.

use super::{GAME, folder, succeed};
use crate::serve::Server;
use crate::support::wait_until;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const TESSERA: &str = env!("CARGO_BIN_EXE_tessera");

/// The path of a judge that relays our own engine without a network, and fails if FAULT says so.
fn engine() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("tests/python/faulty_engine.py");
    path.to_str().unwrap().to_owned()
}

/// Returns a command whose judge fails in this way in positions whose `position` command contains
/// `at`.
fn judged(program: &mut Command, fault: &str, at: &str) {
    program
        .env("ENGINE", TESSERA)
        .env("BACKEND", "random")
        .env("FAULT", fault)
        .env("AT", at);
}

fn review(folder: &Path, (fault, at): (&str, &str), arguments: &[&str]) -> Output {
    let mut command = Command::new(TESSERA);
    judged(&mut command, fault, at);
    command
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .args(["review", "game.pgn", "--backend", "random", "--nodes", "60"])
        .args(["--judge-nodes", "50"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn game(output: Output) -> Value {
    let json: Value = serde_json::from_str(&succeed(output)).unwrap();
    json["games"][0].clone()
}

/// An `AT` that no position contains.
const NEVER: &str = "no such position";

#[test]
fn the_judge_gives_scores_and_its_name() {
    let folder = folder(&[("game.pgn", GAME)]);
    let engine = engine();
    let judge = ["--judge", &engine];
    let outputs = ["-o", "page.html", "--pgn", "out.pgn"];
    let sound = ("crash", NEVER);
    let text = succeed(review(
        folder.path(),
        sound,
        &[judge, outputs[..2].try_into().unwrap()].concat(),
    ));
    let name = "Tessera 0.1.0";
    let said = format!("Scores by {name}, 50 nodes a position.");
    assert!(text.contains(&said), "{text}");
    assert!(!text.contains("Tessera's own scores"), "{text}");
    succeed(review(
        folder.path(),
        sound,
        &[&judge[..], &outputs[2..]].concat(),
    ));
    let pgn = std::fs::read_to_string(folder.path().join("out.pgn")).unwrap();
    let annotator = format!("[Annotator \"Tessera, {name} (50 nodes a position)\"]");
    assert!(pgn.contains(&annotator), "{pgn}");
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains(&format!("\"judge\":\"{name}\"")));
    let report = game(review(
        folder.path(),
        sound,
        &[&judge[..], &["--json"]].concat(),
    ));
    assert_eq!(
        (&report["judge"], &report["nodes"]),
        (&json!(name), &json!(50))
    );
    assert_eq!(
        (&report["network"], &report["reliability"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(report["game"]["warnings"], json!([]));
    // A stored review needs the judge no more.
    let stored = review(
        folder.path(),
        ("crash", "position"),
        &[&judge[..], &["--json"]].concat(),
    );
    assert_eq!(game(stored), report);
    // The number of processes changes nothing.
    std::fs::remove_dir_all(folder.path().join("cache")).unwrap();
    let many = [&judge[..], &["--json", "--threads", "3"]].concat();
    assert_eq!(game(review(folder.path(), sound, &many)), report);
    let own = game(review(folder.path(), sound, &["--judge", "none", "--json"]));
    assert_eq!(
        (&own["judge"], &own["network"]),
        (&Value::Null, &json!("random"))
    );
    assert!(
        own["reliability"]
            .as_str()
            .unwrap()
            .contains("Tessera's own scores")
    );
}

#[test]
fn a_failing_judge_is_named_and_replaced() {
    for (fault, said) in [
        (
            "crash",
            "The judge failed: the engine Tessera 0.1.0 has exited unexpectedly.",
        ),
        ("illegal", "answered `e2e5`, which is not a legal move"),
    ] {
        let folder = folder(&[("game.pgn", GAME)]);
        let engine = engine();
        // The position after 5. Nxf7.
        let at = "e5f7";
        let output = review(folder.path(), (fault, at), &["--judge", &engine, "--json"]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines: Vec<&str> = errors.lines().filter(|line| line.contains(said)).collect();
        assert_eq!(lines.len(), 1, "{errors}");
        let report = game(output);
        assert_eq!(
            (&report["judge"], &report["network"]),
            (&Value::Null, &json!("random"))
        );
        let warning = report["game"]["warnings"][0].as_str().unwrap();
        assert!(warning.contains(said), "{warning}");
        assert!(report["plies"][0]["win"].is_number());
    }
}

/// Ctrl-C reaches every process of the terminal's foreground group, but must not end the judge,
/// whose scores so far are reviewed.
#[cfg(unix)]
#[test]
fn an_interrupted_review_keeps_the_scores_of_its_judge() {
    use std::os::unix::process::CommandExt;
    let long = "1. Nf3 Nf6 2. Ng1 Ng8 ".repeat(150);
    let folder = folder(&[("game.pgn", &format!("{GAME}\n[White \"b\"]\n\n{long}*\n"))]);
    let mut command = Command::new(TESSERA);
    // Only the second game contains these moves.
    judged(&mut command, "none", "g1f3 g8f6 f3g1");
    let begun = folder.path().join("begun");
    let running = command
        .current_dir(folder.path())
        .env("ONCE", &begun)
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .args([
            "review",
            "game.pgn",
            "--backend",
            "random",
            "-o",
            "pages",
            "--json",
        ])
        .args(["--judge", &engine(), "--judge-nodes", "4000"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    wait_until("the judge has come to the second game", || begun.exists());
    let group = format!("-{}", running.id());
    let interrupted = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(interrupted.unwrap().success());
    let output = running.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!errors.contains("The judge failed"), "{errors}");
    let json: Value = serde_json::from_str(&succeed(output)).unwrap();
    let second = &json["games"][1];
    assert!(second["judge"].is_string());
    let warnings = second["game"]["warnings"].to_string();
    assert!(warnings.contains("The review was stopped"), "{warnings}");
}

#[test]
fn a_judge_that_cannot_start_is_an_error_if_it_was_named() {
    let folder = folder(&[("game.pgn", GAME)]);
    let engine = engine();
    for (judge, said) in [
        ("no-such-engine", "cannot start the engine no-such-engine"),
        (&engine, "has exited unexpectedly"),
    ] {
        let output = review(folder.path(), ("mute", NEVER), &["--judge", judge]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(
            errors.starts_with("error: ") && errors.contains(said),
            "{errors}"
        );
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

fn server(arguments: &[&str]) -> Server {
    let mut command = Command::new(TESSERA);
    judged(&mut command, "crash", "b8d7");
    command.args(["serve", "--port", "0", "--backend", "random"]);
    let server = Server::of(command.args(arguments));
    server.wait_until_ready();
    server
}

#[test]
fn the_server_reviews_as_the_command_line_does() {
    let folder = folder(&[("game.pgn", GAME)]);
    let engine = engine();
    let server = server(&["--judge", &engine, "--judge-nodes", "50"]);
    let agents = server.get("/v1/agents").json();
    assert_eq!(
        agents["judge"],
        json!({"name": "Tessera 0.1.0", "nodes": 50})
    );
    for (choice, judge) in [("server", engine.as_str()), ("none", "none")] {
        let body = json!({"pgn": GAME, "nodes": 60, "judge": choice}).to_string();
        let served = server.json("/v1/review", &body)["games"][0]["report"].clone();
        let printed = review(
            folder.path(),
            ("crash", NEVER),
            &["--judge", judge, "--threads", "1", "--json"],
        );
        let printed = game(printed);
        // The server's network of people is not the command line's random backend.
        for part in ["judge", "network", "nodes", "reliability", "start", "game"] {
            assert_eq!(served[part], printed[part], "{choice}: {part}");
        }
        let plies = |report: &Value| -> Vec<Value> {
            let plies = report["plies"].as_array().unwrap().iter();
            plies
                .map(|ply| json!([ply["mark"], ply["evaluation"], ply["best"], ply["loss"]]))
                .collect()
        };
        assert_eq!(plies(&served), plies(&printed), "{choice}");
    }
    // The judge fails in this game.
    let body =
        json!({"pgn": "1. e4 e5 2. d4 Nd7 *".replace("Nd7", "Nc6 3. Nf3 Nf6 *"), "nodes": 9})
            .to_string();
    assert!(server.json("/v1/review", &body)["games"][0]["report"]["judge"].is_string());
    let body = json!({"pgn": "1. e4 d6 2. d4 Nd7 *", "nodes": 9}).to_string();
    let report = server.json("/v1/review", &body)["games"][0]["report"].clone();
    let warning = report["game"]["warnings"][0].as_str().unwrap();
    assert!(
        report["judge"].is_null() && warning.contains("The judge failed"),
        "{warning}"
    );
}

#[test]
fn the_judge_scores_a_single_position() {
    let engine = engine();
    let server = server(&[
        "--judge",
        &engine,
        "--judge-nodes",
        "50",
        "--max-nodes",
        "5000",
    ]);
    let answer = server.json(
        "/v1/judge",
        &json!({"moves": ["f3", "e5", "g4"]}).to_string(),
    );
    assert_eq!(answer["judge"], "Tessera 0.1.0");
    assert_eq!(answer["turn"], "black");
    assert_eq!(answer["evaluation"], json!({"mate": 1}));
    assert_eq!(answer["moves"][0]["san"], "Qh4#");
    let over = json!({"moves": ["f3", "e5", "g4", "Qh4#"], "nodes": 5000});
    let over = server.json("/v1/judge", &over.to_string());
    assert_eq!(
        (&over["ending"], &over["moves"]),
        (&json!("checkmate"), &json!([]))
    );
    let (status, problem) = server.problem("/v1/judge", &json!({"nodes": 5001}).to_string());
    assert_eq!((status, &problem["field"]), (400, &json!("nodes")));
    let failing = json!({"moves": ["e4", "d6", "d4", "b8d7"]}).to_string();
    let (status, problem) = server.problem("/v1/judge", &failing);
    assert_eq!(status, 500);
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("exited unexpectedly")
    );
    // A judge that has failed is started again.
    server.json("/v1/judge", "{}");
}

#[test]
fn a_server_without_a_judge_says_so() {
    let server = Server::start(&[]);
    assert!(server.get("/v1/agents").json()["judge"].is_null());
    for (path, body) in [
        ("/v1/judge", json!({})),
        ("/v1/review", json!({"pgn": "1. e4", "judge": "server"})),
    ] {
        let (status, problem) = server.problem(path, &body.to_string());
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            status == 400 && detail.contains("install Stockfish"),
            "{detail}"
        );
    }
    // A client can never name a program.
    let body = json!({"pgn": "1. e4", "judge": "/bin/sh"}).to_string();
    assert_eq!(server.problem("/v1/review", &body).0, 400);
}

#[test]
fn clients_send_scores_of_their_own() {
    let server = Server::start(&[]);
    let score = |centipawns: i32, line: &[&str]| json!({"evaluation": {"centipawns": centipawns}, "line": line});
    let scores = json!([
        score(20, &["e2e4"]),
        score(80, &["e7e5", "e2e4"]),
        score(-70, &["e2e4"]),
        {"evaluation": {"mate": 1}, "line": ["d8h4"], "second": {"centipawns": 100}},
        null,
    ]);
    let pgn = "1. f3 e5 2. g4 Qh4# 0-1";
    let judged = json!({"engine": "Stockfish 18 lite", "nodes": 100_000, "games": [scores]});
    let body = json!({"pgn": pgn, "judged": judged}).to_string();
    let answer = server.json("/v1/review", &body);
    let report = &answer["games"][0]["report"];
    assert_eq!(
        (&report["judge"], &report["nodes"]),
        (&json!("Stockfish 18 lite"), &json!(100_000))
    );
    assert_eq!(report["reliability"], Value::Null);
    let marks: Vec<&Value> = report["plies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ply| &ply["mark"])
        .collect();
    assert_eq!(
        marks[..3],
        [&json!("inaccuracy"), &Value::Null, &json!("blunder")]
    );
    assert_eq!(report["plies"][2]["best"]["moves"][0]["san"], "e4");
    let annotated = answer["games"][0]["pgn"].as_str().unwrap();
    assert!(
        annotated.contains("Tessera, Stockfish 18 lite (100000"),
        "{annotated}"
    );
    for (field, value, place, said) in [
        ("engine", json!(""), "judged.engine", "1 to 80 characters"),
        (
            "engine",
            json!("a\nb"),
            "judged.engine",
            "1 to 80 characters",
        ),
        ("nodes", json!(0), "judged.nodes", "1 or more"),
        ("games", json!([]), "judged.games", "the PGN contains 1"),
        ("games", json!([[null]]), "judged.games[0]", "5 positions"),
        (
            "games",
            json!([[score(1, &["e2e5"]), null, null, null, null]]),
            "judged.games[0][0].line[0]",
            "legal",
        ),
        (
            "games",
            json!([[score(1, &[]), null, null, null, null]]),
            "judged.games[0][0].line",
            "1 to 256 moves",
        ),
        (
            "games",
            json!([[null, null, null, null, score(1, &[])]]),
            "judged.games[0][4].line",
            "send null",
        ),
        (
            "games",
            json!([[score(100_001, &["e2e4"]), null, null, null, null]]),
            "judged.games[0][0].evaluation",
            "within",
        ),
        (
            "games",
            json!([[{"evaluation": {"mate": 0}, "line": ["e2e4"]}, null, null, null, null]]),
            "judged.games[0][0].evaluation",
            "1 move",
        ),
        (
            "games",
            json!([[{"evaluation": 5, "line": ["e2e4"]}, null, null, null, null]]),
            "judged.games[0][0].evaluation",
            "centipawns",
        ),
    ] {
        let mut judged = judged.clone();
        judged[field] = value;
        let body = json!({"pgn": pgn, "judged": judged}).to_string();
        let (status, problem) = server.problem("/v1/review", &body);
        let detail = problem["detail"].as_str().unwrap();
        assert_eq!(
            (status, &problem["field"]),
            (400, &json!(place)),
            "{detail}"
        );
        assert!(detail.contains(said), "{detail}");
    }
    let both = json!({"pgn": pgn, "judged": judged, "judge": "none"}).to_string();
    assert_eq!(server.problem("/v1/review", &both).1["field"], "judge");
    // The scores of a long game are larger than other bodies may be.
    let long = "Nf3 Nf6 Ng1 Ng8 ".repeat(200);
    let line: Vec<&str> = ["g1f3", "g8f6", "f3g1", "f6g8"].repeat(3);
    let scores: Vec<Value> = (0..801)
        .map(|place| {
            let turned: Vec<&str> = line
                .iter()
                .copied()
                .cycle()
                .skip(place % 4)
                .take(12)
                .collect();
            score(0, &turned)
        })
        .collect();
    let judged = json!({"engine": "a", "nodes": 1, "games": [scores]});
    let body = json!({"pgn": long, "judged": judged}).to_string();
    assert!(body.len() > 100_000);
    server.json("/v1/review", &body);
}
