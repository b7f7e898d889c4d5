//! Chunks as a source of training samples: in files, tars and folders, valid and damaged. The test
//! generates the chunks from real games, so it is never skipped.

use std::io::Write;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use proptest::prelude::*;
use serde_json::Value;
use shakmaty::Position as _;
use tessera::chess::Game;
use tessera::data::label::{EvalRefersTo, TargetRules};
use tessera::data::loader::{Batch, Cursor, Loader, LoaderError, Sampling, SourceConfig, Split};
use tessera::data::pgn::{open, parse_game};
use tessera::data::replay::{VariationWeight, replay};
use tessera::data::shard::Shard;
use tessera::data::v6::{
    Chunk, Chunks, Ending, Expectation, RECORD_SIZE, Searched, V6Error, V6Fault, V6Record,
    V7_RECORD_SIZE, game_records, write_chunk,
};
use tessera::data::{Curve, Legal, Policy, Sample, Wdl};
use tessera::encode::{Input, InputFormat, policy_index, policy_move};

/// Returns the games in a test file with plausible search values.
fn games(name: &str) -> Vec<Vec<V6Record>> {
    let path = crate::support::games(name);
    let games = open(&path, |file| file).unwrap();
    games
        .map(|text| {
            let record = parse_game(&text.unwrap()).unwrap();
            let mut game = Game::default();
            let mut searched = Vec::new();
            for (ply, node) in record.main_line().enumerate() {
                let turn = game.position().turn();
                let legal = Legal::of(&game.position().legal_moves(), turn);
                let played = legal.nth(node.ordinal.into()).unwrap();
                let value = Expectation {
                    q: (ply as f32).sin(),
                    draw: 0.1,
                    moves_left: 7.5,
                };
                let even = 0.5 / legal.count() as f32;
                let share = |index| if index == played { 0.5 + even } else { even };
                searched.push(Searched {
                    input: Input::encode(&game),
                    policy: legal.iter().map(|index| (index, share(index))).collect(),
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
                let mv = policy_move(game.position(), played).unwrap();
                assert_eq!(policy_index(mv, turn), played);
                game.play(mv);
            }
            let ending = Ending {
                result: record.result,
                ..Ending::default()
            };
            game_records(&searched, &ending)
        })
        .collect()
}

/// Creates a folder of chunks in two subfolders, with names as Lc0 gives them.
fn folder_of_chunks(root: &Path) -> PathBuf {
    let folder = root.join("chunks");
    for (number, game) in games("master-games.pgn").iter().enumerate() {
        let below = folder.join(["even", "odd"][number % 2]);
        std::fs::create_dir_all(&below).unwrap();
        write_chunk(&below.join(format!("training.{number}.gz")), game).unwrap();
    }
    std::fs::write(folder.join("LICENSE"), "not a chunk").unwrap();
    folder
}

/// Packs the same chunks as members of a single tar.
fn tar_of(folder: &Path) -> PathBuf {
    let path = folder.with_extension("tar");
    let mut archive = tar::Builder::new(std::fs::File::create(&path).unwrap());
    archive.append_dir_all("games", folder).unwrap();
    archive.into_inner().unwrap().flush().unwrap();
    path
}

fn sampling(path: &Path) -> Sampling {
    Sampling {
        chunks: vec![SourceConfig {
            path: path.to_owned(),
            rate: 1.0,
        }],
        validation: 0.2,
        group: 300,
        seed: 3,
        ..Sampling::default()
    }
}

fn load(sampling: &Sampling, split: Split, batch: usize, position: Cursor) -> Loader {
    crate::support::loader(sampling, split, batch, position, 2).unwrap()
}

/// Returns everything that distinguishes the samples of an epoch, in order.
fn epoch(sampling: &Sampling, split: Split, epoch: u64) -> Vec<(Input, u32)> {
    let start = Cursor {
        epoch,
        ..Cursor::default()
    };
    let mut samples = Vec::new();
    for batch in load(sampling, split, 1, start) {
        let batch = batch.unwrap();
        samples.push((
            batch.columns.inputs[0],
            batch.columns.moves_left[0].to_bits(),
        ));
        if batch.next.epoch > epoch && split == Split::Train {
            break;
        }
    }
    samples
}

fn sorted(mut samples: Vec<(Input, u32)>) -> Vec<(Input, u32)> {
    samples.sort_by_key(|(input, plies)| (*input.words(), *plies));
    samples
}

#[test]
fn tars_and_folders_of_the_same_chunks_give_the_same_samples() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder_of_chunks(root.path());
    let tar = tar_of(&folder);
    let total: usize = games("master-games.pgn").iter().map(Vec::len).sum();
    let mut of_folder = 0;
    for split in [Split::Train, Split::Validation] {
        let expected = sorted(epoch(&sampling(&folder), split, 0));
        assert!(!expected.is_empty());
        assert!(expected == sorted(epoch(&sampling(&tar), split, 0)));
        of_folder += expected.len();
    }
    assert_eq!(of_folder, total);
    assert!(Chunks::open(&root.path().join("nowhere")).is_err());
}

#[cfg(unix)]
#[test]
fn links_to_folders_are_followed_but_not_in_cycles() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder_of_chunks(root.path());
    let linked = root.path().join("linked");
    std::fs::create_dir(&linked).unwrap();
    std::os::unix::fs::symlink(&folder, linked.join("elsewhere")).unwrap();
    let of = |path: &Path| Chunks::open(path).map(|chunks| chunks.len());
    assert_eq!(of(&linked).unwrap(), of(&folder).unwrap());
    std::os::unix::fs::symlink(&linked, linked.join("round")).unwrap();
    let error = of(&linked).unwrap_err().to_string();
    assert!(error.contains("round"), "{error}");
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn every_position_resumes() {
    let root = tempfile::tempdir().unwrap();
    let sampling = sampling(&folder_of_chunks(root.path()));
    let words = |batch: &Batch| batch.columns.input_words().to_vec();
    let batches: Vec<Batch> = load(&sampling, Split::Train, 32, Cursor::default())
        .map(Result::unwrap)
        .take_while(|batch| batch.next.epoch < 2)
        .collect();
    assert!(batches.len() > 10);
    for (place, batch) in batches.iter().enumerate() {
        let resumed = load(&sampling, Split::Train, 32, batch.next);
        for (expected, found) in batches[place + 1..].iter().zip(resumed).take(2) {
            let found = found.unwrap();
            assert_eq!(found.next, expected.next);
            assert_eq!(words(&found), words(expected));
        }
    }
}

#[test]
fn a_rate_above_one_repeats_samples() {
    let root = tempfile::tempdir().unwrap();
    let mut sampling = sampling(&folder_of_chunks(root.path()));
    let once = epoch(&sampling, Split::Train, 0).len();
    let validation = epoch(&sampling, Split::Validation, 0);
    sampling.chunks[0].rate = 2.5;
    let more = sorted(epoch(&sampling, Split::Train, 0));
    let share = more.len() as f64 / once as f64;
    assert!((share - 2.5).abs() < 0.1, "{share}");
    let mut counts = std::collections::HashMap::new();
    for (input, plies) in more {
        *counts.entry((*input.words(), plies)).or_insert(0) += 1;
    }
    assert!(counts.values().all(|&count| count >= 2));
    assert!(validation == epoch(&sampling, Split::Validation, 0));
}

/// Returns the samples in a chunk, and the errors that reading it gives.
fn read(path: PathBuf, packed: &[u8]) -> (Vec<Sample>, Vec<V6Error>) {
    let (mut samples, mut faults) = (Vec::new(), Vec::new());
    let chunk = Chunk::new(path, packed);
    let bad = |fault| {
        faults.push(fault);
        Ok::<(), V6Error>(())
    };
    chunk
        .samples(|| true, |sample| samples.push(sample), bad)
        .unwrap();
    (samples, faults)
}

#[test]
fn short_term_values_follow_the_game_and_end_in_its_result() {
    let game = games("master-games.pgn").remove(0);
    let bytes: &[u8] = bytemuck::cast_slice(&game);
    let (samples, faults) = read("game".into(), bytes);
    assert!(faults.is_empty());
    assert_eq!(samples.len(), game.len());
    let mut following = -samples[game.len() - 1].result.map_or(0.0, Wdl::q);
    for (record, sample) in game.iter().zip(&samples).rev() {
        following = record.root_q / 6.0 - 5.0 / 6.0 * following;
        assert!((sample.short_term.unwrap() - following).abs() < 1e-6);
    }
    // Two games in the same chunk remain separate.
    let (twice, _) = read("games".into(), &[bytes, bytes].concat());
    for (sample, again) in samples.iter().chain(&samples).zip(&twice) {
        assert_eq!(sample.short_term, again.short_term);
    }
    // Values filled in by a rescorer are kept.
    let mut rescored = game.clone();
    rescored[3].q_st = 0.25;
    let (samples, _) = read("game".into(), bytemuck::cast_slice(&rescored));
    assert_eq!(samples[3].short_term, Some(0.25));
    assert_eq!(samples[4].short_term, None);
    // Blended results and damaged values are rejected.
    let mut odd = game.clone();
    odd[2].result_q = 0.04;
    odd[2].result_d = 0.45;
    odd[5].root_q = 1e6;
    let (samples, faults) = read("game".into(), bytemuck::cast_slice(&odd));
    assert_eq!((samples[2].result, faults.len()), (None, 1));
    assert_eq!(samples[4].short_term, Some(odd[4].root_q));
}

#[test]
fn version_seven_is_version_six_with_a_tail() {
    let game = games("master-games.pgn").remove(0);
    let mut bytes = Vec::new();
    for record in &game {
        let record = V6Record {
            version: 7,
            ..*record
        };
        bytes.extend_from_slice(bytemuck::bytes_of(&record));
        bytes.resize(bytes.len() + V7_RECORD_SIZE - RECORD_SIZE, 0xcc);
    }
    let (samples, faults) = read("seven".into(), &bytes);
    assert!(faults.is_empty());
    assert_eq!(samples, read("six".into(), bytemuck::cast_slice(&game)).0);
}

/// A function that corrupts a record, with the expected error message.
type Spoiler = (fn(&mut V6Record), &'static str);

const SPOILERS: [Spoiler; 10] = [
    (|record| record.input_format = 3, "input format 3"),
    (
        |record| record.planes[0] |= record.planes[1],
        "two pieces on",
    ),
    (
        |record| record.planes[5] = 0,
        "no rook for a castling right",
    ),
    (
        |record| {
            record.planes[11] = 0;
            record.castling_them_queenside = 0;
            record.castling_them_kingside = 0;
        },
        "not a legal position",
    ),
    (
        |record| {
            let probabilities = record.probabilities;
            let illegal = probabilities.iter().position(|p| *p < 0.0).unwrap();
            record.probabilities[illegal] = 0.0;
        },
        "of the policy is legal",
    ),
    (
        |record| record.played_idx = u16::MAX,
        "move 65535 of the policy was played",
    ),
    (
        |record| record.probabilities.iter_mut().for_each(|p| *p *= 1.5),
        "adds up to 1",
    ),
    (|record| record.best_q = f32::NAN, "best_q is NaN"),
    (|record| record.plies_left = -2.0, "plies_left is -2"),
    (
        |record| {
            let index = usize::from(record.best_idx);
            record.probabilities[index] = f32::NAN;
        },
        "of the policy is legal",
    ),
];

#[test]
fn bad_records_are_counted_named_and_skipped() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("chunks");
    std::fs::create_dir(&folder).unwrap();
    let sound = games("master-games.pgn").remove(0);
    for (number, (spoil, message)) in SPOILERS.into_iter().enumerate() {
        let mut game = sound.clone();
        spoil(&mut game[5]);
        let path = folder.join(format!("game_{number}.gz"));
        write_chunk(&path, &game).unwrap();
        let (samples, faults) = read(path.clone(), &std::fs::read(&path).unwrap());
        assert_eq!(samples.len(), game.len() - 1, "{message}");
        assert_eq!(faults.len(), 1, "{message}");
        let said = faults[0].to_string();
        let offset = format!(
            "game_{number}.gz, byte {} after decompression",
            5 * RECORD_SIZE
        );
        assert!(said.contains(&offset) && said.contains(message), "{said}");
    }
    // A truncated gzip file, and a file named like a gzip file that contains other data.
    let cut = folder.join("game_cut.gz");
    let whole = std::fs::read(folder.join("game_0.gz")).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    std::fs::write(folder.join("game_other.gz"), "something else").unwrap();
    let (samples, faults) = read(cut, &whole[..whole.len() / 2]);
    assert!(samples.len() > 5);
    assert!(matches!(faults.last().unwrap().fault, V6Fault::Unpack(_)));

    let mut sampling = Sampling {
        validation: 0.0,
        ..sampling(&folder)
    };
    let mut loader = load(&sampling, Split::Train, 1, Cursor::default());
    let end = loader.find(|batch| batch.as_ref().unwrap().next.epoch > 0);
    assert!(end.is_some());
    assert!(loader.skipped() >= SPOILERS.len() as u64 + 3);
    sampling.strict = true;
    let mut loader = load(&sampling, Split::Train, 1, Cursor::default());
    let error = loader.find_map(Result::err).unwrap();
    assert!(matches!(error, LoaderError::Chunk(_)));
    assert!(error.to_string().contains("game_"));

    let stats = |options: &[&str]| {
        let mut train = Command::new(crate::support::TRAIN);
        train.arg("stats").arg(&folder).arg("--json").args(options);
        train.assert()
    };
    let counted = stats(&[]).success();
    let found: Value = serde_json::from_slice(&counted.get_output().stdout).unwrap();
    assert_eq!(found["bad_records"], SPOILERS.len() as u64 + 3);
    assert_eq!(found["games"], SPOILERS.len() as u64 + 1);
    let said = String::from_utf8_lossy(&counted.get_output().stderr).into_owned();
    assert!(
        said.contains("game_other.gz, byte 0 after decompression"),
        "{said}"
    );
    stats(&["--strict"]).failure();
}

#[test]
fn statistics_count_chunks_and_games_alike() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder_of_chunks(root.path());
    let tar = tar_of(&folder);
    let pgn = crate::support::games("master-games.pgn");
    let stats = |path: &Path| -> Value {
        let mut train = Command::new(crate::support::TRAIN);
        let assert = train.arg("stats").arg(path).arg("--json").assert();
        serde_json::from_slice(&assert.success().get_output().stdout).unwrap()
    };
    let [folder, tar, pgn] = [&folder, &tar, &pgn].map(|path| stats(path));
    for key in [
        "games",
        "samples",
        "results",
        "duplicate_games",
        "duplicate_positions",
    ] {
        assert_eq!(folder[key], tar[key], "{key}");
        assert_eq!(folder[key], pgn[key], "{key}");
    }
    let rated: u64 = pgn["rating_histogram"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(rated, 2 * pgn["games"].as_u64().unwrap());
    assert_eq!(folder["targets"]["policy_distribution"], folder["samples"]);
}

#[test]
fn packed_chunks_give_the_same_samples() {
    let root = tempfile::tempdir().unwrap();
    let folder = folder_of_chunks(root.path());
    let output = root.path().join("chunks.shard");
    let mut train = Command::new(crate::support::TRAIN);
    train.arg("pack").arg(&folder).arg("-o").arg(&output);
    train.assert().success();
    let shard = Shard::open(&output).unwrap();
    let weights = VariationWeight {
        first: 1.0,
        decay: 1.0,
    };
    let mut packed = Vec::new();
    for block in 0..shard.blocks().len() {
        for record in shard.read(block).unwrap() {
            let rules = &shard.header.rules;
            let keep = |sample| packed.push(sample);
            replay(
                InputFormat::Classical,
                &record,
                rules,
                weights,
                || true,
                keep,
            )
            .unwrap();
        }
    }
    let chunks = Chunks::open(&folder).unwrap();
    let mut expected = Vec::new();
    for chunk in 0..chunks.len() {
        let path = chunks.path(chunk);
        expected.extend(read(path.clone(), &std::fs::read(&path).unwrap()).0);
    }
    assert_eq!(packed.len(), expected.len());
    for (packed, expected) in packed.iter().zip(&expected) {
        assert_eq!(packed.input, expected.input);
        assert_eq!(
            (packed.legal, packed.result),
            (expected.legal, expected.result)
        );
        let (Policy::Distribution(ours), Policy::Distribution(theirs)) =
            (&packed.policy, &expected.policy)
        else {
            panic!("a policy is not a distribution");
        };
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert_eq!(ours.0, theirs.0);
            assert!((ours.1 - theirs.1).abs() < 5e-4);
        }
        assert!((packed.q.unwrap() - expected.q.unwrap()).abs() < 1e-4);
        assert!((packed.short_term.unwrap() - expected.short_term.unwrap()).abs() < 1e-3);
        assert!((packed.moves_left.unwrap() - expected.moves_left.unwrap()).abs() <= 0.5);
    }
    let size = std::fs::metadata(&output).unwrap().len();
    assert!(size < 60 * packed.len() as u64, "{size} bytes");
}

