//! The command line of the real binary: results, errors, pipes.

mod faults;
mod help;
mod names;
#[cfg(feature = "torch")]
mod network;
#[cfg(all(unix, feature = "torch"))]
mod outputs;

use assert_cmd::Command;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Stdio;
use tempfile::TempDir;
use tessera::eval::bench::SIGNATURE;

const TESSERA: &str = env!("CARGO_BIN_EXE_tessera");

/// One mate in two, followed by two positions that each have two mates in one.
const PUZZLES: &str = "\
PuzzleId,FEN,Moves,Rating,RatingDeviation,Popularity,NbPlays,Themes,GameUrl,OpeningTags
dhs2l,6rk/p1b2p1p/5Pr1/q7/2p1N2Q/7R/P1P4P/R6K b - - 7 31,h7h6 h4h6 g6h6 h3h6,438,83,81,206,,,
one,6k1/2p2ppp/8/8/8/8/5PPP/QR4K1 b - - 0 1,c7c6 b1b8,1500,83,81,206,,,
two,6k1/2p2ppp/8/8/8/8/5PPP/QR4K1 b - - 0 1,c7c5 a1a8,2900,83,81,206,,,
";
const SUITE: &str = "\
6k1/2p2ppp/8/8/8/8/5PPP/QR4K1 w - - bm Rb8#; id \"mate\";
not a legal position
6k1/2p2ppp/8/8/8/8/5PPP/QR4K1 w - - bm Kh1; id \"odd\"; c0 \"Kh1=10, Rb8#=3, Qa8#=3\";
";

fn tessera(arguments: &[&str]) -> Command {
    let mut command = Command::new(TESSERA);
    command.args(arguments);
    command
}

