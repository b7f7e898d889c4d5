//! Tests `tessera-train pack` and `tessera-train stats` with real games, and the resulting shards.

use crate::support::games;
use std::io::Write;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use shakmaty::Position;
use tessera::data::held_out::is_held_out;
use tessera::data::pgn::{open, parse_game};
use tessera::data::record::Record;
use tessera::data::replay::{VariationWeight, replay};
use tessera::data::shard::{Shard, ShardError};
use tessera::data::{Legal, Policy};

const GAMES: [(&str, &[&str]); 4] = [
    ("tcec-standard.pgn", &["--evals", "chooser"]),
    (
        "tcec-chess960.pgn",
        &["--evals", "chooser", "--curve", "stockfish"],
    ),
    (
        "stockfish-noise.pgn",
        &["--evals", "chooser", "--unscored-random", "--curve", "lc0"],
    ),
    ("master-games.pgn", &["--played"]),
];

fn train() -> Command {
    Command::new(crate::support::TRAIN)
}

/// Packs a file; returns the shard and the text printed to standard error.
fn pack(input: &Path, output: &Path, options: &[&str]) -> (Shard, String) {
    let mut command = train();
    command
        .arg("pack")
        .arg(input)
        .arg("-o")
        .arg(output)
        .args(options);
    let assert = command.assert().success();
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    (Shard::open(output).unwrap(), said)
}

fn records(shard: &Shard) -> Vec<Record> {
    let blocks = 0..shard.blocks().len();
    blocks
        .flat_map(|block| shard.read(block).unwrap())
        .collect()
}

fn parsed(input: &Path) -> Vec<Record> {
    let games = open(input, |file| file).unwrap();
    games
        .map(|text| parse_game(&text.unwrap()).unwrap())
        .collect()
}

#[test]
fn shards_hold_the_games_and_every_sample_is_a_legal_move_of_its_position() {
    let folder = tempfile::tempdir().unwrap();
    let weights = VariationWeight {
        first: 0.5,
        decay: 0.95,
    };
    for (name, options) in GAMES {
        // `tessera-train pack` creates this folder.
        let output = folder.path().join("shards/games.shard");
        let (shard, _) = pack(&games(name), &output, options);
        let records = records(&shard);
        assert_eq!(records, parsed(&games(name)), "{name}");
        assert_eq!(shard.header.sources, [name]);
        let mut samples = 0;
        let mut agreement = 0.0;
        let check = |sample: tessera::data::Sample| {
            samples += 1;
            let position = sample.input.position().unwrap();
            assert_eq!(
                Legal::of(&position.legal_moves(), position.turn()),
                sample.legal
            );
            let Policy::Move(index) = sample.policy else {
                panic!("{name}: a sample without a move");
            };
            assert!(sample.legal.contains(index));
            for value in [sample.q, sample.short_term].into_iter().flatten() {
                assert!((-1.0..=1.0).contains(&value));
            }
            if let (Some(q), Some(result)) = (sample.q, sample.result) {
                agreement += q * result.q();
            }
        };
        let mut check = check;
        for record in &records {
            replay(
                tessera::encode::InputFormat::Classical,
                record,
                &shard.header.rules,
                weights,
                || true,
                &mut check,
            )
            .unwrap();
        }
        let promised: u64 = shard.blocks().iter().map(|block| block.samples).sum();
        assert_eq!(samples, promised, "{name}");
        // The side that the engines prefer wins more often.
        assert_eq!(
            agreement > 10.0,
            name.starts_with("tcec"),
            "{name}: {agreement}"
        );
        // Packed games should take at most a fifth of their size in PGN.
        let size = std::fs::metadata(&shard.path).unwrap().len();
        assert!(
            size < 4 * promised,
            "{name}: {size} bytes for {promised} samples"
        );
    }
}

