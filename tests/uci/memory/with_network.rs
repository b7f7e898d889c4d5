//! `Hash` limits the memory of the tree and the evaluation cache together. A network also needs
//! memory for its weights and for the largest batch, which does not grow with `Hash`.

use super::{BRIEFLY, SLACK, THREADS, WORK, number};
use crate::uci::{Engine, endurance, resident, worked};
use std::path::Path;
use std::time::Instant;
use tch::{Device, Tensor};
use tessera::network::chessformer::ModelConfig;
use tessera::network::{About, Architecture, Chessformer, Network};
use tessera::torch::ExportPrecision;

/// Writes a network that is fast but meaningless.
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
    let about = About {
        correction: None,
        name: "small".to_owned(),
        search_value: "q".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    };
    let weights = &initial + Tensor::randn_like(&initial) * 0.02;
    let network = Network::new(Box::new(model), &weights, about);
    network.write(ExportPrecision::F32, path).unwrap();
}

/// `Hash` in MiB with a network: three quarters are for the tree, including an eighth of that for
/// its table, and one quarter is for cached evaluations.
const SHARED_HASH: usize = 64;
const TREE: usize = SHARED_HASH * 3 / 4;
const TABLE: usize = TREE / 8;
const CACHE: usize = SHARED_HASH / 4;
/// Number of evaluations that fill this cache, each at least 150 bytes in size.
const ENOUGH: u64 = ((CACHE << 20) / 150) as u64;

#[test]
#[ignore = "long: runs in tools/test --all"]
fn endures_a_search_with_a_network_within_the_hash() {
    let duration = endurance(BRIEFLY);
    let folder = tempfile::tempdir().unwrap();
    let net = folder.path().join("small.pt");
    write_small_network(&net);
    let mut engine = Engine::start();
    engine.say(&format!("setoption name Net value {}", net.display()));
    engine.say(&format!("setoption name Threads value {THREADS}"));
    engine.say("setoption name Device value cpu");
    engine.say("setoption name Hash value 1");
    // A tree this small is evicted repeatedly while its batches become as large as those of the
    // measured search.
    engine.say(&format!("go nodes {ENOUGH}"));
    engine.best_move();
    let before = resident(&engine);
    engine.say(&format!("setoption name Hash value {SHARED_HASH}"));
    let began = Instant::now();
    engine.say("go infinite");
    let (mut nodes, mut fullness, mut largest) = (0, 0, before);
    while began.elapsed() < duration || nodes < ENOUGH {
        let work = worked(&engine, began);
        assert!(
            work < THREADS * duration + WORK,
            "{nodes} nodes in {work:?}"
        );
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
