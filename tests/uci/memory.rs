//! `Hash` is a bound, however long a search goes on.

use crate::{Engine, PATIENCE, endurance, resident};
use std::path::Path;
use std::time::{Duration, Instant};
use tch::{Device, Tensor};
use tessera::chess::Game;
use tessera::model::{Chessformer, Export, ModelConfig, export};
use tessera::nn::torch::ExportPrecision;

/// How long it takes where nobody asked for more.
const BRIEFLY: Duration = Duration::from_secs(4);
/// MiB of `Hash`.
const HASH: usize = 16;
/// MiB that the engine may take beyond it: stacks of threads, batches, and what
/// an eviction writes down, a bit a node and the nodes still to be looked at.
const SLACK: usize = 16;
/// Bytes that no node of a tree, with all it owns, does without.
const NODE_BYTES: u64 = 40;
/// Fillings of the memory that the shortest run sees.
const FILLINGS: u64 = 4;
/// How long searches go on before they are stopped: evictions fall on any
/// moment of them.
const SEARCHES: [Duration; 4] = [
    Duration::from_millis(1300),
    Duration::from_millis(2700),
    Duration::from_millis(700),
    Duration::from_millis(13_900),
];
/// Most that a `stop` may take here, where tests share their machine.
const PROMPT: Duration = Duration::from_secs(5);

/// The number after a word of an info line.
fn number(line: &str, word: &str) -> Option<u64> {
    let mut words = line.split(' ');
    words.find(|&other| other == word)?;
    words.next()?.parse().ok()
}

#[test]
fn endures_a_search_without_end_within_the_hash() {
    let duration = endurance(BRIEFLY);
    let mut engine = Engine::random();
    for option in ["Backend value uniform", "Threads value 2", "Hash value 1"] {
        engine.say(&format!("setoption name {option}"));
    }
    engine.say("go nodes 100");
    engine.best_move();
    let before = resident(&engine);
    let mut largest = before;
    engine.say(&format!("setoption name Hash value {HASH}"));
    let began = Instant::now();
    let (mut visits, mut fullest, mut stops) = (0, 0, 0);
    let mut slowest = Duration::ZERO;
    while began.elapsed() < duration || visits * NODE_BYTES < FILLINGS * (HASH << 20) as u64 {
        assert!(began.elapsed() < duration + PATIENCE, "{visits} visits");
        let searched = Instant::now();
        let mut nodes = visits;
        engine.say("go infinite");
        while searched.elapsed() < SEARCHES[stops % SEARCHES.len()].min(duration) {
            // News come once a second at least.
            let line = engine.wait_for("info depth ").pop().unwrap();
            let now = number(&line, "nodes").unwrap();
            assert!(now >= nodes, "{nodes} nodes, then `{line}`");
            nodes = now;
            largest = largest.max(resident(&engine));
            fullest = fullest.max(number(&line, "hashfull").unwrap());
        }
        let asked = Instant::now();
        engine.say("stop");
        let lines = engine.wait_for("bestmove ");
        slowest = slowest.max(asked.elapsed());
        stops += 1;
        let last = lines.iter().rev().find_map(|line| number(line, "nodes"));
        assert!(
            last.is_some_and(|last| last > visits),
            "{visits} visits, then {lines:?}"
        );
        visits = last.unwrap();
        let best = lines.last().unwrap().split(' ').nth(1).unwrap();
        assert!(Game::default().parse_move(best).is_ok(), "{best}");
    }
    println!(
        "{visits} visits; {stops} stops, each answered within {slowest:?}; \
         {before:?} MiB before and {largest:?} at most"
    );
    assert!(slowest < PROMPT, "{slowest:?}");
    assert!(fullest > 700, "never fuller than {fullest} thousandths");
    if let (Some(before), Some(largest)) = (before, largest) {
        assert!(
            largest <= before + HASH + SLACK,
            "{before} MiB have become {largest}"
        );
    }
}

/// Writes a network that takes little time, with weights of no use.
fn write_small_network(path: &Path) {
    let config = ModelConfig {
        layers: 1,
        width: 32,
        heads: 2,
        feed_forward: 32,
        soft_policy: false,
        ..ModelConfig::preset("cf-1m-gab").unwrap()
    };
    let model = Chessformer::new(&config, Device::Cpu).unwrap();
    tch::manual_seed(5);
    let initial = model.initial_weights();
    let how = Export {
        name: "small".to_owned(),
        precision: ExportPrecision::F32,
        search_value: "q".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    };
    let weights = &initial + Tensor::randn_like(&initial) * 0.02;
    export(&model, &weights, &how, path).unwrap();
}

/// MiB of `Hash` with a network: three quarters are the tree's, of which an eighth
/// is its table, and one quarter is for remembered evaluations.
const SHARED_HASH: usize = 32;
const TREE: usize = SHARED_HASH * 3 / 4;
const TABLE: usize = TREE / 8;
const CACHE: usize = SHARED_HASH / 4;
/// Evaluations that fill a cache of that size, each of at least 150 bytes.
const ENOUGH: u64 = ((CACHE << 20) / 150) as u64;

#[test]
fn endures_a_search_with_a_network_within_the_hash() {
    let duration = endurance(BRIEFLY);
    let folder = tempfile::tempdir().unwrap();
    let net = folder.path().join("small.pt");
    write_small_network(&net);
    let mut engine = Engine::start();
    engine.say(&format!("setoption name Net value {}", net.display()));
    for option in ["Threads value 2", "Device value cpu", "Hash value 1"] {
        engine.say(&format!("setoption name {option}"));
    }
    engine.say("go nodes 500");
    engine.best_move();
    let before = resident(&engine);
    engine.say(&format!("setoption name Hash value {SHARED_HASH}"));
    let began = Instant::now();
    engine.say("go infinite");
    let (mut nodes, mut fullness, mut largest) = (0, 0, before);
    while began.elapsed() < duration || nodes < ENOUGH {
        assert!(began.elapsed() < duration + 2 * PATIENCE, "{nodes} nodes");
        let line = engine.wait_for("info depth ").pop().unwrap();
        largest = largest.max(resident(&engine));
        nodes = number(&line, "nodes").unwrap();
        fullness = fullness.max(number(&line, "hashfull").unwrap() as usize);
    }
    engine.say("stop");
    engine.best_move();
    println!("{nodes} nodes; {before:?} MiB before and {largest:?} at most");
    if let (Some(before), Some(largest)) = (before, largest) {
        let stated = TABLE + (TREE - TABLE) * fullness / 1000 + CACHE;
        assert!(
            largest <= before + stated + SLACK,
            "{before} MiB have become {largest}, and {stated} were stated"
        );
        assert!(largest > before + CACHE / 2, "{before} and {largest}");
    }
}