#[test]
fn games_that_contain_test_positions_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let input = games("master-games.pgn");
    let all = parsed(&input);
    // A puzzle with the twentieth position of one game, and a suite entry with that of another.
    let fen = |record: &Record| {
        let game = tessera::data::replay::main_line(record).unwrap();
        let position = game.plies()[20].position.clone();
        let (mv, reply) = (game.plies()[21].played, game.plies()[22].played);
        let uci = |mv: Option<shakmaty::Move>| {
            mv.unwrap()
                .to_uci(shakmaty::CastlingMode::Standard)
                .to_string()
        };
        let fen = shakmaty::fen::Fen::from_position(&position, shakmaty::EnPassantMode::Legal);
        (fen.to_string(), uci(mv), uci(reply))
    };
    let (first, mv, reply) = fen(&all[0]);
    let puzzles = folder.path().join("puzzles.csv");
    let text = format!("PuzzleId,FEN,Moves,Rating\na,{first},{mv} {reply},1500\n");
    std::fs::write(&puzzles, text).unwrap();
    let suite = folder.path().join("suite.epd");
    let (second, mv, _) = fen(&all[1]);
    let board: Vec<&str> = second.split(' ').take(4).collect();
    std::fs::write(&suite, format!("{} am {mv};\n", board.join(" "))).unwrap();

    let output = folder.path().join("out.shard");
    let without = |file: &PathBuf| vec!["--without".to_owned(), file.display().to_string()];
    let mut options = vec!["--played".to_owned()];
    options.extend(without(&puzzles));
    options.extend(without(&suite));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (shard, _) = pack(&input, &output, &options);
    assert_eq!(records(&shard), all[2..]);

    let missing = folder.path().join("nothing.csv");
    let mut command = train();
    command.arg("pack").arg(&input).args(["--played", "-o"]);
    command.arg(&output).arg("--without").arg(&missing);
    let said = command.assert().failure();
    let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert!(said.contains("nothing.csv"), "{said}");
}

#[test]
fn compressed_games_are_the_same_games() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read(games("master-games.pgn")).unwrap();
    let gzip = folder.path().join("games.pgn.gz");
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&text).unwrap();
    std::fs::write(&gzip, packer.finish().unwrap()).unwrap();
    let zstd = folder.path().join("games.pgn.zst");
    std::fs::write(&zstd, zstd::bulk::compress(&text, 3).unwrap()).unwrap();
    for input in [gzip, zstd] {
        let (shard, _) = pack(&input, &folder.path().join("out.shard"), &["--played"]);
        assert_eq!(records(&shard), parsed(&games("master-games.pgn")));
    }
    let limited = ["--played", "--limit", "3"];
    let (shard, _) = pack(
        &games("master-games.pgn"),
        &folder.path().join("few.shard"),
        &limited,
    );
    assert_eq!(records(&shard).len(), 3);
}

#[test]
fn bad_games_are_skipped_by_name_or_stop_a_strict_run() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("games.pgn");
    let game = |moves| format!("[Event \"?\"]\n[Result \"1-0\"]\n\n{moves} 1-0\n\n");
    let text = [game("1. e4 e5"), game("1. e4 Ke5"), game("1. d4")].concat();
    std::fs::write(&input, text).unwrap();
    let output = folder.path().join("out.shard");
    let (shard, said) = pack(&input, &output, &["--played"]);
    assert_eq!(records(&shard).len(), 2);
    assert!(
        said.contains("game 2, line 6: `Ke5` at ply 2 is not a legal move"),
        "{said}"
    );

    let before = std::fs::read(&output).unwrap();
    let mut strict = train();
    strict
        .arg("pack")
        .arg(&input)
        .arg("-o")
        .arg(&output)
        .args(["--played", "--strict"]);
    let strict = strict.assert().failure();
    let said = String::from_utf8_lossy(&strict.get_output().stderr).into_owned();
    assert!(said.contains("game 2"), "{said}");
    assert_eq!(std::fs::read(&output).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn user_errors_get_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.shard");
    let says = |arguments: &[&str], expected: &str| {
        let assert = train().args(arguments).assert().failure();
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(said.contains(expected), "{said}");
    };
    let (input, output) = (
        games("master-games.pgn"),
        output.to_str().unwrap().to_owned(),
    );
    let input = input.to_str().unwrap();
    says(&["pack", input, "-o", &output], "--evals");
    says(
        &["pack", input, "-o", &output, "--evals", "chooser"],
        "without any training target",
    );
    says(
        &["pack", "nowhere.pgn", "-o", &output, "--played"],
        "nowhere.pgn",
    );
    says(
        &[
            "pack",
            input,
            "-o",
            &output,
            "--played",
            "--unscored-random",
        ],
        "cannot be used with",
    );
    says(&["stats", "Cargo.toml"], "these files contain no samples");
    assert!(!Path::new(&output).exists());
}

