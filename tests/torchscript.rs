//! An exported network gives the same results in the engine, in PyTorch, and according to its
//! formulas.

use crate::golden::Golden;
use shakmaty::CastlingMode;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use tch::{Device, Kind, Tensor};
use tessera::backend::{CodePolicy, DeviceChoice, Precision, Way};
use tessera::chess::{Game, Ratings};
use tessera::encode::{Input, SCALARS};
use tessera::inference::open_by;
use tessera::network::chessformer::{EmbeddingConfig, ModelConfig, NormKind, PositionConfig};
use tessera::network::{About, Architecture, Chessformer, Network};
use tessera::torch::ExportPrecision;
use zip::ZipArchive;

/// Tolerance for values computed in f32, to allow for differences between machines.
const TOLERANCE: f64 = 1e-5;

/// Games, given as a FEN and subsequent moves. Their last positions set every plane that a network
/// can read.
const GAMES: [(&str, &str); 7] = [
    (START, ""),
    (START, "e2e4 e7e5 g1f3 b8c6 f1b5 g8f6 e1g1"),
    // Each of the last eight positions repeats an earlier one.
    (
        START,
        "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1",
    ),
    // Chess960: rooks on b1 and g1.
    ("1rk3r1/p3pp1p/8/3pP3/8/2N5/P4PPP/1RK3R1 w GBgb d6 0 12", ""),
    (
        "1rk3r1/p3pp1p/8/3pP3/8/2N5/P4PPP/1RK3R1 w GBgb d6 0 12",
        "c1g1 c8b8",
    ),
    ("r3k3/8/8/8/8/8/8/4K2R b Kq - 37 60", ""),
    ("8/P6k/8/8/8/8/p6K/8 b - - 99 120", ""),
];
const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

fn inputs() -> Vec<Input> {
    // Each player's rating is unknown in one row.
    let mut ratings = [
        [0, 2800],
        [1200, 1200],
        [600, 1900],
        [2700, 5600],
        [1000, 0],
        [3000, 400],
        [1500, 1600],
    ]
    .into_iter();
    let input = |(fen, moves): (&str, &str)| {
        let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        let [white, black] = ratings.next().unwrap().map(Some);
        let known = |rating: Option<u16>| rating.filter(|&rating| rating > 0);
        game.set_ratings(Ratings {
            white: known(white),
            black: known(black),
        });
        for mv in moves.split_whitespace() {
            game.play(game.parse_move(mv).unwrap());
        }
        Input::encode(&game)
    };
    GAMES.map(input).to_vec()
}

/// Returns small networks of every kind, with their names. No two of their sizes are equal.
pub fn networks() -> Vec<(String, ModelConfig)> {
    let gab = PositionConfig::Gab {
        compress: 4,
        hidden: 10,
        generator: 7,
    };
    let positions = [
        ("absolute", PositionConfig::Absolute),
        ("relative", PositionConfig::Relative),
        ("shaw", PositionConfig::Shaw),
        ("gab", gab),
    ];
    let norms = [("rms", NormKind::Rms), ("layer", NormKind::Layer)];
    let global = EmbeddingConfig::Global {
        board: 11,
        feed_forward: 20,
    };
    let embeddings = [("token", EmbeddingConfig::Token), ("global", global)];
    let mut networks = Vec::new();
    for (position_name, position) in &positions {
        for (norm_name, norm) in norms {
            for (embedding_name, embedding) in &embeddings {
                let config = ModelConfig {
                    attacks: true,
                    attack_bias: true,
                    elo: norm == NormKind::Layer,
                    layers: 2,
                    width: 18,
                    heads: 3,
                    feed_forward: 24,
                    norm,
                    position: position.clone(),
                    embedding: embedding.clone(),
                    value_features: 5,
                    value_hidden: 14,
                    buckets: 9,
                    soft_policy: true,
                    optimistic_policy: (),
                };
                let name = format!("{position_name}-{norm_name}-{embedding_name}");
                networks.push((name, config));
            }
        }
    }
    networks
}

