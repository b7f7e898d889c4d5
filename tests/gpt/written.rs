//! Tests `tessera generate` through its binary: any program can read its games, and its output file
//! contains only complete games at any time.

use super::{networks, random};
use crate::support::{printed, tessera};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tessera::data::pgn::{open, parse_game, tag};
use tessera::data::replay::main_line;
use tessera::torch::ExportPrecision;

/// Writes an untrained network to a folder.
pub fn newborn(folder: &Path) -> PathBuf {
    let path = folder.join("newborn.pt");
    let (_, config) = &networks()[0];
    random(config).write(ExportPrecision::F32, &path).unwrap();
    path
}

fn generate(folder: &Path, arguments: &[&str]) -> Output {
    tessera(folder, &["generate", "--net", "newborn.pt"])
        .args(arguments)
        .output()
        .unwrap()
}

fn games(folder: &Path, arguments: &[&str]) -> Vec<String> {
    let output = generate(folder, arguments);
    let text = printed(output);
    let games = text.split("\n\n[").filter(|game| !game.trim().is_empty());
    games
        .map(|game| match game.starts_with('[') {
            true => game.to_owned(),
            false => format!("[{game}"),
        })
        .collect()
}

fn tag_of(game: &str, name: &str) -> String {
    tag(game, name).unwrap_or_default()
}

fn read(path: &Path) -> Vec<String> {
    let games = open(path, |file| file).unwrap();
    games
        .map(|game| String::from_utf8(game.unwrap().text).unwrap())
        .collect()
}

#[test]
fn games_are_standard_pgn_and_start_as_requested() {
    let folder = tempfile::tempdir().unwrap();
    newborn(folder.path());
    let arguments = [
        "--limit",
        "5",
        "--moves",
        "1. e4 c5 2. Nf3",
        "--white-elo",
        "1400",
        "--black-elo",
        "1900",
        "--result",
        "1-0",
        "--seed",
        "3",
    ];
    let written = games(folder.path(), &arguments);
    assert_eq!(written.len(), 5);
    for (number, game) in (1..).zip(&written) {
        let game = main_line(&parse_game(game.as_bytes()).unwrap()).unwrap();
        let opening = game.plies()[1..4].iter().map(|ply| ply.played.unwrap());
        let opening: Vec<_> = opening.map(|mv| game.format_move(mv)).collect();
        assert_eq!(opening, ["e2e4", "c7c5", "g1f3"]);
        let text = &written[number - 1];
        for (name, expected) in [
            ("WhiteElo", "1400"),
            ("BlackElo", "1900"),
            ("White", "random"),
        ] {
            assert_eq!(tag_of(text, name), expected);
        }
        assert_eq!(tag_of(text, "Round"), number.to_string());
        let ended = tag_of(text, "Termination") == "normal";
        assert_eq!(tag_of(text, "Result") != "*", ended, "{text}");
    }
    assert_eq!(written, games(folder.path(), &arguments));
    // Each game depends only on the seed and its own number.
    let few = games(
        folder.path(),
        &[&arguments[..], &["--batch", "2", "--threads", "1"]].concat(),
    );
    assert_eq!(written, few);
    let other = games(
        folder.path(),
        &[&arguments[..], &["--precision", "bf16"]].concat(),
    );
    assert_eq!(other.len(), 5);
    assert!(
        tag_of(&other[0], "Event").ends_with(", bf16"),
        "{}",
        other[0]
    );
}

#[test]
fn games_cycle_through_the_lines_of_an_eco_code() {
    let folder = tempfile::tempdir().unwrap();
    newborn(folder.path());
    let table = "eco\tname\tpgn\nB00\tOwen\t1. e4 b6\nB01\tScandinavian\t1. e4 d5\n\
                 B00\tPirc\t1. e4 d6 2. d4 Nf6\n";
    std::fs::write(folder.path().join("b.tsv"), table).unwrap();
    let arguments = ["--limit", "4", "--eco", "b00", "--eco-table", "."];
    let written = games(folder.path(), &arguments);
    let openings = ["1. e4 b6", "1. e4 d6 2. d4 Nf6"].into_iter().cycle();
    for (game, opening) in written.iter().zip(openings) {
        let moves = game.split("\n\n").nth(1).unwrap();
        assert!(moves.starts_with(opening), "{game}");
        assert!(tag_of(game, "Event").contains("from B00"), "{game}");
    }
}

#[test]
fn without_the_mask_games_end_at_an_illegal_move() {
    let folder = tempfile::tempdir().unwrap();
    newborn(folder.path());
    let written = games(folder.path(), &["--limit", "20", "--raw"]);
    let broken: Vec<&String> = written
        .iter()
        .filter(|game| tag_of(game, "Termination") == "rules infraction")
        .collect();
    assert!(broken.len() > 10, "{}", broken.len());
    for game in broken {
        let text = game.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("{illegal: ") && text.ends_with("} *"),
            "{game}"
        );
    }
}