#[test]
fn damage_anywhere_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("games.shard");
    let (shard, _) = pack(&games("tcec-standard.pgn"), &path, GAMES[0].1);
    let blocks = shard.blocks().len();
    let sound = std::fs::read(&path).unwrap();
    let read = |bytes: &[u8]| -> Result<(), ShardError> {
        std::fs::write(&path, bytes).unwrap();
        let shard = Shard::open(&path)?;
        (0..blocks).try_for_each(|block| shard.read(block).map(drop))
    };
    read(&sound).unwrap();
    for at in (0..sound.len())
        .step_by(97)
        .chain(sound.len() - 30..sound.len())
    {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x41;
        assert!(read(&damaged).is_err(), "byte {at}");
        assert!(read(&sound[..at]).is_err(), "cut at {at}");
    }
    let mut newer = sound.clone();
    newer[8] = 9;
    assert!(matches!(
        read(&newer),
        Err(ShardError::Version { found: 9, .. })
    ));
    assert!(matches!(
        read(b"1. e4 e5 *"),
        Err(ShardError::Foreign { .. })
    ));
}

#[test]
fn statistics_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("games.shard");
    let (shard, _) = pack(&games("stockfish-noise.pgn"), &output, GAMES[2].1);
    let stats = |files: &[&Path]| -> Value {
        let assert = train()
            .arg("stats")
            .args(files)
            .arg("--json")
            .assert()
            .success();
        serde_json::from_slice(&assert.get_output().stdout).unwrap()
    };
    let once = stats(&[&output]);
    let samples: u64 = shard.blocks().iter().map(|block| block.samples).sum();
    assert_eq!(once["samples"], samples);
    assert_eq!(once["games"], 6);
    assert_eq!(once["duplicate_games"], 0);
    assert_eq!(once["targets"]["policy_move"], samples);
    // Five of the six games contain random moves, so their results are not targets.
    assert_eq!(once["targets"]["result"], 117);
    let bars = once["q_histogram"].as_array().unwrap();
    let sum: u64 = bars.iter().map(|bar| bar.as_u64().unwrap()).sum();
    assert_eq!(sum, once["targets"]["q"].as_u64().unwrap());
    let twice = stats(&[&output, &output]);
    assert_eq!(twice["duplicate_games"], 6);
    let repeated = once["duplicate_positions"].as_u64().unwrap();
    assert_eq!(twice["duplicate_positions"], samples + repeated);
    train().arg("stats").arg(&output).assert().success();
}

#[test]
fn teachers_label_every_position_that_is_not_held_out() {
    let folder = tempfile::tempdir().unwrap();
    let input = games("master-games.pgn");
    let net = Path::new(env!("CARGO_MANIFEST_DIR")).join("nets/tessera-xs.pt");
    let output = folder.path().join("taught.shard");
    let teacher = format!("{},elo=2200", net.display());
    let (shard, _) = pack(
        &input,
        &output,
        &[
            "--played",
            "--teacher",
            &teacher,
            "--hold-out",
            "0.5",
            "--limit",
            "6",
        ],
    );
    let whole = parsed(&input);
    let trained: Vec<u64> = whole[..6]
        .iter()
        .map(Record::hash)
        .filter(|&hash| !is_held_out(hash, 0.5))
        .collect();
    assert!((1..6).contains(&trained.len()), "{trained:?}");
    let taught = records(&shard);
    let found: Vec<u64> = taught.iter().map(Record::hash).collect();
    assert_eq!(found, trained);
    for record in &taught {
        assert_eq!(record.searches.len(), record.main_line().count());
        assert!(
            record
                .searches
                .iter()
                .all(|search| !search.policy.is_empty())
        );
    }

    // Two teachers without ratings are ambiguous.
    let net = net.to_str().unwrap();
    let refused = train()
        .args(["pack", "--played", "--teacher", net, "--teacher", net, "-o"])
        .arg(folder.path().join("no.shard"))
        .arg(&input)
        .assert()
        .failure();
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(
        said.contains("several teachers need a rating each"),
        "{said}"
    );
}
