//! Tests that errors about unreadable files state what kind of files they are.

use super::{Folder, GAMES, START, failure, tessera, train};

/// Returns every command that reads text, each with `path` as its input.
fn readers<'a>(path: &'a str, output: &'a str, games: &'a str) -> [(bool, Vec<&'a str>); 9] {
    [
        (true, vec!["pack", path, "-o", output, "--played"]),
        (
            true,
            vec!["pack", games, "-o", output, "--played", "--without", path],
        ),
        (true, vec!["stats", path]),
        (
            true,
            vec!["label", path, "-o", output, "--engine", super::TESSERA],
        ),
        (
            true,
            vec![
                "label",
                "--play",
                "--limit",
                "1",
                "--openings",
                path,
                "-o",
                output,
                "--engine",
                super::TESSERA,
            ],
        ),
        (
            false,
            vec!["puzzles", path, "--agent", "policy", "--backend", "uniform"],
        ),
        (
            false,
            vec!["epd", path, "--agent", "policy", "--backend", "uniform"],
        ),
        (false, vec!["match-moves", path]),
        (
            false,
            vec!["explain", "--games", path, "--ply", "1", "-o", output],
        ),
    ]
}

#[test]
fn utf_16_and_folders_are_named() {
    let folder = Folder::new();
    let games = folder.write("games.pgn", GAMES);
    let output = folder.path("output");
    let marked = std::iter::once(0xfeff).chain(GAMES.encode_utf16());
    let wide: Vec<u8> = marked.flat_map(u16::to_le_bytes).collect();
    let wide = folder.write("wide", wide);
    for (is_train, arguments) in readers(&wide, &output, &games) {
        let command = if is_train { train } else { tessera };
        let said = failure(command(&arguments));
        assert!(said.contains("wide"), "{arguments:?}: {said}");
        let expected = "UTF-16: save it in UTF-8";
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    let inside = folder.path("inside");
    std::fs::create_dir(&inside).unwrap();
    folder.write("inside/games.pgn", GAMES);
    for (is_train, arguments) in readers(&inside, &output, &games) {
        let command = if is_train { train } else { tessera };
        let said = failure(command(&arguments));
        // Some commands read folders, but only folders of chunks.
        let is_named = said.ends_with("it is a folder") || said.contains("no training chunks");
        assert!(said.contains("inside") && is_named, "{arguments:?}: {said}");
    }
    assert!(!folder.at("output").exists());
}

#[test]
fn missing_samples_are_explained() {
    let folder = Folder::new();
    let games = folder.write("games.pgn", GAMES);
    let bad = folder.write("bad.pgn", "1. e4 Sf6 *\n\n1. d4 Sf6 *\n");
    let empty = folder.write("empty.pgn", "\n% nothing\n");
    let start = folder.write("start.fen", START);
    let output = folder.path("out.shard");
    for (arguments, expected) in [
        (
            vec![&*games, "--played", "--without", &start],
            "all games are left out by --without",
        ),
        (
            vec![&*games, "--played", "--hold-out", "1"],
            "all games are left out by --without or --hold-out",
        ),
        (
            vec![&*bad, "--played"],
            "none of 2 games or records can be read",
        ),
        (vec![&*empty, "--played"], "there are no games in the input"),
        (
            vec![&*games, "--evals", "chooser"],
            "without any training target under these options",
        ),
    ] {
        let said = failure(train(&[&["pack", "-o", &output], &arguments[..]].concat()));
        assert!(said.contains(expected), "{said}");
        assert_eq!(
            said.contains("--evals"),
            arguments.contains(&"--evals"),
            "{said}"
        );
    }
    let shard = folder.path("sound.shard");
    super::told(train(&["pack", &games, "-o", &shard, "--played"]));
    let said = failure(train(&["pack", &shard, "-o", &output]));
    assert!(said.ends_with("sound.shard is a shard already"), "{said}");
}
