//! Measures how fast training data is decoded: `cargo bench --bench decode`.
//!
//! The first two rates are in samples per second of CPU time on one thread. They measure decoding
//! of shards with the games in tests/games, and of the chunks in the shared data, to samples with
//! packed bitboards. The loader is then measured on both kinds of data, on all threads, in batches
//! of 1024. To run a single measurement, add its name: shards, chunks or loader.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use tessera::data::Curve;
use tessera::data::examples::PositionExamples;
use tessera::data::label::{EvalRefersTo, TargetRules};
use tessera::data::loader::{Cursor, Loader, RankShard, Sampling, SourceConfig, Split};
use tessera::data::pgn::{open, parse_game};
use tessera::data::record::Record;
use tessera::data::replay::{VariationWeight, replay};
use tessera::data::shard::{Block, Header, Shard, ShardWriter};
use tessera::data::v6::{Chunks, V6Error};
use tessera::encode::InputFormat;

/// Duration of each measurement.
const TIME: Duration = Duration::from_secs(4);
/// Samples per batch.
const BATCH: usize = 1024;
/// Samples shuffled together.
const GROUP: u64 = 100_000;
/// Copies of the games in the shard that the loader reads.
const COPIES: usize = 200;
const RULES: TargetRules = TargetRules {
    evals: Some(EvalRefersTo::MovePlayed),
    played: true,
    noise: false,
    curve: Curve::Lichess,
    alternatives: None,
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names = ["shards", "chunks", "loader"];
    let named = |name: &str| arguments.iter().any(|argument| argument == name);
    let is_wanted = |name: &str| named(name) || !names.into_iter().any(named);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shard = write_shard(folder.path());
    let chunks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/lc0-v6");
    if is_wanted("shards") {
        shards(&shard);
    }
    if is_wanted("chunks") {
        decode_chunks(&chunks);
    }
    if is_wanted("loader") {
        loader("shards", &shard, true);
        if chunks.exists() {
            loader("chunks", &chunks, false);
        }
    }
}

/// Repeats `work`, which returns the amount done, until `clock` has advanced by [`TIME`]; returns
/// the rate.
fn rate(name: &str, unit: &str, clock: impl Fn() -> Duration, mut work: impl FnMut() -> usize) {
    work();
    let start = clock();
    let mut done = 0;
    while clock() - start < TIME {
        done += work();
    }
    let rate = done as f64 / (clock() - start).as_secs_f64();
    println!("{name:<44}{rate:>12.0} {unit}/s");
}

/// Returns this thread's CPU time, which other programs do not affect.
fn own() -> Duration {
    ThreadTime::now().as_duration()
}

/// Packs the games of the tests into one shard.
fn write_shard(folder: &Path) -> PathBuf {
    let games = ["tcec-standard", "stockfish-noise", "master-games"];
    let records: Vec<Record> = games
        .iter()
        .flat_map(|games| {
            let path = format!("{}/tests/games/{games}.pgn", env!("CARGO_MANIFEST_DIR"));
            let games = open(Path::new(&path), |file| file).expect("the games of the tests");
            games.map(|text| parse_game(&text.expect("text")).expect("a game"))
        })
        .collect();
    let samples = records.iter().map(|record| RULES.samples(record)).sum();
    let header = Header {
        sources: games.map(str::to_owned).into(),
        rules: RULES,
    };
    let path = folder.join("games.shard");
    let mut writer = ShardWriter::create(&path, &header).expect("a shard");
    let block = Block::new(&records, samples).expect("a block");
    for _ in 0..COPIES {
        writer.append(&block).expect("space for a shard");
    }
    writer.finish().expect("space for a shard");
    path
}

fn shards(path: &Path) {
    let shard = Shard::open(path).expect("the shard just written");
    let records = shard.read(0).expect("a sound block");
    let moves: usize = records.iter().map(|record| record.nodes.len()).sum();
    rate("shards: moves unpacked, 1 thread", "moves", own, || {
        shard.read(0).expect("a sound block");
        moves
    });
    let weights = VariationWeight {
        first: 0.5,
        decay: 0.95,
    };
    let mut samples = Vec::new();
    rate(
        "shards: positions decoded, 1 thread",
        "positions",
        own,
        || {
            samples.clear();
            for record in shard.read(0).expect("a sound block") {
                let keep = |sample| samples.push(sample);
                let format = InputFormat::Classical;
                replay(format, &record, &RULES, weights, || true, keep).expect("a game");
            }
            samples.len()
        },
    );
}

fn decode_chunks(folder: &Path) {
    let chunks = match Chunks::open(folder) {
        Ok(chunks) if !chunks.is_empty() => chunks,
        _ => return println!("skipped: no chunks in {}", folder.display()),
    };
    let read = |chunk| chunks.read(chunk).expect("a sound chunk");
    rate("chunks: records unpacked, 1 thread", "records", own, || {
        let records = |chunk| read(chunk).records().count();
        (0..chunks.len()).map(records).sum()
    });
    let mut samples = Vec::new();
    rate(
        "chunks: positions decoded, 1 thread",
        "positions",
        own,
        || {
            samples.clear();
            for chunk in 0..chunks.len() {
                let keep = |sample| samples.push(sample);
                let sound: Result<(), V6Error> = read(chunk).samples(|| true, keep, Err);
                sound.expect("sound records");
            }
            samples.len()
        },
    );
}

fn loader(name: &str, path: &Path, is_shard: bool) {
    let source = SourceConfig {
        path: path.to_owned(),
        rate: 1.0,
    };
    let sources = |wanted: bool| wanted.then(|| source.clone()).into_iter().collect();
    let sampling = Sampling {
        shards: sources(is_shard),
        chunks: sources(!is_shard),
        group: GROUP,
        ..Sampling::default()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let start = Cursor::default();
    let positions = PositionExamples {
        format: InputFormat::Classical,
        variations: sampling.variations(),
    };
    let (split, shard) = (Split::Train, RankShard::WHOLE);
    let loader = Loader::for_rank(positions, &sampling, split, BATCH, start, shard, threads);
    let mut loader = loader.expect("readable data");
    let mut positions = 0;
    let name = format!("{name}: the loader, {threads} threads");
    let start = Instant::now();
    rate(
        &name,
        "batches",
        || start.elapsed(),
        || {
            let batch = loader.next().expect("a batch").expect("sound data");
            positions += batch.len();
            1
        },
    );
    println!("{:<44}{positions:>12} positions", "");
}
