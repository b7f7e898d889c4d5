//! Tests that the files that we write read back as the same networks.

use super::generate::{BODY, Shape, TOWER, generate};
use super::plain;
use super::positions::{positions, rows};
use super::{bodies, compare, model, read};
use std::path::Path;
use tch::{CModule, Device, IValue, Kind, Tensor};
use tessera::backend::Metadata;
use tessera::interop::lc0::{self, Lc0Encoding, Lc0Error, for_lc0};
use tessera::network::chessformer::{ModelConfig, NormKind, PositionConfig};
use tessera::network::lc0::{HeadChoice, Lc0ConfigError, PolicyHead, ValueHead};
use tessera::network::{
    About, Architecture, ArchitectureError, Chessformer, Network, OpenError, Output, Positions,
    WeightsError,
};
use tessera::torch::{ExportPrecision, Module};

/// Returns the largest difference between the tensors of two networks.
fn difference(one: &Network, other: &Network) -> f64 {
    assert_eq!(one.architecture.config(), other.architecture.config());
    let pairs = one.parameters().into_iter().zip(other.parameters());
    pairs
        .map(|((name, one), (other_name, other))| {
            assert_eq!((name, one.size()), (other_name, other.size()));
            (one - other).abs().max().double_value(&[])
        })
        .fold(0.0, f64::max)
}

#[test]
fn writing_and_reading_is_the_identity() {
    let mut shapes = bodies();
    shapes.extend([
        TOWER,
        Shape {
            format: [2, 0, 0, 0, 0],
            policy_channels: 5,
            ..TOWER
        },
        Shape {
            format: [4, 3, 2, 1, 1],
            policy: (16, 12, 2),
            ..TOWER
        },
    ]);
    for (seed, shape) in shapes.iter().enumerate() {
        let network = read(&generate(shape, seed as u64)).unwrap();
        let exact = lc0::write(&network, Lc0Encoding::Float32).unwrap();
        assert_eq!(difference(&read(&exact).unwrap(), &network), 0.0);
        // Once quantised, a network no longer changes.
        let rough = read(&lc0::write(&network, Lc0Encoding::Linear16).unwrap()).unwrap();
        assert!((1e-9..1e-3).contains(&difference(&rough, &network)));
        let again = read(&lc0::write(&rough, Lc0Encoding::Linear16).unwrap()).unwrap();
        assert!(difference(&again, &rough) < 1e-6);
        compare(&network, &exact, &positions(3, 3));
        let [summary, original] =
            [&exact, &generate(shape, seed as u64)].map(|file| lc0::summary(file).unwrap());
        assert_eq!(summary.licence, original.licence);
        assert_eq!(summary.training["steps"], original.training["steps"]);
        assert_eq!(summary.min_version.as_deref(), Some("0.33.0"));
    }
}

/// Returns a TorchScript file in f32, its metadata, and its tensors.
fn torchscript(path: &Path) -> (Module, Metadata, Vec<(String, Tensor)>) {
    let module = Module::load(&std::fs::read(path).unwrap()).unwrap();
    let meta = CModule::load(path)
        .unwrap()
        .method_is("meta", &[IValue::None; 0]);
    let IValue::String(json) = meta.unwrap() else {
        panic!("the metadata is not text");
    };
    let tensors = module.tensors().unwrap();
    let tensors = tensors
        .into_iter()
        .map(|(name, tensor)| (name, tensor.copy()))
        .collect();
    let module = module.freeze(Device::Cpu, Kind::Float).unwrap();
    (module, serde_json::from_str(&json).unwrap(), tensors)
}

#[test]
fn a_torchscript_file_evaluates_the_same_and_converts_back() {
    let _guard = tch::no_grad_guard();
    tch::set_num_threads(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.pt");
    let choices = [
        HeadChoice::default(),
        HeadChoice {
            policy: PolicyHead::Optimistic,
            value: ValueHead::St,
        },
    ];
    for (shape, choice) in [
        (&TOWER, choices[0]),
        (&BODY, choices[0]),
        (&BODY, choices[1]),
    ] {
        let network = lc0::read(&generate(shape, 5), choice).unwrap();
        let written = network.write(ExportPrecision::F32, &path);
        let (module, metadata, tensors) = torchscript(&path);
        assert_eq!(metadata, written.unwrap());
        for count in [1, 5, 64] {
            let rows = rows(&positions(count, 2));
            let found = module.forward(&rows).unwrap();
            let expected = network.forward(Positions::Rows(&rows));
            assert_eq!(
                (found.len(), metadata.outputs().count()),
                (expected.len(), expected.len())
            );
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.size(), expected.size());
                assert!((found - expected).abs().max().double_value(&[]) < 1e-4);
            }
        }
        let back = Network::from_tensors(&metadata, tensors).unwrap();
        assert_eq!(difference(&back, &network), 0.0);
    }
}