/// Exports a network with random parameters throughout, including biases and norms, whose initial
/// zeros and ones would hide an omission.
fn export_random(name: &str, config: &ModelConfig, path: &Path) {
    let model = Chessformer::new(config, Device::Cpu).unwrap();
    tch::manual_seed(5);
    let initial = model.initial_weights();
    let noise = Tensor::randn(initial.size(), (Kind::Float, Device::Cpu));
    let about = About {
        correction: None,
        name: name.to_owned(),
        search_value: "q".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    };
    let network = Network::new(Box::new(model), &(initial + noise.sign() * 0.05), about);
    network.write(ExportPrecision::F32, path).unwrap();
}

/// Returns the names and values of the engine's outputs.
fn evaluate(network: &Path, inputs: &[Input]) -> Vec<(String, Vec<f32>)> {
    let file = fs::read(network).unwrap();
    let backend = open_by(
        Way::File,
        &file,
        CodePolicy::Checked,
        DeviceChoice::Cpu,
        Precision::F32,
        1,
    )
    .unwrap();
    let outputs = backend.forward(inputs).unwrap();
    let floats = |output: &Tensor| Vec::<f32>::try_from(output.flatten(0, -1)).unwrap();
    let names = backend.metadata.outputs().map(str::to_owned);
    names.zip(outputs.iter().map(floats)).collect()
}

/// Returns the code in a TorchScript file, which PyTorch must be able to compile.
pub fn code(network: &Path) -> Vec<u8> {
    let mut archive = ZipArchive::new(fs::File::open(network).unwrap()).unwrap();
    let names = archive.file_names().map(str::to_owned);
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".py")).collect();
    names.sort();
    let mut code = Vec::new();
    for name in names {
        // The first folder is named after the file.
        code.extend(name.split_once('/').unwrap().1.bytes());
        archive
            .by_name(&name)
            .unwrap()
            .read_to_end(&mut code)
            .unwrap();
    }
    code
}

#[test]
fn engine_pytorch_and_formulas_agree() {
    let _guard = tch::no_grad_guard();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);

    let inputs = inputs();
    fs::write(place("rows"), bytemuck::cast_slice::<Input, u8>(&inputs)).unwrap();
    fs::write(place("scalars"), SCALARS.join("\n")).unwrap();
    let mut names = Vec::new();
    for (name, config) in networks() {
        export_random(&name, &config, &place(&format!("{name}.pt")));
        names.push(name);
    }
    if let Ok(shipped) = fs::read_to_string(root.join("nets/default")) {
        fs::copy(root.join("nets").join(shipped.trim()), place("shipped.pt")).unwrap();
        names.push("shipped".to_owned());
    }
    let python = crate::python::with("torch");
    let mut golden = Golden::open("torchscript", python.is_some());
    for name in &names {
        let network = place(&format!("{name}.pt"));
        golden.bytes(&format!("{name} code"), &code(&network));
        let mut outputs = Vec::new();
        for (output, numbers) in evaluate(&network, &inputs) {
            let numbers: Vec<f64> = numbers.iter().map(|&number| number.into()).collect();
            golden.numbers(&format!("{name} {output}"), &numbers, TOLERANCE);
            outputs.extend(numbers.iter().map(|&number| number as f32));
        }
        fs::write(
            place(&format!("{name}.outputs")),
            bytemuck::cast_slice::<f32, u8>(&outputs),
        )
        .unwrap();
    }

    let Some(python) = python else {
        return golden.finish();
    };
    let output = Command::new(python)
        .arg(root.join("tests/python/same_outputs.py"))
        .arg(folder.path())
        .args(&names)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert_eq!(text.lines().count(), names.len(), "{text}");
    print!("{text}");
    golden.finish();
}