#[test]
fn ratings_reach_the_samples() {
    let path = crate::support::games("master-games.pgn");
    let text = open(&path, |file| file).unwrap().next().unwrap().unwrap();
    let record = parse_game(&text).unwrap();
    let (white, black) = (record.ratings.white, record.ratings.black);
    assert!(white.is_some() && black.is_some());
    let rules = TargetRules {
        evals: None::<EvalRefersTo>,
        played: true,
        noise: false,
        curve: Curve::Lichess,
        alternatives: None,
    };
    let weights = VariationWeight {
        first: 1.0,
        decay: 1.0,
    };
    let check = |sample: Sample| {
        assert!(matches!(sample.policy, Policy::Move(_)));
        let expected = sample.input.turn().fold_wb([white, black], [black, white]);
        assert_eq!(sample.input.ratings(), expected);
    };
    replay(
        InputFormat::Classical,
        &record,
        &rules,
        weights,
        || true,
        check,
    )
    .unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn changed_chunks_are_read_without_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        is_packed: bool,
    ) {
        let game = games("master-games.pgn").remove(0);
        let mut bytes: Vec<u8> = bytemuck::cast_slice(&game[..12]).to_vec();
        if is_packed {
            let mut packer =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(&bytes).unwrap();
            bytes = packer.finish().unwrap();
        }
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let (samples, _) = read("changed".into(), &bytes);
        for sample in samples {
            let position = sample.input.position().unwrap();
            prop_assert_eq!(sample.legal, Legal::of(&position.legal_moves(), position.turn()));
        }
    }
}