#[test]
fn interrupted_generation_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let net = newborn(folder.path());
    let place = |name: &str| folder.path().join(name);
    let write = |games: &str, output: &str| -> Value {
        let output = generate(folder.path(), &["--limit", games, "-o", output, "--json"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    assert_eq!(write("6", "all.pgn.zst")["games"], 6);
    assert_eq!(write("2", "some.pgn")["games"], 2);
    assert_eq!(write("6", "some.pgn")["games"], 4);
    assert_eq!(read(&place("all.pgn.zst")), read(&place("some.pgn")));
    // A file that contains other games is not overwritten, and neither is the input.
    let before = std::fs::read(place("some.pgn")).unwrap();
    let other = generate(folder.path(), &["--seed", "1", "-o", "some.pgn"]);
    assert!(!other.status.success());
    assert_eq!(std::fs::read(place("some.pgn")).unwrap(), before);
    let before = std::fs::read(&net).unwrap();
    assert!(
        !generate(folder.path(), &["-o", "newborn.pt"])
            .status
            .success()
    );
    assert_eq!(std::fs::read(&net).unwrap(), before);
}

/// Standard output contains only the games, in order. Devices are written to directly. If the
/// reader closes the pipe, the command ends immediately.
#[cfg(unix)]
#[test]
fn games_are_written_to_streams() {
    let folder = tempfile::tempdir().unwrap();
    newborn(folder.path());
    let write = |output: &str| {
        let written = generate(folder.path(), &["--limit", "6", "-o", output, "--json"]);
        assert!(written.status.success());
        written
    };
    write("file.pgn");
    let file = std::fs::read(folder.path().join("file.pgn")).unwrap();
    for name in ["-", "/dev/stdout"] {
        let streamed = write(name);
        assert!(streamed.stdout == file, "{name}");
        let said: Value = serde_json::from_slice(&streamed.stderr).unwrap();
        assert_eq!(said["games"], 6);
    }
    assert_eq!(
        write("/dev/null")
            .stdout
            .iter()
            .filter(|&&it| it == b'\n')
            .count(),
        1
    );
    assert!(!Path::new("/dev/null.part").exists());
    for line in String::from_utf8(file).unwrap().lines() {
        assert!(line.starts_with('[') || line.chars().count() < 80, "{line}");
    }
    let script =
        "\"$0\" generate --net newborn.pt --limit 18446744073709551615 -o /dev/stdout | head -1";
    let mut shell = Command::new("sh");
    let shell = shell.current_dir(folder.path());
    let read = shell
        .args(["-c", script, env!("CARGO_BIN_EXE_tessera")])
        .stderr(Stdio::null())
        .output()
        .unwrap();
    assert!(read.stdout.starts_with(b"[Event \""));
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 2);
}

#[test]
fn mistakes_get_one_line_of_error() {
    let folder = tempfile::tempdir().unwrap();
    newborn(folder.path());
    let place = |name: &str| folder.path().join(name);
    std::fs::write(
        place("study.pgn"),
        "[FEN \"8/8/8/8/8/4k3/4p3/4K2R w K - 0 1\"]\n\n1. Rh2 *\n",
    )
    .unwrap();
    let long = "Nf3 Nf6 Ng1 Ng8 ".repeat(9);
    let xs = Path::new(env!("CARGO_MANIFEST_DIR")).join("nets/tessera-xs.pt");
    let xs = xs.to_str().unwrap();
    for (arguments, expected) in [
        (&["--moves", "1. e4 Qd4"][..], "--moves"),
        (&["--moves", "hello"], "--moves"),
        (&["--moves", &long], "it reads up to 23 moves"),
        (&["--games", "study.pgn"], "initial position"),
        (&["--games", "none.pgn"], "none.pgn"),
        (&["--eco", "F00"], "--eco"),
        (&["--eco", "b90"], "data/eco/b.tsv"),
        (&["--eco", "B90", "--moves", "1. e4"], "--moves"),
        (&["--white-elo", "9000"], "--white-elo"),
        (&["--temperature=-1"], "--temperature"),
        (&["--top-p", "2"], "--top-p"),
        (&["--result", "2-0"], "--result"),
        (&["--net", xs], "family gpt"),
        (&["--net", "study.pgn"], "study.pgn"),
        (&["-o", "none/games.pgn"], "none/games.pgn"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
        command.current_dir(folder.path()).arg("generate");
        if arguments[0] != "--net" {
            command.args(["--net", "newborn.pt"]);
        }
        let output = command.args(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    }
}
