//! Tests that a network exported to ONNX gives the same outputs in onnxruntime as in the engine.

use crate::interop_lc0::{generate, protobuf};
use generate::{BODY, Body, Shape, TOWER, generate};
use protobuf::Message;
use shakmaty::{CastlingMode, Position};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use tch::{Device, Kind, Tensor};
use tessera::backend::{CodePolicy, DeviceChoice, Precision, Way};
use tessera::chess::Game;
use tessera::encode::{BOARDS, Input};
use tessera::inference::open_by;
use tessera::interop::onnx::{self, OnnxError};
use tessera::interop::{ExchangeError, lc0, to_onnx, to_onnx_in_lc0};
use tessera::network::chessformer::{EmbeddingConfig, ModelConfig, NormKind, PositionConfig};
use tessera::network::lc0::HeadChoice;
use tessera::network::maia3::Maia3Config;
use tessera::network::{About, Architecture, Chessformer, Lc0, Maia3, Network, Positions, Weights};
use tessera::torch::ExportPrecision;

/// Starting positions of games that exercise every input of a network.
const STARTS: [&str; 4] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b KQkq - 11 1",
    "1rk3r1/p3pp1p/8/3pP3/8/2N5/P4PPP/1RK3R1 w GBgb d6 0 12",
    "8/P6k/8/8/3R4/8/p6K/8 b - - 79 120",
];

/// Returns a hundred positions from games.
fn inputs() -> Vec<Input> {
    let mut inputs = Vec::new();
    for start in STARTS {
        let mut game = Game::from_fen(start, CastlingMode::Standard).unwrap();
        for ply in 0..25 {
            inputs.push(Input::encode(&game));
            let moves = game.position().legal_moves();
            // Some moves are taken back, so that positions repeat.
            match moves.get((ply * 7 + ply % 3) % moves.len().max(1)) {
                Some(&mv) => game.play(mv),
                None => break,
            }
        }
    }
    inputs
}

/// Returns Lc0's planes of format 1, [position, 112, 64], flattened.
fn planes(inputs: &[Input]) -> Vec<f32> {
    let mut planes = Vec::new();
    for input in inputs {
        let (boards, scalars) = input.words().split_at(BOARDS);
        for board in boards {
            planes.extend((0..64).map(|square| (board >> square & 1) as f32));
        }
        let rights = scalars[..4]
            .iter()
            .map(|&right| u8::from(right != 0).into());
        let rest = [scalars[4] as f32, scalars[5] as f32, 0.0, 1.0];
        for value in rights.chain(rest) {
            planes.extend([value; 64]);
        }
    }
    planes
}

/// Runs a script from tests/python; returns its standard output.
fn run(python: &Path, script: &str, folder: &Path, names: &[String]) -> String {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let output = Command::new(python)
        .arg(scripts.join(script))
        .arg(folder)
        .args(names)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text.into_owned()
}

/// Evaluates the named models in the folder with onnxruntime.
fn run_in_onnxruntime(python: &Path, folder: &Path, names: &[String]) {
    let planes = planes(&inputs());
    fs::write(folder.join("planes"), bytemuck::cast_slice(&planes)).unwrap();
    run(python, "run_onnx.py", folder, names);
}

/// Returns the ONNX model inside an Lc0 weights file.
fn unwrapped(file: &[u8]) -> Vec<u8> {
    let mut net = Vec::new();
    flate2::read::GzDecoder::new(file)
        .read_to_end(&mut net)
        .unwrap();
    Message::parse(&net).at(11).at(1).bytes()
}

/// Returns the outputs that Lc0 should get from the engine's network: the policy, the plies left,
/// and the probabilities of win, draw and loss, whose difference (win minus loss) is the value that
/// ranks moves.
fn for_lc0(file: &[u8]) -> Vec<f32> {
    let backend = open_by(
        Way::File,
        file,
        CodePolicy::Checked,
        DeviceChoice::Cpu,
        Precision::F32,
        1,
    )
    .unwrap();
    let metadata = &backend.metadata;
    let outputs = backend.forward(&inputs()).unwrap();
    let output = |name: &str| {
        let place = metadata.output(name)?;
        Some(Vec::<f32>::try_from(outputs[place].view([-1])).unwrap())
    };
    let mut all = output("policy").unwrap();
    let ranking = Some(metadata.search_value()).filter(|name| *name != "wdl");
    let ranking = ranking.map(|name| output(name).unwrap());
    for (position, logits) in output("wdl").unwrap().chunks(3).enumerate() {
        let total: f32 = logits.iter().map(|logit| logit.exp()).sum();
        let [win, draw, loss] = [0, 1, 2].map(|part| logits[part].exp() / total);
        let q = ranking.as_ref().map_or(win - loss, |q| q[position]);
        let draw = draw.min(1.0 - q.abs());
        all.extend([(1.0 - draw + q) / 2.0, draw, (1.0 - draw - q) / 2.0]);
    }
    all.extend(output("moves_left").unwrap_or_default());
    all
}

