//! Tests `tessera-train label` through its binary: with our own engine on the random backend, with a
//! failing engine, and with Stockfish if it is installed.

use crate::support::{TESSERA as ENGINE, wait_until};
use crate::waiting::at_some_pace;
use serde_json::Value;
use shakmaty::Position;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tessera::data::pgn::{open, parse_game, tag};
use tessera::data::record::Record;

mod sampling;

fn train(folder: &Path) -> Command {
    let mut command = crate::support::train(folder, &[]);
    command.env("ENGINE", ENGINE);
    command
}

/// Runs `tessera-train label` with our own engine and settings that are fast and reproducible.
fn label(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = train(folder);
    command
        .args(["label", "--engine", ENGINE, "--set", "Backend=random"])
        .args(["--json"])
        .args(arguments);
    if !arguments.contains(&"--nodes") {
        command.args(["--nodes", "8"]);
    }
    command
}

fn output(mut command: Command) -> Output {
    command.output().unwrap()
}

/// Returns the JSON object on the last line of standard output, and standard error.
fn succeed(command: Command) -> (Value, String) {
    let output = output(command);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    let said = String::from_utf8(output.stdout).unwrap();
    let last = said.lines().last().unwrap_or_default();
    (serde_json::from_str(last).unwrap_or_default(), errors)
}

fn texts(path: &Path) -> Vec<String> {
    open(path, |file| file)
        .unwrap()
        .map(|game| String::from_utf8(game.unwrap().text).unwrap())
        .collect()
}

fn records(path: &Path) -> Vec<Record> {
    let texts = texts(path);
    let parsed = texts.iter().map(|text| parse_game(text.as_bytes()));
    parsed.map(Result::unwrap).collect()
}

fn pack(folder: &Path, input: &str, arguments: &[&str]) -> Value {
    let mut command = train(folder);
    command
        .args(["pack", input, "-o", "packed.shard", "--strict"])
        .args(["--evals", "chooser"])
        .args(arguments);
    assert!(output(command).status.success());
    let mut command = train(folder);
    command.args(["stats", "packed.shard", "--json"]);
    succeed(command).0
}

const PLAY: [&str; 9] = [
    "--play",
    "--limit",
    "5",
    "--random-moves",
    "0.2",
    "--max-plies",
    "40",
    "--seed",
    "3",
];

#[test]
fn games_are_independent_of_the_processes_and_can_be_packed() {
    let folder = tempfile::tempdir().unwrap();
    let mut texts_of = Vec::new();
    for (name, processes) in [("one.pgn", "1"), ("two.pgn.gz", "2")] {
        let mut command = label(folder.path(), &PLAY);
        command.args(["--jobs", processes, "-o", name]);
        let (said, _) = succeed(command);
        assert_eq!((&said["games"], &said["found"]), (&5.into(), &0.into()));
        texts_of.push(texts(&folder.path().join(name)));
    }
    assert_eq!(texts_of[0], texts_of[1]);
    let records = records(&folder.path().join("one.pgn"));
    let random = |record: &Record| {
        let scored = record.main_line().skip_while(|node| node.eval.is_none());
        scored.filter(|node| node.eval.is_none()).count()
    };
    assert!(records.iter().map(random).sum::<usize>() > 5);
    let findings = pack(folder.path(), "one.pgn", &["--unscored-random"]);
    assert_eq!(findings["games"], 5);
    // Every position after the random opening is labelled.
    let judged: usize = records
        .iter()
        .map(|game| game.main_line().count() - 8)
        .sum();
    assert!(findings["targets"]["q"].as_u64().unwrap() >= judged as u64);

    let mut again = label(folder.path(), &PLAY);
    again.args(["-o", "one.pgn"]);
    let (said, _) = succeed(again);
    assert_eq!((&said["games"], &said["found"]), (&0.into(), &5.into()));
    let mut other = label(folder.path(), &PLAY);
    other.args(["--multipv", "2", "-o", "one.pgn"]);
    let output = output(other);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(errors.contains("one.pgn holds games of"), "{errors}");
}

#[test]
fn killed_labelling_resumes_to_the_same_games() {
    let folder = tempfile::tempdir().unwrap();
    assert_resumes_after_kills(folder.path(), |name| {
        let mut command = label(
            folder.path(),
            &["--play", "--limit", "30", "--max-plies", "30"],
        );
        command.args(["--jobs", "2", "-o", name]);
        command
    });
}

/// Runs `command`, which takes the name of its output, once without interruption for whole.pgn and
/// once with two kills for killed.pgn. Asserts that both files contain the same games.
fn assert_resumes_after_kills(folder: &Path, command: impl Fn(&str) -> Command) {
    let part = folder.join("killed.pgn.part");
    let mut kills = 0;
    for wanted in [2, 6] {
        let mut running = command("killed.pgn")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let size = || std::fs::metadata(&part).map_or(0, |file| file.len());
        wait_until("enough games are written", || {
            running.try_wait().unwrap().is_some() || size() >= wanted * 500
        });
        running.kill().unwrap();
        kills += u32::from(!running.wait().unwrap().success());
    }
    assert!(kills > 0);
    let (said, _) = succeed(command("killed.pgn"));
    assert!(said["found"].as_u64().unwrap() > 0, "{said}");
    succeed(command("whole.pgn"));
    let path = |name: &str| folder.join(name);
    assert_eq!(texts(&path("killed.pgn")), texts(&path("whole.pgn")));
    assert!(!part.exists());
}

