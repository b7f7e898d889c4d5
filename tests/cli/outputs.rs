//! Output paths: they are checked before work begins, and `-` stands for standard output.

use crate::support::exit;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tessera::data::pgn::{Games, parse_game, tags};
use tessera::data::replay::main_line;

const TESSERA: &str = env!("CARGO_BIN_EXE_tessera");
const TRAIN: &str = env!("CARGO_BIN_EXE_tessera-train");
const NETWORK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/nets/tessera-xs.pt");
/// Arguments for quick self-play games.
const LABEL: [&str; 8] = [
    "label",
    "--engine",
    TESSERA,
    "--set",
    "Backend=random",
    "--nodes",
    "8",
    "-o",
];

fn command(folder: &Path, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null());
    command
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Output {
    command(folder, program, arguments).output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn outputs_that_cannot_be_written_are_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    // None of the inputs exists.
    let files: [(&str, &[&str]); 9] = [
        (TESSERA, &["generate", "--net", "none.pt", "-o"]),
        (TESSERA, &["import", "none.pb.gz", "-o"]),
        (TESSERA, &["export-lc0", "none.pt", "-o"]),
        (TESSERA, &["export-onnx", "none.pt", "-o"]),
        (TESSERA, &["explain", "--net", "none.pt", "-o"]),
        (TRAIN, &["merge", "none.pt", "other.pt", "-o"]),
        (TRAIN, &["report", "none", "-o"]),
        (
            TRAIN,
            &["transcoder", "--layer", "1", "--games", "none.pgn", "-o"],
        ),
        (TRAIN, &["lens", "--games", "none.pgn", "-o"]),
    ];
    // These commands create their output folder.
    let makers: [(&str, &[&str]); 3] = [
        (TRAIN, &["pack", "none.pgn", "--played", "-o"]),
        (TRAIN, &["label", "none.pgn", "-o"]),
        (TRAIN, &["export", "none.pt", "-o"]),
    ];
    let folders: [(&str, &[&str]); 2] = [
        (
            TRAIN,
            &["selfplay", "--limit", "1", "--net", "none.pt", "-o"],
        ),
        (TESSERA, &["explain", "--net", "none.pt", "--svg"]),
    ];
    let refused = |(program, arguments): (&str, &[&str]), output: &str, expected: &str| {
        let output = run(folder.path(), program, &[arguments, &[output]].concat());
        let errors = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    };
    // The full messages are covered by the tests of `atomic_file`.
    let places = [
        ("folder", "it is a folder"),
        ("file/new", "file is not a folder"),
        ("none/new", "there is no folder none"),
    ];
    for (command, (output, expected)) in files.into_iter().zip(places.into_iter().cycle()) {
        refused(command, output, expected);
    }
    let [pack, label, export] = makers;
    refused(pack, "folder", "it is a folder");
    refused(label, "file/new", "cannot make the folder file");
    refused(export, "folder", "it is a folder");
    let [selfplay, svg] = folders;
    refused(selfplay, "-", "name one");
    refused(svg, "file/new", "file is not a folder");
    refused(svg, "file", "file is not a folder");
    let left = folder.path().read_dir().unwrap().count();
    assert_eq!(left, 2);
}