fn floats(path: &Path) -> Vec<f32> {
    bytemuck::pod_collect_to_vec(&fs::read(path).unwrap())
}

/// Returns the largest difference. Differences are relative for values beyond ±1.
fn difference(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let pairs = found.iter().zip(expected);
    let off = |(found, expected): (&f32, &f32)| (found - expected).abs() / expected.abs().max(1.0);
    pairs.map(off).fold(0.0, f32::max)
}

/// Returns the engine's outputs, concatenated.
fn evaluate(file: &[u8]) -> Vec<f32> {
    let (policy, device) = (CodePolicy::Checked, DeviceChoice::Cpu);
    let backend = open_by(Way::File, file, policy, device, Precision::F32, 1).unwrap();
    let outputs = backend.forward(&inputs()).unwrap();
    let floats = |output: &Tensor| Vec::<f32>::try_from(output.flatten(0, -1)).unwrap();
    outputs.iter().flat_map(floats).collect()
}

/// Returns small networks of every kind, with their names.
fn networks() -> Vec<(String, ModelConfig)> {
    let gab = PositionConfig::Gab {
        compress: 4,
        hidden: 10,
        generator: 7,
    };
    let global = EmbeddingConfig::Global {
        board: 11,
        feed_forward: 20,
    };
    let (token, rms, layer) = (EmbeddingConfig::Token, NormKind::Rms, NormKind::Layer);
    [
        ("absolute", PositionConfig::Absolute, rms, token.clone()),
        ("relative", PositionConfig::Relative, layer, global.clone()),
        ("shaw", PositionConfig::Shaw, rms, global),
        ("gab", gab, layer, token),
    ]
    .into_iter()
    .map(|(name, position, norm, embedding)| {
        let config = ModelConfig {
            layers: 2,
            width: 18,
            heads: 3,
            feed_forward: 24,
            norm,
            attacks: position != PositionConfig::Relative,
            attack_bias: position != PositionConfig::Shaw,
            elo: position != PositionConfig::Relative,
            position,
            embedding,
            value_features: 5,
            value_hidden: 14,
            buckets: 9,
            soft_policy: true,
            optimistic_policy: (),
        };
        (name.to_owned(), config)
    })
    .collect()
}

/// Writes a network with random parameters throughout, including biases and norms, whose initial
/// zeros and ones would hide an omission.
fn random(name: &str, config: &ModelConfig, folder: &Path) -> Vec<u8> {
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
    let path = folder.join("network.pt");
    let network = Network::new(Box::new(model), &(initial + noise.sign() * 0.05), about);
    network.write(ExportPrecision::F32, &path).unwrap();
    fs::read(path).unwrap()
}

/// Returns Lc0 networks of every kind, with their names.
fn networks_of_lc0() -> [(&'static str, Shape); 4] {
    let body = BODY.body.unwrap();
    let map = Body {
        dense: None,
        ..body
    };
    let map = Shape {
        format: [6, 3, 2, 1, 1],
        body_format: [7, 8, 1],
        body: Some(map),
        many_heads: false,
        ..BODY
    };
    let classical = Shape {
        format: [3, 1, 1, 1, 0],
        tower: Some((1, 8, None)),
        policy_channels: 6,
        ..TOWER
    };
    [
        ("tower", TOWER),
        ("classical", classical),
        ("map", map),
        ("dense", BODY),
    ]
}

/// Writes an Lc0 network with random weights.
fn of_lc0(shape: &Shape, folder: &Path) -> Vec<u8> {
    let path = folder.join("lc0.pt");
    let network = lc0::read(&generate(shape, 1), HeadChoice::default()).unwrap();
    network.write(ExportPrecision::F32, &path).unwrap();
    fs::read(&path).unwrap()
}

/// Returns the network files by name, including the network that ships with the engine.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let networks = networks().into_iter();
    let mut files: Vec<(String, Vec<u8>)> = networks
        .map(|(name, config)| {
            let file = random(&name, &config, folder);
            (name, file)
        })
        .collect();
    for (name, shape) in networks_of_lc0() {
        files.push((name.to_owned(), of_lc0(&shape, folder)));
    }
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("nets/tessera-xs.pt");
    files.push(("shipped".to_owned(), fs::read(shipped).unwrap()));
    files
}