#[test]
fn invalid_descriptions_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.pt");
    let network = read(&generate(&BODY, 5)).unwrap();
    network.write(ExportPrecision::F32, &path).unwrap();
    let (_, metadata, tensors) = torchscript(&path);
    let with = |place: &str, value: serde_json::Value| {
        let mut metadata = metadata.clone();
        *metadata.architecture.pointer_mut(place).unwrap() = value;
        let tensors = tensors
            .iter()
            .map(|(name, tensor)| (name.clone(), tensor.shallow_clone()));
        Network::from_tensors(&metadata, tensors).unwrap_err()
    };
    use OpenError::{Description, Weights};
    let is_unsupported = |error: &OpenError| {
        let OpenError::Architecture(ArchitectureError::Lc0(error)) = error else {
            return false;
        };
        matches!(error, Lc0ConfigError::Unsupported(_))
    };
    let encoder = "/model/attention/encoder";
    let error = with("/family", "onnx".into());
    assert!(matches!(error, Description(_)), "{error}");
    let error = with("/model", "large".into());
    assert!(matches!(error, Description(_)), "{error}");
    let error = with("/model/attention/width", (1u64 << 40).into());
    assert!(matches!(error, Description(_)), "{error}");
    let error = with("/model/attention/width", 33.into());
    assert!(
        matches!(error, Weights(WeightsError::Shape { .. })),
        "{error}"
    );
    let error = with(&format!("{encoder}/layers"), 9999.into());
    assert!(
        matches!(error, Weights(WeightsError::Missing(_))),
        "{error}"
    );
    let error = with(&format!("{encoder}/heads"), 0.into());
    assert!(is_unsupported(&error), "{error}");
    let error = with(
        "/model/attention/embedding",
        serde_json::json!({ "kind": "tower" }),
    );
    assert!(is_unsupported(&error), "{error}");
    let error = with("/model/policy/heads", serde_json::json!({}));
    assert!(is_unsupported(&error), "{error}");
}

#[test]
fn missing_heads_are_named() {
    let network = read(&generate(&TOWER, 1)).unwrap();
    let choice = HeadChoice {
        policy: PolicyHead::Soft,
        ..HeadChoice::default()
    };
    let message = choice.check(model(&network)).unwrap_err().to_string();
    assert!(
        message.contains("soft") && message.contains("vanilla"),
        "{message}"
    );
    let choice = HeadChoice {
        value: ValueHead::Q,
        ..HeadChoice::default()
    };
    let message = choice.check(model(&network)).unwrap_err().to_string();
    assert!(message.contains("winner"), "{message}");
}

/// Evaluates one of our networks in Lc0's format in three ways: with our forward pass, with the
/// reference implementation from the bytes of the file, and with our forward pass after a round
/// trip.
#[test]
fn a_chessformer_becomes_a_file_of_lc0s() {
    let _guard = tch::no_grad_guard();
    tch::set_num_threads(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plain.pt");
    plain::write(&path, ExportPrecision::F32);
    let (module, metadata, tensors) = torchscript(&path);
    let network = Network::from_tensors(&metadata, tensors).unwrap();
    let network = for_lc0(network).unwrap();
    let inputs = positions(120, 8);
    let rows = rows(&inputs);
    let ours = module.forward(&rows).unwrap();
    let our = |output: Output| {
        let found = &ours[metadata.output(output.name()).unwrap()];
        match output {
            Output::Wdl => found.softmax(-1, None::<Kind>),
            _ => found.shallow_clone(),
        }
    };
    for (encoding, tolerance) in [(Lc0Encoding::Float32, 1e-4), (Lc0Encoding::Linear16, 0.02)] {
        let file = lc0::write(&network, encoding).unwrap();
        let back = read(&file).unwrap();
        let names = back.architecture.interface().outputs;
        let found = back.forward(Positions::Rows(&rows));
        assert_eq!(names.len(), ours.len());
        for (&name, found) in names.iter().zip(&found) {
            let found = match name {
                Output::Wdl => found.softmax(-1, None::<Kind>),
                _ => found.shallow_clone(),
            };
            let off = (found - our(name)).abs().max().double_value(&[]);
            // Twenty times the logarithm of the golden ratio; see `from_chessformer`.
            let tolerance = if name == Output::MovesLeft {
                9.63
            } else {
                tolerance
            };
            assert!(off <= tolerance, "{name:?} is off by {off} in {encoding:?}");
        }
        compare(&back, &file, &inputs[..20]);
        assert_eq!(lc0::summary(&file).unwrap().licence, metadata.licence);
    }
}

/// Creates a Chessformer with zero weights, which take no memory.
fn fresh(config: &ModelConfig) -> Network {
    let model = Chessformer::new(config, Device::Cpu).unwrap();
    let about = About {
        correction: None,
        name: "fresh".to_owned(),
        search_value: "q".to_owned(),
        training: serde_json::Value::Null,
        licence: "unknown".to_owned(),
    };
    let size = [model.size().parameters];
    let flat = Tensor::zeros([1], (Kind::Float, Device::Cpu)).expand(size, false);
    Network::new(Box::new(model), &flat, about)
}

#[test]
fn names_features_that_lc0_cannot_express() {
    let config = ModelConfig::preset("cf-1m-gab").unwrap();
    let layer = ModelConfig {
        norm: NormKind::Layer,
        ..config.clone()
    };
    let cases = [
        (config, "norm"),
        (
            ModelConfig {
                position: PositionConfig::Shaw,
                ..layer.clone()
            },
            "shaw",
        ),
        (
            ModelConfig {
                position: PositionConfig::Relative,
                ..layer.clone()
            },
            "relative",
        ),
        (
            ModelConfig {
                value_hidden: 64,
                ..layer.clone()
            },
            "value_hidden",
        ),
        (
            ModelConfig {
                attack_bias: true,
                ..layer.clone()
            },
            "attacks",
        ),
        (
            ModelConfig {
                elo: true,
                ..layer.clone()
            },
            "ratings",
        ),
        (
            ModelConfig {
                norm: NormKind::Layer,
                ..ModelConfig::preset("cf-240m-gab").unwrap()
            },
            "global",
        ),
    ];
    for (config, named) in cases {
        let error = for_lc0(fresh(&config)).unwrap_err();
        assert!(matches!(error, Lc0Error::Inexpressible(_)), "{error}");
        assert!(error.to_string().contains(named), "{error}");
    }
    assert!(for_lc0(fresh(&layer)).is_ok());
}