#[test]
fn several_moves_of_a_position_become_a_distribution() {
    let folder = tempfile::tempdir().unwrap();
    let epd = "4k3/8/8/8/8/8/4P3/4K3 w - - id \"a\";\n\
               nonsense\n\
               7k/5Q2/8/8/8/8/8/K7 b - - 0 1\n\
               r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3\n";
    std::fs::write(folder.path().join("positions.epd"), epd).unwrap();
    let arguments = ["positions.epd", "--multipv", "3", "--nodes", "50"];
    let mut command = label(folder.path(), &arguments);
    command.args(["-o", "out.pgn"]);
    let (said, errors) = succeed(command);
    assert_eq!(
        (&said["games"], &said["positions"], &said["unreadable"]),
        (&2.into(), &2.into(), &2.into())
    );
    assert!(
        errors.contains("position 2: `nonsense` is not a FEN"),
        "{errors}"
    );
    assert!(
        errors.contains("position 3: there is no legal move"),
        "{errors}"
    );
    for record in records(&folder.path().join("out.pgn")) {
        assert_eq!(record.nodes.len(), 3);
        assert!(record.nodes.iter().all(|node| node.eval.is_some()));
    }
    let apart = pack(folder.path(), "out.pgn", &[]);
    assert_eq!(apart["targets"]["policy_move"], 6);
    let together = pack(folder.path(), "out.pgn", &["--alternatives", "0.05"]);
    assert_eq!(together["targets"]["policy_distribution"], 2);
    assert_eq!(together["samples"], 2);
}

#[test]
fn human_games_are_annotated_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let games = crate::support::games("master-games.pgn");
    let mut command = label(folder.path(), &["--share", "0.1", "-o", "out.pgn.zst"]);
    command.arg(&games);
    let (said, _) = succeed(command);
    let before = records(&games);
    let path = folder.path().join("out.pgn.zst");
    let after = records(&path);
    assert_eq!(before.len(), after.len());
    let mut judged = 0;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((&before.fen, before.result), (&after.fen, after.result));
        let moves =
            |record: &Record| -> Vec<u8> { record.main_line().map(|node| node.ordinal).collect() };
        assert_eq!(moves(before), moves(after));
        judged += after
            .nodes
            .iter()
            .filter(|node| node.eval.is_some())
            .count();
    }
    assert_eq!(said["positions"], judged);
    let plies: usize = before.iter().map(|game| game.main_line().count()).sum();
    assert!(
        (plies / 20..plies / 5).contains(&judged),
        "{judged} of {plies}"
    );
    let (first, told) = (&texts(&games)[0], &texts(&path)[0]);
    assert!(tag(first, "WhiteElo").is_some());
    assert_eq!(tag(first, "WhiteElo"), tag(told, "WhiteElo"));
    let findings = pack(folder.path(), "out.pgn.zst", &["--played"]);
    assert_eq!(findings["games"], before.len());
    let ratings = findings["rating_histogram"].as_object().unwrap();
    let rated: u64 = ratings.values().filter_map(Value::as_u64).sum();
    assert_eq!(rated, 2 * before.len() as u64);
}

#[cfg(unix)]
mod failing {
    use super::*;

    /// Runs `tessera-train label` on three positions with a failing engine.
    fn faulty(folder: &Path, options: &[&str]) -> Command {
        let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/faulty_engine.py");
        let lines = ["4k3/8/8/8/8/8/4P3/4K3 w - -", "4k3/4p3/8/8/8/8/8/4K3 b - -"];
        let lines = [lines[0], lines[1], "4k3/8/8/8/8/8/3P4/4K3 w - -"].join("\n");
        std::fs::write(folder.join("positions.epd"), lines).unwrap();
        let mut command = train(folder);
        command
            .args(["label", "positions.epd", "-o", "out.pgn", "--json"])
            .args(["--set", "Backend=random", "--nodes", "8", "--jobs", "1"])
            .arg("--engine")
            .arg(engine);
        for option in options {
            command.args(["--set", option]);
        }
        command
    }

    fn is_there() -> bool {
        let python = Command::new("python3").arg("--version").output();
        let is_there = python.is_ok_and(|output| output.status.success());
        if !is_there {
            crate::skip::skip("python3");
        }
        is_there
    }

