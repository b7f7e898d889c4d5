//! An exported network means the same to PyTorch as to us.

use shakmaty::Position;
use std::path::{Path, PathBuf};
use std::process::Command;
use tch::{Device, Tensor};
use tessera::chess::Game;
use tessera::encode::{Input, WIDTH};
use tessera::model::{Chessformer, Export, ExportPrecision, ModelConfig, Weights, export};

/// A Python that has PyTorch: the one `tools/test` prepares, or the user's own.
fn python() -> Option<PathBuf> {
    let prepared = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    [prepared, PathBuf::from("python3")]
        .into_iter()
        .find(|python| {
            let probe = Command::new(python).args(["-c", "import torch"]).output();
            probe.is_ok_and(|probe| probe.status.success())
        })
}

/// Rows i64 [count, 111] along one game.
fn rows(count: usize) -> Vec<i64> {
    let mut game = Game::default();
    let mut words = Vec::new();
    for _ in 0..count {
        words.extend_from_slice(bytemuck::cast_slice::<u64, i64>(
            Input::encode(&game).words(),
        ));
        let moves = game.position().legal_moves();
        game.play(moves[game.plies().len() * 7 % moves.len()]);
    }
    words
}

fn bytes(tensor: &Tensor) -> Vec<u8> {
    let values = Vec::<f32>::try_from(tensor.flatten(0, -1)).unwrap();
    bytemuck::cast_slice(&values).to_vec()
}

#[test]
fn pytorch_computes_the_same() {
    let Some(python) = python() else {
        eprintln!("skipped: no Python with PyTorch (tools/test prepares one)");
        return;
    };
    let _guard = tch::no_grad_guard();
    let model = Chessformer::new(&ModelConfig::preset("cf-1m-gab").unwrap(), Device::Cpu).unwrap();
    tch::manual_seed(5);
    let flat = model.initial_weights();
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let how = Export {
        name: "same".to_owned(),
        precision: ExportPrecision::F32,
        search_value: "q".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    };
    export(&model, &flat, &how, &place("net.pt")).unwrap();

    let words = rows(5);
    std::fs::write(place("rows"), bytemuck::cast_slice::<i64, u8>(&words)).unwrap();
    let weights = Weights::from_flat(&flat, model.parameters());
    let rows = Tensor::from_slice(&words).view([-1, WIDTH as i64]);
    let outputs = model.forward(&weights, &rows, false);
    let expected: Vec<u8> = [
        &outputs.policy,
        &outputs.wdl,
        &outputs.moves_left,
        &outputs.q.scalar,
        &outputs.q.error,
        &outputs.short_term.scalar,
        &outputs.short_term.error,
    ]
    .into_iter()
    .flat_map(bytes)
    .collect();
    std::fs::write(place("expected"), expected).unwrap();

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/same_outputs.py");
    let output = Command::new(python)
        .arg(script)
        .args([place("net.pt"), place("rows"), place("expected")])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (name, difference) = text.trim().split_once(' ').unwrap();
    assert_eq!(name, "same");
    assert!(
        difference.parse::<f64>().unwrap() < 1e-4,
        "off by {difference}"
    );
}