#[test]
#[ignore = "needs onnxruntime: runs in tools/test --all"]
fn onnxruntime_and_the_engine_agree() {
    let Some(python) = crate::python::with_or_skip("onnx, onnxruntime") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (mut names, mut checked, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for (name, file) in files(folder.path()) {
        for (precision, tolerance) in [
            (ExportPrecision::F32, 1e-4),
            (ExportPrecision::Fp16, 0.05),
            (ExportPrecision::Bf16, 0.0),
        ] {
            let name = format!("{name}-{precision:?}");
            let model = to_onnx(&file, CodePolicy::Checked, precision).unwrap();
            fs::write(folder.path().join(format!("{name}.onnx")), &model).unwrap();
            // In bfloat16, onnxruntime only checks the model, because its CPU kernels do not
            // support that type.
            if precision == ExportPrecision::Bf16 {
                checked.push(name);
                continue;
            }
            names.push(name);
            expected.push((evaluate(&file), tolerance));
        }
    }
    run_in_onnxruntime(&python, folder.path(), &[&names[..], &checked].concat());
    for (name, (expected, tolerance)) in names.iter().zip(&expected) {
        let found = floats(&folder.path().join(format!("{name}.found")));
        let off = difference(&found, expected);
        println!("{name}: off by {off:.1e}");
        assert!(off <= *tolerance, "{name} is off by {off}");
    }
}

#[test]
fn exported_onnx_is_not_imported() {
    let folder = tempfile::tempdir().unwrap();
    let file = of_lc0(&TOWER, folder.path());
    let (policy, precision) = (CodePolicy::Checked, ExportPrecision::F32);
    for written in [
        to_onnx(&file, policy, precision),
        to_onnx_in_lc0(&file, policy, precision),
    ] {
        let error = onnx::read(&written.unwrap()).unwrap_err();
        assert!(matches!(error, OnnxError::Own), "{error}");
    }
}

#[test]
#[ignore = "needs onnxruntime: runs in tools/test --all"]
fn lc0_gets_the_engines_outputs() {
    let Some(python) = crate::python::with_or_skip("onnx, onnxruntime") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    let mut expected = Vec::new();
    for (name, file) in files(folder.path()) {
        let wrapped = to_onnx_in_lc0(&file, CodePolicy::Checked, ExportPrecision::F32).unwrap();
        let model = folder.path().join(format!("{name}.onnx"));
        fs::write(model, unwrapped(&wrapped)).unwrap();
        names.push(name);
        expected.push(for_lc0(&file));
    }
    run_in_onnxruntime(&python, folder.path(), &names);
    for (name, expected) in names.iter().zip(&expected) {
        let off = difference(
            &floats(&folder.path().join(format!("{name}.found"))),
            expected,
        );
        assert!(off < 1e-4, "{name} is off by {off}");
    }
}

#[test]
#[ignore = "needs onnxruntime: runs in tools/test --all"]
fn networks_from_lc0s_converter_are_read() {
    let Some(python) = crate::python::with_or_skip("onnx, onnxruntime") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let names = run(&python, "lc0_style_onnx.py", folder.path(), &[]);
    let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
    let (names, others): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| name.starts_with("lc0"));
    assert!(names.len() > 7 && others.len() > 4);
    run_in_onnxruntime(&python, folder.path(), &[&names[..], &others].concat());
    let read = |name: &String| {
        let file = fs::read(folder.path().join(format!("{name}.onnx"))).unwrap();
        onnx::read(&file)
    };
    for name in &others {
        let error = read(name).unwrap_err();
        assert!(matches!(error, OnnxError::NotLc0s(_)), "{name}: {error}");
        println!("{name}: {error}");
    }
    for name in &names {
        let network = read(name).unwrap();
        assert!(network.downcast::<Lc0>().is_some(), "{name}");
        let path = folder.path().join("imported.pt");
        network.write(ExportPrecision::F32, &path).unwrap();
        let (policy, device) = (CodePolicy::Checked, DeviceChoice::Cpu);
        let file = fs::read(&path).unwrap();
        let backend = open_by(Way::File, &file, policy, device, Precision::F32, 1).unwrap();
        let outputs = backend.forward(&inputs()).unwrap();
        let mut found = Vec::<f32>::try_from(outputs[0].view([-1])).unwrap();
        let wdl = outputs[1].softmax(-1, None::<Kind>);
        found.extend(match name.starts_with("lc0_tower") {
            // The value is win minus loss.
            true => Vec::<f32>::try_from(wdl.select(1, 0) - wdl.select(1, 2)).unwrap(),
            false => Vec::<f32>::try_from(wdl.view([-1])).unwrap(),
        });
        if let Some(place) = backend.metadata.output("moves_left") {
            found.extend(Vec::<f32>::try_from(&outputs[place]).unwrap());
        }
        let expected = floats(&folder.path().join(format!("{name}.found")));
        let tolerance = if name.ends_with("half") { 0.05 } else { 1e-4 };
        let off = difference(&found, &expected);
        println!("{name}: off by {off:.1e}");
        assert!(off < tolerance, "{name} is off by {off}");
    }
}