#[test]
fn a_dash_names_standard_input_and_output() {
    let folder = tempfile::tempdir().unwrap();
    let export = |output: &str| run(folder.path(), TRAIN, &["export", NETWORK, "-o", output]);
    let written = export("net.pt");
    let streamed = export("-");
    let net = std::fs::read(folder.path().join("net.pt")).unwrap();
    assert!(streamed.stdout == net, "{}", errors(&streamed));
    let said = String::from_utf8(written.stdout).unwrap();
    assert_eq!(errors(&streamed), said.replace("net.pt", "-"));
    assert!(export("/dev/null").status.success());

    let games = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/games/master-games.pgn");
    let pack = |input: &str, output: &str| {
        let mut command = command(
            folder.path(),
            TRAIN,
            &["pack", input, "--played", "-o", output],
        );
        command.stdin(std::fs::File::open(games).unwrap());
        command.output().unwrap()
    };
    assert!(pack(games, "named.shard").status.success());
    let piped = pack("-", "-");
    assert!(piped.status.success(), "{}", errors(&piped));
    assert!(pack("-", "piped.shard").status.success());
    let shard = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(piped.stdout == shard("piped.shard"));
    // The shards differ in the names of their sources and therefore in the offsets that follow
    // them.
    let difference = shard("named.shard").len() - piped.stdout.len();
    assert!((1..20).contains(&difference), "{difference}");

    let mut epd = command(
        folder.path(),
        TESSERA,
        &["epd", "-", "--backend", "uniform"],
    );
    let mut epd = epd
        .args(["--agent", "value", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut suite = epd.stdin.take().unwrap();
    suite.write_all(super::SUITE.as_bytes()).unwrap();
    drop(suite);
    let solved: Value = serde_json::from_slice(&epd.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(
        (&solved["solved"], &solved["total"]),
        (&1.into(), &2.into())
    );
    let left = folder.path().read_dir().unwrap().count();
    assert_eq!(left, 3);
}

#[test]
fn labelling_ends_when_its_reader_closes_the_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        &LABEL[..],
        &["-", "--play", "--limit", "1000000000", "--max-plies", "40"],
    ]
    .concat();
    let mut label = command(folder.path(), TRAIN, &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(label.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert!(line.starts_with("[Event \""), "{line}");
    drop(output);
    assert!(exit(&mut label).success());
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

/// Returns the games that a command wrote to standard output or to `file`.
fn games(output: &Output, file: Option<&Path>) -> String {
    assert!(output.status.success(), "{}", errors(output));
    match file {
        Some(file) => std::fs::read_to_string(file).unwrap(),
        None => String::from_utf8(output.stdout.clone()).unwrap(),
    }
}

#[test]
fn other_programs_read_the_games_and_labelled_ones_keep_their_tags() {
    let folder = tempfile::tempdir().unwrap();
    let own = "[Event \"A cup\"]\n[Site \"M\u{fc}nster \\\"x\\\"\"]\n[Date \"2001.02.03\"]\n\
               [Round \"3.1\"]\n[White \"A\"]\n[Black \"B\"]\n[Result \"1-0\"]\n[ECO \"C20\"]\n\
               [TimeControl \"60+1\"]\n\n1. e4 e5 2. Qh5 Nc6 3. Bc4 Nf6 4. Qxf7# 1-0\n";
    std::fs::write(folder.path().join("own.pgn"), own).unwrap();
    let label = |rest: &[&str]| run(folder.path(), TRAIN, &[&LABEL[..], &["-"], rest].concat());
    let labelled = games(&label(&["own.pgn", "--multipv", "2"]), None);
    let kept = tags(labelled.as_bytes());
    let whole = tags(own.as_bytes());
    assert_eq!(kept[..7], whole[..7]);
    assert!(whole.iter().all(|tag| kept.contains(tag)), "{labelled}");
    let played = games(
        &label(&["--play", "--limit", "3", "--max-plies", "40"]),
        None,
    );
    let selfplay = [
        "selfplay",
        "--backend",
        "random",
        "--visits",
        "20",
        "--limit",
        "2",
    ];
    let selfplay = [&selfplay[..], &["--max-plies", "70", "-o", "folder"]].concat();
    let selfplayed = run(folder.path(), TRAIN, &selfplay);
    let selfplayed = games(&selfplayed, Some(&folder.path().join("folder/games.pgn")));
    let all = [labelled, played, selfplayed].concat();
    let longest = all.lines().filter(|line| !line.starts_with('['));
    let longest = longest.map(|line| line.chars().count()).max().unwrap();
    assert!((60..80).contains(&longest), "{longest}");
    let ours: Vec<_> = Games::new(all.as_bytes()).map(Result::unwrap).collect();
    assert_eq!(ours.len(), 6);
    let roster = ["Event", "Site", "Date", "Round", "White", "Black", "Result"];
    for game in &ours {
        let names: Vec<String> = tags(game).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[..7], roster);
    }
    let Some(python) = crate::uci_python::python() else {
        return;
    };
    let mut reader = Command::new(python);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/pgn.py");
    let mut reader = reader
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = reader.stdin.take().unwrap();
    input.write_all(all.as_bytes()).unwrap();
    drop(input);
    let read = String::from_utf8(reader.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(read.lines().count(), ours.len());
    for (line, game) in read.lines().zip(&ours) {
        let read: Value = serde_json::from_str(line).unwrap();
        assert_eq!(read["errors"], Value::Array(Vec::new()));
        let read_tags = read["tags"].as_object().unwrap();
        for (name, value) in tags(game) {
            // python-chess leaves escapes unchanged.
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            assert_eq!(read_tags[&name], escaped);
        }
        let record = parse_game(game).unwrap();
        let scores = record.main_line().filter(|node| node.eval.is_some());
        assert_eq!(read["scores"], scores.count());
        let game = main_line(&record).unwrap();
        let moves = game.plies().iter().filter_map(|ply| ply.played);
        let moves: Vec<String> = moves.map(|mv| game.format_move(mv)).collect();
        assert_eq!(read["moves"], Value::from(moves));
    }
}