    #[test]
    fn an_engine_that_fails_once_is_restarted() {
        if !is_there() {
            return;
        }
        let is_told = |fault: &str, seconds: u32, told: &str| {
            let folder = tempfile::tempdir().unwrap();
            let fault = format!("Fault={fault}");
            let mut command = faulty(folder.path(), &[&fault, "At=4p3", "Once=marker"]);
            command.args(["--timeout", &format!("{seconds}s")]);
            let (said, errors) = succeed(command);
            println!("{errors}");
            assert_eq!(
                (&said["positions"], &said["given_up"]),
                (&3.into(), &0.into()),
                "{errors}"
            );
            errors.lines().count() == 1 && errors.contains(told)
        };
        let illegal = "answered `e2e5`, which is not a legal move";
        assert!(is_told("crash", 600, "has exited unexpectedly"));
        assert!(is_told("illegal", 600, illegal));
        // On a busy machine, other answers may take as long.
        at_some_pace("only the engine's hang is told", |factor| {
            let seconds = 3 * factor;
            let told = format!("gave no answer within {seconds} s");
            is_told("hang", seconds, &told)
        });
    }

    #[test]
    fn a_position_that_kills_the_engine_twice_is_skipped() {
        if !is_there() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (said, _) = succeed(faulty(folder.path(), &["At=4p3"]));
        assert_eq!(
            (&said["games"], &said["positions"], &said["given_up"]),
            (&3.into(), &2.into(), &1.into())
        );
        let records = records(&folder.path().join("out.pgn"));
        let moves: Vec<usize> = records.iter().map(|game| game.nodes.len()).collect();
        assert_eq!(moves, [1, 0, 1]);
    }

    #[test]
    fn an_engine_that_always_fails_ends_the_run() {
        if !is_there() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut command = faulty(folder.path(), &[]);
        let many = "4k3/8/8/8/8/8/4P3/4K3 w - -\n".repeat(6);
        std::fs::write(folder.path().join("positions.epd"), many).unwrap();
        let failed = command.output().unwrap();
        let errors = String::from_utf8(failed.stderr).unwrap();
        assert!(!failed.status.success());
        assert!(
            errors.contains("failed on 5 positions in a row"),
            "{errors}"
        );
    }
}

#[test]
fn impossible_requests_get_one_line() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, told) in [
        (
            &["--play", "--limit", "1", "--engine", "no-such-engine"][..],
            "no-such-engine",
        ),
        (
            &["--play", "--limit", "1", "--set", "Nonsense=1"],
            "has no option `Nonsense`",
        ),
        (&["no-such.pgn"], "cannot read no-such.pgn"),
        (&["games.pgn", "--random-plies", "3"], "need --play"),
        (
            &["--play", "--limit", "1", "--openings", "no-such.epd"],
            "no-such.epd",
        ),
        (
            &["--sample", "--limit", "1", "--policy", "no-such.pt"],
            "no-such.pt",
        ),
    ] {
        let mut command = train(folder.path());
        command.args(["label", "-o", "out.pgn"]);
        if !arguments.contains(&"--engine") {
            command.args(["--engine", ENGINE]);
        }
        let output = output({
            command.args(arguments);
            command
        });
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && errors.contains(told),
            "{errors}"
        );
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
}

#[test]
fn stockfish_plays_and_annotates() {
    let places = ["/usr/games/stockfish", "/usr/bin/stockfish"].map(PathBuf::from);
    let on_path = std::env::var_os("PATH").into_iter().flat_map(|path| {
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        folders.into_iter().map(|folder| folder.join("stockfish"))
    });
    if !on_path.chain(places).any(|place| place.exists()) {
        crate::skip::skip("Stockfish");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let book = "4k3/8/8/8/8/8/PPPPPPPP/RNBQKBNR w KQ - 0 1\n1rk3r1/pppppppp/8/8/8/8/PPPPPPPP/1RK3R1 w KQkq - 0 1\n";
    std::fs::write(folder.path().join("book.epd"), book).unwrap();
    let mut command = train(folder.path());
    command
        .args([
            "label",
            "--play",
            "--limit",
            "2",
            "--openings",
            "book.epd",
            "-o",
            "out.pgn",
        ])
        .args([
            "--nodes",
            "500",
            "--multipv",
            "2",
            "--resign",
            "2,2000",
            "--json",
        ]);
    let (said, errors) = succeed(command);
    assert_eq!(errors, "");
    assert_eq!(said["games"], 2);
    let texts = texts(&folder.path().join("out.pgn"));
    assert!(
        texts
            .iter()
            .any(|text| text.contains("[Variant \"Chess960\"]"))
    );
    let records = records(&folder.path().join("out.pgn"));
    let won = records.iter().find(|game| {
        let start = tessera::data::replay::main_line(game).unwrap();
        start.plies()[0].position.board().black().count() == 1
    });
    assert_eq!(won.unwrap().result.unwrap().q(), 1.0);
    let findings = pack(folder.path(), "out.pgn", &["--alternatives", "0.05"]);
    assert!(findings["targets"]["policy_distribution"].as_u64().unwrap() > 10);
}
