//! The engine starts in the way that GUIs start it: from any folder, and without environment
//! variables that locate libtorch.

#![cfg(unix)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

#[test]
fn the_engine_starts_from_any_folder_with_an_empty_environment() {
    let mut engine = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    engine
        .stdin
        .take()
        .unwrap()
        .write_all(b"uci\nquit\n")
        .unwrap();
    let output = engine.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complained}");
    assert!(said.lines().any(|line| line == "uciok"), "{complained}");
}

/// Runs a program whose working folder has been deleted.
fn in_a_deleted_folder(program: &str, arguments: &[&str], input: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "rmdir \"$PWD\" && exec \"$@\"", "sh", program])
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

const LOST: &str = "the working folder was deleted, so that relative paths lead nowhere";

#[test]
fn the_engine_plays_in_a_deleted_folder() {
    let engine = env!("CARGO_BIN_EXE_tessera");
    let input = "setoption name Net value nets/any.pt\nisready\n\
                 setoption name LogFile value any.log\n\
                 setoption name SyzygyPath value tables\n\
                 setoption name Net value\nsetoption name Backend value random\n\
                 go nodes 10\n";
    let output = in_a_deleted_folder(engine, &[], input);
    let said = String::from_utf8(output.stdout).unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}");
    assert!(said.contains("\nbestmove "), "{said}");
    // The log file is still closed when the search starts, which therefore says so again.
    let lost = if cfg!(feature = "torch") { 4 } else { 3 };
    assert_eq!(said.matches(LOST).count(), lost, "{said}");
}

#[test]
fn commands_explain_relative_paths_in_a_deleted_folder() {
    let tessera = env!("CARGO_BIN_EXE_tessera");
    let fine = in_a_deleted_folder(tessera, &["perft", "2"], "");
    assert!(fine.status.success());
    let measuring = [
        (
            tessera,
            vec!["puzzles", "puzzles.csv", "--backend", "random"],
        ),
        (tessera, vec!["epd", "suite.epd", "--backend", "random"]),
    ];
    #[cfg(not(feature = "torch"))]
    let with_networks = [];
    #[cfg(feature = "torch")]
    let with_networks = {
        let train = env!("CARGO_BIN_EXE_tessera-train");
        let fine = in_a_deleted_folder(train, &["size", "--preset", "cf-1m-gab"], "");
        let complained = String::from_utf8_lossy(&fine.stderr);
        assert!(fine.status.success(), "{complained}");
        let games = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/games/master-games.pgn");
        [
            (tessera, vec!["describe", "net.pt"]),
            (tessera, vec!["import", "net.pb.gz", "-o", "net.pt"]),
            (train, vec!["stats", "games.pgn"]),
            (train, vec!["pack", "games.pgn", "-o", "games.shard"]),
            (train, vec!["pack", games, "--played", "-o", "games.shard"]),
            (train, vec!["run", "run.toml", "-o", "run"]),
        ]
    };
    for (program, arguments) in measuring.into_iter().chain(with_networks) {
        let output = in_a_deleted_folder(program, &arguments, "");
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(errors.trim_end().ends_with(LOST), "{arguments:?}: {errors}");
    }
}
