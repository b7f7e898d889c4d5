//! Tests that every input can come from a pipe, which can only be read once, from start to end.

use super::{Folder, GAMES, START, TESSERA, gzip, tessera, told, train, zstd};
use std::io::Write;
use std::process::Command as Program;
use tessera::data::pgn::parse_game;
use tessera::data::v6::{Ending, Expectation, Searched, game_records, write_chunk};
use tessera::data::{Legal, Wdl};
use tessera::encode::{Input, policy_move};

/// Runs a command that reads `bytes`, first from its standard input and then from a named pipe, and
/// returns both outputs.
fn through_pipes(bytes: &[u8], command: impl Fn(&str) -> assert_cmd::Command) -> [String; 2] {
    let mut standard = command("/dev/stdin");
    standard.write_stdin(bytes);
    let folder = Folder::new();
    let fifo = folder.path("fifo");
    assert!(
        Program::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    // If the command opened the pipe a second time, it would block forever.
    let mut named = command(&fifo);
    named.timeout(crate::waiting::PATIENCE);
    let writer = std::thread::spawn({
        let (fifo, bytes) = (fifo.clone(), bytes.to_vec());
        move || {
            let mut pipe = std::fs::File::options().write(true).open(fifo).unwrap();
            // The first bytes arrive separately.
            for part in [&bytes[..1], &bytes[1..3], &bytes[3..]] {
                if pipe.write_all(part).is_err() {
                    return;
                }
                // Makes short reads likelier.
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    });
    let outputs = [told(standard), told(named)];
    writer.join().unwrap();
    outputs.map(|(said, _)| said)
}

/// Returns a chunk of a short game.
fn chunk(folder: &Folder) -> Vec<u8> {
    let record = parse_game(b"1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 1-0").unwrap();
    let mut game = tessera::chess::Game::default();
    let mut searched = Vec::new();
    for node in record.main_line() {
        let turn = shakmaty::Position::turn(game.position());
        let moves = shakmaty::Position::legal_moves(game.position());
        let legal = Legal::of(&moves, turn);
        let played = legal.nth(node.ordinal.into()).unwrap();
        let share = 1.0 / legal.count() as f32;
        let value = Expectation {
            q: 0.25,
            draw: 0.1,
            moves_left: 7.5,
        };
        searched.push(Searched {
            input: Input::encode(&game),
            policy: legal.iter().map(|index| (index, share)).collect(),
            root: value,
            best: value,
            played: value,
            network: None,
            visits: 800,
            best_index: played,
            played_index: played,
            is_proven: false,
            policy_divergence: 0.3,
        });
        game.play(policy_move(game.position(), played).unwrap());
    }
    let ending = Ending {
        result: Some(Wdl::Win),
        ..Ending::default()
    };
    let path = folder.at("training.1.gz");
    write_chunk(&path, &game_records(&searched, &ending)).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn training_data_of_every_kind() {
    let folder = Folder::new();
    let chunk = chunk(&folder);
    let mut plain = Vec::new();
    let mut unpacker = flate2::read::MultiGzDecoder::new(&*chunk);
    std::io::Read::read_to_end(&mut unpacker, &mut plain).unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_path_with_name(folder.at("training.1.gz"), "games/training.1.gz")
        .unwrap();
    let tar = tar.into_inner().unwrap();
    for (name, bytes, samples) in [
        ("plain", GAMES.as_bytes().to_vec(), "2 games, 5 samples"),
        ("gzip", gzip(GAMES.as_bytes()), "2 games, 5 samples"),
        ("zstd", zstd(GAMES.as_bytes()), "2 games, 5 samples"),
        ("chunk", chunk, "1 game, 6 samples"),
        ("unpacked chunk", plain, "1 game, 6 samples"),
        ("tar", tar, "1 game, 6 samples"),
    ] {
        let output = folder.path("out.shard");
        for said in through_pipes(&bytes, |path| {
            train(&["pack", path, "-o", &output, "--played"])
        }) {
            assert!(said.contains(&format!(": {samples}")), "{name}: {said}");
            assert!(said.ends_with("0 skipped\n"), "{name}: {said}");
        }
        // `tessera-train run` opens its shards in the same way as `pack`.
        if let "zstd" | "tar" = name {
            for said in through_pipes(&bytes, |path| train(&["stats", path])) {
                let count = samples.split(' ').next().unwrap();
                let games = format!("games                            {count}\n");
                assert!(said.starts_with(&games), "{name}: {said}");
            }
        }
    }
    let shard = std::fs::read(folder.at("out.shard")).unwrap();
    let mut stats = train(&["stats", "/dev/stdin"]);
    let refused = stats.write_stdin(shard).assert().failure();
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(
        said.contains("/dev/stdin is a shard, which cannot be read from a pipe"),
        "{said}"
    );
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn games_and_positions_to_label_or_start_from() {
    let folder = Folder::new();
    let engine = [
        "--engine",
        TESSERA,
        "--set",
        "Backend=random",
        "--nodes",
        "4",
    ];
    let number = std::cell::Cell::new(0);
    let label = |arguments: &[&str]| {
        number.set(number.get() + 1);
        let output = folder.path(&format!("out-{}.pgn", number.get()));
        train(&[&["label", "-o", &output], &engine[..], arguments].concat())
    };
    let epd = format!("{START}\n{START}\n");
    for (name, bytes, summary) in [
        ("games", zstd(GAMES.as_bytes()), "2 games, 5 positions"),
        (
            "positions",
            epd.clone().into_bytes(),
            "2 games, 2 positions",
        ),
    ] {
        for said in through_pipes(&bytes, |path| label(&[path])) {
            assert!(said.contains(summary), "{name}: {said}");
        }
        let play = |path: &str| {
            let play = [
                "--play",
                "--limit",
                "2",
                "--max-plies",
                "4",
                "--openings",
                path,
            ];
            label(&[&play[..], &["--random-plies", "0"]].concat())
        };
        for said in through_pipes(&bytes, play) {
            assert!(said.contains(": 2 games"), "{name}: {said}");
        }
    }
}

#[test]
fn test_suites_and_puzzles() {
    let folder = Folder::new();
    let uniform = ["--agent", "value", "--backend", "uniform"];
    let mate = "6k1/2p2ppp/8/8/8/8/5PPP/QR4K1";
    let puzzles = format!("PuzzleId,FEN,Moves,Rating\na,{mate} b - - 0 1,c7c6 b1b8,1500\n");
    for bytes in [puzzles.clone().into_bytes(), zstd(puzzles.as_bytes())] {
        let solve = |path: &str| tessera(&[&["puzzles", path], &uniform[..]].concat());
        for said in through_pipes(&bytes, solve) {
            assert!(said.contains("100.0 %"), "{said}");
        }
        let games = folder.write("games.pgn", GAMES);
        let output = folder.path("out.shard");
        let pack =
            |path: &str| train(&["pack", &games, "-o", &output, "--played", "--without", path]);
        for said in through_pipes(&bytes, pack) {
            assert!(said.ends_with(", 0 left out\n"), "{said}");
        }
    }
    let suite = format!("{mate} w - - bm Rb8#;\n");
    for bytes in [suite.clone().into_bytes(), gzip(suite.as_bytes())] {
        let solve = |path: &str| tessera(&[&["epd", path], &uniform[..]].concat());
        for said in through_pipes(&bytes, solve) {
            assert!(said.starts_with("1 of 1 solved"), "{said}");
        }
    }
    let rated = "[WhiteElo \"1500\"]\n[BlackElo \"1500\"]\n\n1. e4 e5 2. Nf3 *\n";
    for bytes in [rated.as_bytes().to_vec(), zstd(rated.as_bytes())] {
        let list = |path: &str| tessera(&["match-moves", path, "--list", "--skip-plies", "0"]);
        for said in through_pipes(&bytes, list) {
            assert_eq!(said.lines().count(), 3, "{said}");
        }
    }
}