#[test]
#[ignore = "needs onnxruntime: runs in tools/test --all"]
fn maia_3_keeps_its_ratings() {
    let Some(python) = crate::python::with_or_skip("onnx, onnxruntime") else {
        return;
    };
    let mut config = Maia3Config::preset("maia3-5m").unwrap();
    (config.layers, config.width, config.heads) = (2, 32, 2);
    tch::manual_seed(9);
    let maia3 = Maia3::new(&config, Device::Cpu).unwrap();
    let tensors = maia3.parameters().iter().map(|parameter| {
        Tensor::randn(parameter.shape.as_slice(), (Kind::Float, Device::Cpu)) * 0.2
    });
    let network: Network = Network {
        weights: Weights::new(tensors.collect()),
        architecture: Box::new(maia3),
        about: About {
            correction: None,
            name: "maia".to_owned(),
            search_value: "wdl".to_owned(),
            training: serde_json::Value::Null,
            licence: "unknown".to_owned(),
        },
    };
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let (mut planes, mut rows) = (Vec::new(), Vec::new());
    let ratings = |player: usize| (0..100).map(move |index| 1000 + 7 * index + 300 * player as i64);
    for (index, input) in inputs().iter().enumerate() {
        let boards = &input.words()[..BOARDS];
        for board in boards {
            planes.extend((0..64).map(|square| (board >> square & 1) as f32));
        }
        rows.extend(boards.iter().map(|&board| board as i64));
        rows.extend([0, 1].map(|player| ratings(player).nth(index).unwrap()));
    }
    let rows = Tensor::from_slice(&rows).view([-1, BOARDS as i64 + 2]);
    let _guard = tch::no_grad_guard();
    let outputs = network.forward(Positions::Rows(&rows));
    let floats = |output: &Tensor| Vec::<f32>::try_from(output.flatten(0, -1)).unwrap();
    let expected: Vec<f32> = outputs.iter().flat_map(floats).collect();

    let path = place("network.pt");
    network.write(ExportPrecision::F32, &path).unwrap();
    let file = fs::read(&path).unwrap();
    fs::write(
        place("maia.onnx"),
        to_onnx(&file, CodePolicy::Checked, ExportPrecision::F32).unwrap(),
    )
    .unwrap();
    fs::write(place("maia.-input-planes"), bytemuck::cast_slice(&planes)).unwrap();
    for (player, name) in ["self_elo", "opponent_elo"].into_iter().enumerate() {
        let ratings: Vec<f32> = ratings(player).map(|rating| rating as f32).collect();
        let ratings = bytemuck::cast_slice(&ratings[..expected.len() / 1861]);
        fs::write(place(&format!("maia.{name}")), ratings).unwrap();
    }
    run_in_onnxruntime(&python, folder.path(), &["maia".to_owned()]);
    let found = self::floats(&place("maia.found"));
    let off = difference(&found, &expected);
    assert!(off < 1e-4, "off by {off}");
    // Lc0 does not use ratings.
    let error = to_onnx_in_lc0(&file, CodePolicy::Checked, ExportPrecision::F32).unwrap_err();
    assert!(matches!(error, ExchangeError::Onnx(OnnxError::InputFormat)));
}