/// Runs a command and parses the last line of its output as JSON.
fn json(arguments: &[&str]) -> Value {
    let output = tessera(arguments).arg("--json").assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

/// Runs a command that must fail; returns its exit status and its error output.
fn failure(arguments: &[&str]) -> (i32, String) {
    let output = tessera(arguments).assert().failure();
    let output = output.get_output();
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    (output.status.code().unwrap(), text)
}

/// Writes `text` to a file in a temporary folder, which is deleted when the first returned value is
/// dropped.
fn file(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

#[test]
fn the_version_has_the_signature() {
    let output = tessera(&["--version"]).assert().success();
    let version = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let number = env!("CARGO_PKG_VERSION");
    assert!(
        version.starts_with(&format!("tessera {number} (")),
        "{version}"
    );
    assert!(
        version.ends_with(&format!("signature {SIGNATURE})\n")),
        "{version}"
    );
}

#[test]
fn wrong_command_lines_are_reported_and_exit_with_2() {
    for (arguments, expected) in [
        (&["perft"][..], "<DEPTH>"),
        (&["perft", "0"], "1..=30"),
        (&["fly"], "fly"),
        (&["bench", "--nodes", "0"], "--nodes"),
        (&["puzzles", "x.csv", "--agent", "nobody"], "policy"),
        (&["backendbench", "--batch", "0"], "--batch"),
        (&["backendbench", "--device", "tpu"], "cuda:1"),
        (&["epd", "x.epd", "--set", "CPuct"], "="),
    ] {
        let (status, text) = failure(arguments);
        assert_eq!(status, 2, "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn failures_are_reported_in_one_line_and_exit_with_1() {
    let (_folder, bad_csv) = file("bad.csv", &PUZZLES.replace("c7c6", "c7c2"));
    let (_folder, no_rating) = file("short.csv", "PuzzleId,FEN,Moves\n");
    let (_folder, bad_epd) = file("bad.epd", "not a legal position\n");
    let [bad_csv, no_rating, bad_epd] = [&bad_csv, &no_rating, &bad_epd]
        .map(|path| path.to_str().expect("temporary paths are valid UTF-8"));
    let empty_board = "8/8/8/8/8/8/8/8 w - - 0 1";
    for (arguments, expected) in [
        (&["puzzles", "missing.csv"][..], "cannot read missing.csv"),
        (&["puzzles", bad_csv], "bad.csv, line 3: `c7c2`"),
        (&["puzzles", no_rating], "line 1: the column `Rating`"),
        (&["epd", "missing.epd"], "cannot read missing.epd"),
        (&["epd", bad_epd], "bad.epd, line 1: `not a legal position`"),
        (
            &["perft", "3", "--fen", empty_board],
            "not a legal position",
        ),
        (&["bench", "--fen", "nonsense"], "`nonsense` is not a FEN"),
        (&["bench", "--set", "CPut=2"], "CPut"),
        (&["bench", "--set", "CPuct=many"], "CPuct"),
        (&["bench", "--set", "SyzygyPath=missing"], "`missing`"),
        (&["eval", "--moves", "e2e5"], "`e2e5` is not a legal move"),
        (&["eval", "--net", "missing.pt"], "missing.pt"),
        (&["match-moves", "missing.pgn"], "cannot read missing.pgn"),
        (
            &["match-moves", bad_epd],
            "bad.epd has nothing to measure: no game in it",
        ),
        #[cfg(feature = "torch")]
        (&["describe", bad_epd], "bad.epd"),
        (
            &["eval", "--elo", "1200,1500", "--backend", "uniform"],
            "the network uniform reads no ratings",
        ),
    ] {
        let (status, text) = failure(arguments);
        assert_eq!(status, 1, "{text}");
        assert!(
            text.starts_with("error: ") && text.contains(expected),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn perft() {
    let result = json(&["perft", "3"]);
    assert_eq!(result["nodes"], 8902);
    assert_eq!(result["moves"]["e2e4"], 600);
    assert_eq!(result["moves"].as_object().unwrap().len(), 20);
    let castling = "k7/8/8/8/8/8/8/1RK3R1 w GB - 0 1";
    let result = json(&["perft", "1", "--fen", castling]);
    assert_eq!(result["moves"]["c1g1"], 1, "king takes rook");
    let text = tessera(&["perft", "2"]).assert().success();
    let text = String::from_utf8(text.get_output().stdout.clone()).unwrap();
    assert!(text.lines().last().unwrap().starts_with("400 nodes "));
}

#[test]
fn players_without_a_search_solve_puzzles() {
    let (_folder, path) = file("puzzles.csv", PUZZLES);
    let path = path.to_str().unwrap();
    let run = |agent, rest: &[&str]| {
        let arguments = ["puzzles", path, "--agent", agent, "--backend", "uniform"];
        json(&[&arguments, rest].concat())
    };
    // The uniform backend rates all moves alike except mates, so a one-ply player prefers both
    // mates in one.
    let value = run("value", &[]);
    assert_eq!((&value["solved"], &value["total"]), (&2.into(), &3.into()));
    assert_eq!(value["agent"], "value");
    let bands = value["bands"].as_array().unwrap();
    let from: Vec<u64> = bands.iter().map(|b| b["from"].as_u64().unwrap()).collect();
    assert_eq!(from, [400, 1400, 2800]);
    assert_eq!(bands[2]["to"], Value::Null);
    assert_eq!(bands[1]["accuracy"], 1.0);
    assert_eq!(run("policy", &[])["solved"], 0);
    assert_eq!(run("value", &["--limit", "2"])["total"], 2);
    let table = tessera(&["puzzles", path, "--agent", "value", "--backend", "uniform"]);
    let table = { table }.assert().success();
    let table = String::from_utf8(table.get_output().stdout.clone()).unwrap();
    assert!(
        table.contains("1400–1599       1      1   100.0 %"),
        "{table}"
    );
    assert!(
        table.contains("all             2      3    66.7 %"),
        "{table}"
    );
}

#[test]
fn a_player_without_a_search_solves_suites() {
    let (_folder, path) = file("suite.epd", SUITE);
    let path = path.to_str().unwrap();
    let arguments = ["epd", path, "--agent", "value", "--backend", "uniform"];
    let result = json(&[&arguments[..], &["--details"]].concat());
    assert_eq!(
        (&result["solved"], &result["total"]),
        (&1.into(), &2.into())
    );
    assert_eq!(
        (&result["points"], &result["most_points"]),
        (&3.into(), &10.into())
    );
    assert_eq!(result["refused"], 1);
    assert_eq!(result["positions"][0]["solved"], true);
    assert_eq!(result["positions"][1]["question"], "bm Kh1");
    let table = tessera(&arguments).assert().success();
    let output = table.get_output();
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        table.starts_with("1 of 2 solved, 50.0 %\n3 of 10 points\n"),
        "{table}"
    );
    let left_out = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(left_out.contains("line 2"), "{left_out}");
}

#[test]
fn a_level_plays_suites_with_its_own_nodes() {
    let (_folder, path) = file("suite.epd", SUITE);
    let path = path.to_str().unwrap();
    let nodes = |elo: &str, nodes: &str| {
        let level = ["--set", "UCI_LimitStrength=true", "--set", elo];
        let suite = ["epd", path, "--backend", "uniform", "--nodes", nodes];
        json(&[&suite[..], &level[..]].concat())["nodes"].take()
    };
    assert_eq!(nodes("UCI_Elo=2600", "800"), 36);
    assert_eq!(nodes("UCI_Elo=2600", "7"), 7);
}

#[cfg(feature = "torch")]
#[test]
fn a_network_is_described_evaluated_and_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opinion.pt");
    let game = tessera::chess::Game::default();
    let favourite =
        tessera::encode::policy_index(game.parse_move("g1f3").unwrap(), shakmaty::Color::White);
    network::write(&path, favourite.into(), [2.0, 1.0, 0.0]);
    let net = path.to_str().unwrap();

    let described = json(&["describe", net]);
    assert_eq!(described["name"], "opinion");
    let outputs = described["methods"]["forward"]["outputs"]
        .as_array()
        .unwrap();
    let names: Vec<&str> = outputs
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["policy", "wdl"]);
    let text = tessera(&["describe", net]).assert().success();
    let text = String::from_utf8(text.get_output().stdout.clone()).unwrap();
    assert!(text.contains("architecture.layers: 0\n"), "{text}");
    assert!(text.contains("forward.outputs: policy, wdl\n"), "{text}");

    let evaluated = json(&[
        "eval",
        "--net",
        net,
        "--device",
        "cpu",
        "--precision",
        "f32",
    ]);
    let number = |value: &Value| value.as_f64().unwrap();
    let wdl: Vec<f64> = evaluated["wdl"]
        .as_array()
        .unwrap()
        .iter()
        .map(number)
        .collect();
    assert!((wdl.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    // Softmax of 2, 1, 0.
    assert!((wdl[0] - 0.66524).abs() < 1e-4 && (wdl[2] - 0.09003).abs() < 1e-4);
    assert!((number(&evaluated["value"]) - (wdl[0] - wdl[2])).abs() < 1e-6);
    assert_eq!(evaluated["moves_left"], Value::Null);
    let policy = evaluated["policy"].as_object().unwrap();
    assert_eq!(policy.len(), 20);
    assert!((policy.values().map(number).sum::<f64>() - 1.0).abs() < 1e-5);
    let best = 5f64.exp() / (5f64.exp() + 19.0);
    assert!((number(&policy["g1f3"]) - best).abs() < 1e-4);
    let moves = [
        "eval", "--net", net, "--device", "cpu", "--moves", "e2e4,e5",
    ];
    let fen = json(&moves)["fen"].clone();
    assert_eq!(
        fen,
        "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2"
    );

    let measured = json(&[
        "backendbench",
        "--net",
        net,
        "--device",
        "cpu",
        "--threads",
        "2",
        "--batch",
        "1,16",
        "--time",
        "0.1s",
    ]);
    assert_eq!(measured["threads"], 2);
    let results = measured["results"].as_array().unwrap();
    let batches: Vec<&Value> = results.iter().map(|result| &result["batch"]).collect();
    assert_eq!(batches, [&Value::from(1), &Value::from(16)]);
    for result in results {
        assert!(number(&result["evaluations_per_second"]) > 0.0);
    }
}

/// Two players, rated 1150 and 2450, open with the move that `opinion.pt` prefers; a third does
/// not.
#[cfg(feature = "torch")]
const GAMES: &str = "\
[Result \"1-0\"]\n[WhiteElo \"1150\"]\n[BlackElo \"2450\"]\n\n1. Nf3 d5 1-0\n
[Result \"1-0\"]\n[WhiteElo \"2450\"]\n\n1. Nf3 e5 1-0\n
[Result \"0-1\"]\n[WhiteElo \"1190\"]\n\n1. e4 c5 0-1\n";

#[cfg(feature = "torch")]
#[test]
fn networks_are_compared_with_human_moves() {
    let (folder, games) = file("games.pgn", GAMES);
    let game = tessera::chess::Game::default();
    let nets = ["g1f3", "e2e4"].map(|mv| {
        let path = folder.path().join(format!("{mv}.pt"));
        let mv = game.parse_move(mv).unwrap();
        let favourite = tessera::encode::policy_index(mv, shakmaty::Color::White);
        network::write(&path, favourite.into(), [2.0, 1.0, 0.0]);
        path.to_str().unwrap().to_owned()
    });
    let by_rating = [format!("{}=1100", nets[1]), format!("{}=2400", nets[0])];
    let arguments = [
        ["match-moves", games.to_str().unwrap()],
        ["--skip-plies", "0"],
        ["--device", "cpu"],
        ["--precision", "f32"],
        ["--net", &nets[0]],
        ["--by-rating", &by_rating[0]],
        ["--by-rating", &by_rating[1]],
        ["--rating-spread", "1000000000"],
    ]
    .concat();
    let measured = json(&arguments);
    assert_eq!(measured["positions"], 4);
    let bands = |column: usize| measured["networks"][column]["bands"].as_array().unwrap();
    let froms: Vec<_> = bands(0)
        .iter()
        .map(|row| row["band"]["from"].as_u64())
        .collect();
    assert_eq!(froms, [Some(1000), Some(2200), None]);
    let number = |value: &Value| value.as_f64().unwrap();
    let matched = |column: usize| -> Vec<f64> {
        let rows = bands(column).iter();
        rows.map(|row| number(&row["move_match"]["mean"])).collect()
    };
    // The second player rated 2450 replies as Black with a move that neither network prefers.
    assert_eq!(matched(0), [0.5, 0.5, 0.5]);
    assert_eq!(matched(1), [0.5, 0.5, 0.5]);
    let all = &bands(0)[2];
    assert_eq!(all["with_result"], 4);
    assert_eq!(number(&all["result_accuracy"]["mean"]), 0.5);
    let best = 5f64.exp() / (5f64.exp() + 19.0);
    let loss = -2.0 * best.ln() + 2.0 * (5f64.exp() + 19.0).ln();
    let found = number(&all["log_loss"]["mean"]);
    assert!((found - loss / 4.0).abs() < 1e-4, "{found}");
    // Both networks have equal weight: White's three moves get half of a favourite's share.
    let found = number(&bands(2)[2]["log_loss"]["mean"]);
    let even = 1.0 / (5f64.exp() + 19.0);
    let loss = -3.0 * f64::midpoint(best, even).ln() - even.ln();
    assert!((found - loss / 4.0).abs() < 1e-4, "{found}");
    let difference = &measured["differences"][0]["bands"][0]["move_match"];
    assert_eq!(number(&difference["mean"]), 0.0);
    assert_eq!(number(&difference["high"]), 1.0);

    // Weak players answer from the policy without searching.
    let searching = json(&[&arguments[..], &["--search"]].concat());
    let column = |of: &Value| of["networks"][0].clone();
    let (searched, alone) = (column(&searching), column(&measured));
    assert_eq!(searched["network"], "opinion, searching");
    let log_loss = |of: &Value, row: usize| number(&of["bands"][row]["log_loss"]["mean"]);
    assert!((log_loss(&searched, 0) - log_loss(&alone, 0)).abs() < 1e-6);
    assert_eq!(searching["networks"][1], measured["networks"][1]);
    // Strong players find a mate to which the policy assigns a low probability.
    let mate = "[Result \"0-1\"]\n[WhiteElo \"1150\"]\n[BlackElo \"2450\"]\n\n\
        1. f3 e5 2. g4 Qh4# 0-1\n";
    let (_folder, mate) = file("mate.pgn", mate);
    let mut mate = vec!["match-moves", mate.to_str().unwrap(), "--net", &nets[0]];
    mate.extend(&arguments[2..8]);
    let alone = json(&mate);
    mate.push("--search");
    let text = tessera(&mate).assert().success();
    let text = String::from_utf8(text.get_output().stdout.clone()).unwrap();
    let finds = text.split("finds mate in one").nth(1).unwrap();
    // White, rated 1150, had no mate to find.
    let rows: Vec<&str> = finds.lines().skip(2).map(str::trim_end).take(2).collect();
    assert_eq!(rows[0].split_whitespace().last(), Some("0"), "{text}");
    assert!(rows[1].contains("100.00"), "{text}");
    let searched = json(&mate);
    let (searched, alone) = (column(&searched), column(&alone));
    assert!((log_loss(&searched, 0) - log_loss(&alone, 0)).abs() < 1e-6);
    assert!(
        log_loss(&searched, 1) < log_loss(&alone, 1) - 0.1,
        "{searched}"
    );

    let text = tessera(&arguments)
        .args(["--net", &nets[1]])
        .assert()
        .success();
    let text = String::from_utf8(text.get_output().stdout.clone()).unwrap();
    assert!(text.contains("1000–1199          2 "), "{text}");
    assert!(text.contains("opinion less nearest by rating"), "{text}");
    assert!(text.contains("opinion less ensemble by rating"), "{text}");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = std::process::Command::new(TESSERA)
        .args(["backendbench", "--backend", "uniform", "--time", "0.2s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.starts_with("uniform"), "{line}");
    drop(output);
    let mut errors = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut errors).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(errors, "");
}

/// Prepares a program with shell redirections in which `$pipe` is a pipe without a reader.
#[cfg(unix)]
pub(crate) fn unread(redirections: &str, program: &str) -> std::process::Command {
    let script = format!(
        "pipe=$(mktemp -u) && mkfifo $pipe && {{ true <$pipe & }} && exec 3>$pipe && wait && \
         rm $pipe && exec \"$@\" {}",
        redirections.replace("$pipe", "&3")
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script, "sh", program]);
    command
}

#[cfg(unix)]
#[test]
fn unread_output_does_not_stop_a_command() {
    let (_folder, suite) = file("suite.epd", SUITE);
    let suite = suite.to_str().unwrap();
    let epd = ["epd", suite, "--backend", "uniform", "--nodes", "10"];
    // Either stream, or both, has lost its reader.
    for (streams, arguments, prints) in [
        ("2>&-", &epd[..], true),
        ("2>$pipe", &epd, true),
        (">$pipe", &epd, false),
        (">$pipe 2>&1", &epd, false),
        (">$pipe 2>&1", &["bench", "--nodes", "100"], false),
        (">$pipe 2>&1", &["perft", "3"], false),
        (">$pipe 2>&1", &["--help"], false),
        (">$pipe 2>&1", &["puzzles", "missing.csv"], false),
    ] {
        let mut command = unread(streams, TESSERA);
        command.args(arguments).env("RUST_LOG", "trace");
        let output = command.output().unwrap();
        let code = if arguments.contains(&"missing.csv") {
            1
        } else {
            0
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?} {streams}: {errors}"
        );
        assert_eq!(!output.stdout.is_empty(), prints, "{arguments:?} {streams}");
    }
}

#[cfg(feature = "torch")]
#[test]
fn a_network_is_compared_with_itself_in_f32() {
    for (precision, told) in [("f32", false), ("bf16", true)] {
        let output = tessera(&[
            "eval",
            "--backend",
            "check",
            "--device",
            "cpu",
            "--precision",
            precision,
        ])
        .output()
        .unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{log}");
        assert_eq!(log.contains("largest differences over"), told, "{log}");
    }
}

#[test]
fn the_signature_matches_this_version_and_detects_another_search() {
    let run = |set: &'static [&'static str]| {
        std::thread::spawn(move || json(&[&["bench"], set].concat()))
    };
    let [first, other] = [&[][..], &["--set", "CPuct=2"]]
        .map(run)
        .map(|bench| bench.join().unwrap());
    assert_eq!(first["nodes"], SIGNATURE);
    assert_ne!(other["nodes"], SIGNATURE);
    assert!(first["cpu_seconds"].as_f64().unwrap() > 0.0);
    let bytes = first["bytes_per_node"].as_f64().unwrap();
    assert!((16.0..1024.0).contains(&bytes), "{bytes}");
}

#[test]
fn bench_visits_the_given_number_of_nodes() {
    // A proven mate would end a search early.
    let tree = ["--set", "MateSearch=false"];
    let output = tessera(&[&["bench", "--nodes", "50", "--threads", "2"], &tree[..]].concat());
    let output = { output }.assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let words: Vec<&str> = text.lines().last().unwrap().split(' ').collect();
    assert_eq!((words[0], words[1], words[3]), ("1700", "nodes", "nps"));
    assert!(words[2].parse::<u64>().unwrap() > 0);
    let start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    let one = json(&[
        "bench",
        "--nodes",
        "77",
        "--backend",
        "uniform",
        "--fen",
        start,
    ]);
    assert_eq!(one["nodes"], 77);
}

#[test]
fn the_search_solves_puzzles_and_suites() {
    let (_folder, puzzles) = file("puzzles.csv", PUZZLES);
    let (_folder, suite) = file("suite.epd", "6k1/2p2ppp/8/8/8/8/5PPP/QR4K1 w - - bm #1;\n");
    let [puzzles, suite] = [&puzzles, &suite].map(|path| path.to_str().unwrap());
    let search = ["--nodes", "3000", "--backend", "uniform"];
    let solved = json(&[&["puzzles", puzzles, "--jobs", "2"], &search[..]].concat());
    assert_eq!(
        (&solved["solved"], &solved["total"]),
        (&3.into(), &3.into())
    );
    assert_eq!(
        (&solved["agent"], &solved["nodes"]),
        (&"mcts".into(), &3000.into())
    );
    let solved = json(&[&["epd", suite], &search[..]].concat());
    assert_eq!(
        (&solved["solved"], &solved["total"]),
        (&1.into(), &1.into())
    );
}
