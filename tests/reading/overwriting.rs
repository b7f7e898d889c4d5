//! Tests that no command overwrites its input, even under a different name.

use super::{Folder, GAMES, START, TESSERA, failure, tessera, train};

/// Returns output names that refer to the input file.
fn names(folder: &Folder, input: &str) -> Vec<String> {
    let mut names = vec![input.to_owned()];
    #[cfg(unix)]
    {
        let [soft, hard] = ["soft", "hard"].map(|kind| format!("{input}.{kind}"));
        std::os::unix::fs::symlink(input, &soft).unwrap();
        std::fs::hard_link(input, &hard).unwrap();
        names.extend([soft, hard]);
    }
    let name = input.rsplit_once('/').unwrap().1;
    names.push(folder.path(&format!("folder/../{name}")));
    names
}

/// Asserts that a command refuses to write to its input under any of these names. In `arguments`,
/// `IN` stands for the input, and `OUT` for the output.
fn assert_refused(is_train: bool, input: &str, outputs: &[String], arguments: &[&str]) {
    let before = std::fs::read(input).unwrap();
    for output in outputs {
        let arguments: Vec<String> = arguments
            .iter()
            .map(|argument| argument.replace("IN", input).replace("OUT", output))
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let said = failure(if is_train { train } else { tessera }(&arguments));
        assert!(
            said.ends_with("name another output"),
            "{arguments:?}: {said}"
        );
        assert_eq!(std::fs::read(input).unwrap(), before, "{arguments:?}");
    }
}

#[test]
fn no_command_overwrites_its_inputs() {
    let folder = Folder::new();
    std::fs::create_dir(folder.at("folder")).unwrap();
    let root = env!("CARGO_MANIFEST_DIR");
    let games = folder.write("games.pgn", GAMES);
    let start = folder.write("start.epd", START);
    let network = std::fs::read(format!("{root}/nets/tessera-xs.pt")).unwrap();
    let network = folder.write("net.pt", network);
    let pack = ["pack", "IN", "--played", "-o", "OUT"];
    assert_refused(true, &games, &names(&folder, &games), &pack);
    let table = folder.write("puzzles.csv", "PuzzleId,FEN,Moves,Rating\n");
    let play = [
        "label", "--play", "--limit", "1", "--engine", TESSERA, "-o", "OUT",
    ];
    let taught = format!("{network},elo=1500");
    let sample = ["--sample", "--limit", "1", "--policy", &taught];
    let fit = ["transcoder", "--layer", "1", "-o", "OUT"];
    let explain = ["explain", "--net", &network];
    for (is_train, input, arguments) in [
        (
            true,
            &start,
            vec!["pack", &games, "--played", "--without", "IN", "-o", "OUT"],
        ),
        (
            true,
            &network,
            vec!["pack", &games, "--played", "--teacher", "IN", "-o", "OUT"],
        ),
        (
            true,
            &games,
            vec!["label", "IN", "--engine", TESSERA, "-o", "OUT"],
        ),
        (true, &start, [&play[..], &["--openings", "IN"]].concat()),
        (
            true,
            &network,
            [&["label", "-o", "OUT"], &sample[..]].concat(),
        ),
        (true, &network, vec!["export", "IN", "-o", "OUT"]),
        (true, &games, [&fit[..], &["--games", "IN"]].concat()),
        (
            true,
            &network,
            [&fit[..], &["--games", &games, "--net", "IN"]].concat(),
        ),
        (
            true,
            &table,
            [&fit[..], &["--games", &games, "--themes", "IN"]].concat(),
        ),
        (true, &games, vec!["lens", "--games", "IN", "-o", "OUT"]),
        (
            true,
            &network,
            vec!["lens", "--games", &games, "--net", "IN", "-o", "OUT"],
        ),
        (
            false,
            &table,
            [&explain[..], &["--lens", "IN", "-o", "OUT"]].concat(),
        ),
        (false, &network, vec!["import", "IN", "-o", "OUT"]),
        (false, &network, vec!["export-lc0", "IN", "-o", "OUT"]),
        (false, &network, vec!["export-onnx", "IN", "-o", "OUT"]),
        (false, &network, vec!["explain", "--net", "IN", "-o", "OUT"]),
        (
            false,
            &network,
            vec!["explain", "--against", "IN", "-o", "OUT"],
        ),
        (
            false,
            &games,
            [&explain[..], &["--games", "IN", "--ply", "1", "-o", "OUT"]].concat(),
        ),
        (
            false,
            &table,
            [&explain[..], &["--transcoder", "IN", "-o", "OUT"]].concat(),
        ),
        (false, &games, vec!["review", "IN", "-o", "OUT"]),
        (false, &games, vec!["review", "IN", "--pgn", "OUT"]),
        (false, &games, vec!["review", "IN", "--puzzles", "OUT"]),
        (
            false,
            &network,
            vec!["review", &games, "--net", "IN", "--pgn", "OUT"],
        ),
    ] {
        assert_refused(is_train, input, std::slice::from_ref(input), &arguments);
    }
}

#[test]
fn outputs_of_one_command_are_separate_files() {
    let folder = Folder::new();
    std::fs::create_dir(folder.at("folder")).unwrap();
    let output = folder.path("x");
    for other in [output.clone(), folder.path("folder/../x")] {
        let games = folder.write("games.pgn", GAMES);
        let said = failure(tessera(&[
            "review",
            &games,
            "--pgn",
            &output,
            "--puzzles",
            &other,
        ]));
        assert!(
            said.ends_with("would be one file: name another output"),
            "{said}"
        );
        assert!(!folder.at("x").exists());
    }
}

/// Pages are written next to the games, but do not overwrite them.
#[test]
fn pages_of_a_folder_do_not_overwrite_the_games() {
    let folder = Folder::new();
    let here = folder.path("");
    for name in ["index.html", "game-0002.html"] {
        let games = folder.write(name, GAMES);
        let review = ["review", &games, "-o", &here, "--backend", "random"];
        let said = failure(tessera(&review));
        assert!(said.ends_with("name another output"), "{said}");
        assert_eq!(std::fs::read_to_string(&games).unwrap(), GAMES);
    }
}

#[test]
fn files_written_beside_the_output_do_not_overwrite_inputs() {
    let folder = Folder::new();
    let part = folder.write("out.pgn.part", GAMES);
    let output = folder.path("out.pgn");
    let said = failure(train(&["label", &part, "--engine", TESSERA, "-o", &output]));
    assert!(said.ends_with("name another output"), "{said}");
    let games = folder.write("games.pgn", GAMES);
    let play = [
        "selfplay",
        "--limit",
        "1",
        "--backend",
        "uniform",
        "--openings",
    ];
    let here = folder.path("");
    let said = failure(train(&[&play[..], &[&games, "-o", &here]].concat()));
    assert!(said.ends_with("name another output"), "{said}");
    let metrics = folder.write("metrics.jsonl", "");
    let said = failure(train(&["report", &here, "-o", &metrics]));
    assert!(said.ends_with("name another output"), "{said}");
    let chunk = folder.write("training.1.gz", "");
    let said = failure(train(&["pack", &here, "-o", &chunk]));
    assert!(said.ends_with("name another output"), "{said}");
    std::fs::create_dir(folder.at("checkpoints")).unwrap();
    let checkpoint = folder.write("checkpoints/step-000000001.safetensors", "");
    let said = failure(train(&["export", &here, "-o", &checkpoint]));
    assert!(said.ends_with("name another output"), "{said}");
}
