//! Trains the toy family, which shows what a new family needs: `network/toy.rs`, its sizes in
//! `network/config/toy.rs`, lines in `network/config.rs` and `network/family.rs`, and a line in
//! `config/task.rs`. Everything else works without changes.

use super::{Checkpoint, RunOptions, TrainConfig, Trainer};
use crate::backend::{CodePolicy, DeviceChoice, Precision};
use crate::chess::Game;
use crate::data::Curve;
use crate::data::label::TargetRules;
use crate::data::pgn::parse_game;
use crate::data::shard::{Block, Header, ShardWriter};
use crate::encode::Input;
use crate::inference;
use crate::network::toy::Toy;
use crate::network::{About, Network, Positions, open};
use crate::play::{Control, Limits};
use crate::search::{Parameters, Search};
use crate::torch::ExportPrecision;
use std::path::Path;
use std::sync::Arc;
use tch::{Device, Tensor};

/// Packs four short games, each repeated many times.
fn pack(shard: &Path) {
    let games = ["e4 e5 Qh5 Nc6 Bc4 Nf6 Qxf7#", "f3 e5 g4 Qh4#"];
    let results = ["1-0", "0-1"];
    let records: Vec<_> = (0..40)
        .map(|number| {
            let (moves, result) = (games[number % 2], results[number % 2]);
            let text = format!("[Result \"{result}\"]\n\n{moves} {result}\n");
            parse_game(text.as_bytes()).unwrap()
        })
        .collect();
    let rules = TargetRules {
        evals: None,
        played: true,
        noise: false,
        curve: Curve::Lichess,
        alternatives: None,
    };
    let header = Header {
        sources: Vec::new(),
        rules,
    };
    let samples = records.iter().map(|record| rules.samples(record)).sum();
    let mut writer = ShardWriter::create(shard, &header).unwrap();
    writer
        .append(&Block::new(&records, samples).unwrap())
        .unwrap();
    writer.finish().unwrap();
}

/// Trains from a configuration file. Returns the first and last policy losses, and the newest
/// checkpoint.
fn train(folder: &Path) -> (f64, f64, Checkpoint) {
    let shard = folder.join("games.shard");
    pack(&shard);
    let config = format!(
        r#"
name = "toy"
steps = 30
batch = 32
log_every = 1
[network]
family = "toy"
[network.model]
width = 4
[data]
shards = [{{ path = {shard:?} }}]
[schedule]
peak = 0.01
warmup = 0
"#
    );
    let path = folder.join("toy.toml");
    std::fs::write(&path, config).unwrap();
    let config = TrainConfig::read_with(&path, &[]).unwrap();
    let options = RunOptions {
        folder: folder.join("run"),
        threads: 1,
        time: None,
        trace: None,
        stop: Default::default(),
    };
    let mut losses = Vec::new();
    let summary = Trainer::open(&config, &options, Device::Cpu)
        .unwrap()
        .run(&options, &mut |progress| {
            losses.extend(progress.trained[0].1);
        })
        .unwrap();
    assert!(summary.finished);
    let checkpoint = Checkpoint::read(&options.folder).unwrap();
    (losses[0], losses[losses.len() - 1], checkpoint)
}

#[test]
fn a_new_family_is_trained_exported_opened_and_played() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after, checkpoint) = train(folder.path());
    assert!(after < 0.8 * before, "{before} to {after}");

    let architecture = checkpoint.state.config.architecture().unwrap();
    let evaluator = architecture.build(Device::Cpu).unwrap().into_evaluator();
    let about = About {
        correction: None,
        name: "toy".to_owned(),
        search_value: "wdl".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    };
    let path = folder.path().join("toy.pt");
    Network::new(evaluator.unwrap(), &checkpoint.parameters, about)
        .write(ExportPrecision::F32, &path)
        .unwrap();

    let file = std::fs::read(&path).unwrap();
    let network = open(&file, CodePolicy::Checked).unwrap();
    assert!(network.downcast::<Toy>().is_some());
    let backend = inference::open(
        &file,
        CodePolicy::Checked,
        DeviceChoice::Cpu,
        Precision::F32,
        1,
    )
    .unwrap();
    let game = Game::default();
    let input = Input::encode(&game);
    let words = input.words().map(|word| word as i64);
    let row = Tensor::from_slice(&words).unsqueeze(0);
    let expected = network.forward(Positions::Rows(&row));
    let found = backend.forward(&[input]).unwrap();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        let off = (found - expected).abs().max().double_value(&[]);
        assert!(off < 1e-5, "off by {off}");
    }

    // The network has learned the opening of these games.
    let limits = Limits {
        nodes: Some(50),
        ..Limits::default()
    };
    let mut search = Search::new(Arc::new(backend), &Parameters::default());
    let choice = search.run(&game, &limits, &Control::default(), &mut |_| {});
    let best = game.format_move(choice.unwrap().best.unwrap());
    assert!(["e2e4", "f2f3"].contains(&best.as_str()), "{best}");
}
