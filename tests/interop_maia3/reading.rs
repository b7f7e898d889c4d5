//! Tests which checkpoints are accepted, and the errors for all others.

use super::checkpoint::{Checkpoint, Numbers, archive};
use super::{Parameter, model, random_parameters, small};
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use tessera::interop::maia3;
use tessera::interop::pytorch::is_checkpoint;
use tessera::network::Network;
use tessera::network::maia3::Maia3Config;
use zip::CompressionMethod;

fn parameters() -> Vec<Parameter> {
    random_parameters(&small()[1], 9)
}

fn error(file: &[u8]) -> String {
    let message = maia3::read(file).unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

/// Returns the largest difference between a network's parameters and those written.
fn difference(network: &Network, parameters: &[Parameter]) -> f64 {
    assert_eq!(network.parameters().len(), parameters.len());
    let pairs = network.parameters().into_iter().zip(parameters);
    pairs
        .map(|((found_name, found), (name, shape, values))| {
            assert_eq!((&found_name, &found.size()), (name, shape));
            let found = Vec::<f32>::try_from(found.flatten(0, -1)).unwrap();
            let pairs = found.iter().zip(values);
            pairs
                .map(|(found, value)| f64::from((found - value).abs()))
                .fold(0.0, f64::max)
        })
        .fold(0.0, f64::max)
}

#[test]
fn every_way_to_save_a_network_is_read() {
    let parameters = parameters();
    let plain = Checkpoint::new(&parameters);
    let mut shuffled = parameters.clone();
    shuffled.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(2));
    for (what, checkpoint) in [
        ("plain", plain.clone()),
        (
            "nested",
            Checkpoint {
                is_nested: true,
                ..plain.clone()
            },
        ),
        (
            "wrapped",
            Checkpoint {
                prefix: "module._orig_mod.",
                is_nested: true,
                ..plain.clone()
            },
        ),
        (
            "old",
            Checkpoint {
                is_old: true,
                prefix: "_orig_mod.",
                ..plain.clone()
            },
        ),
        (
            "transposed",
            Checkpoint {
                is_transposed: true,
                ..plain.clone()
            },
        ),
        (
            "joined",
            Checkpoint {
                is_joined: true,
                is_transposed: true,
                ..plain.clone()
            },
        ),
        (
            "parameters",
            Checkpoint {
                has_parameters: true,
                has_copies: false,
                byte_order: None,
                ..plain.clone()
            },
        ),
        (
            "in another order",
            Checkpoint {
                parameters: &shuffled,
                ..plain.clone()
            },
        ),
        (
            "f64",
            Checkpoint {
                numbers: Numbers::Double,
                ..plain.clone()
            },
        ),
    ] {
        let file = checkpoint.bytes();
        assert!(is_checkpoint(&file), "{what}");
        let network = maia3::read(&file).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(model(&network), &small()[1], "{what}");
        assert_eq!(difference(&network, &parameters), 0.0, "{what}");
        let summary = maia3::summary(&file).unwrap();
        assert_eq!(&summary.model, model(&network), "{what}");
        assert!(summary.ignored.is_empty(), "{what}");
        assert_eq!(summary.training.contains_key("epoch"), checkpoint.is_nested);
    }
    for (numbers, tolerance) in [(Numbers::Half, 1e-3), (Numbers::BFloat16, 1e-2)] {
        let file = Checkpoint {
            numbers,
            ..plain.clone()
        }
        .bytes();
        let off = difference(&maia3::read(&file).unwrap(), &parameters);
        assert!(off > 0.0 && off < tolerance, "{off}");
    }
}

#[test]
fn entries_beside_the_parameters_are_reported() {
    let mut parameters = parameters();
    parameters.push(("fc_other.weight".to_owned(), vec![2], vec![1.0, 2.0]));
    let file = Checkpoint {
        is_nested: true,
        ..Checkpoint::new(&parameters)
    };
    let summary = maia3::summary(&file.bytes()).unwrap();
    assert_eq!(summary.ignored, ["fc_other.weight"]);
    let notes = serde_json::Value::Object(summary.training);
    assert_eq!(notes, serde_json::json!({"epoch": 7, "loss": 1.5}));
    assert!(maia3::read(&file.bytes()).is_ok());
}

#[test]
fn a_published_size_is_recognised() {
    let config = Maia3Config::preset("maia3-3m").unwrap();
    let file = Checkpoint::new(&random_parameters(&config, 4)).bytes();
    assert_eq!(model(&maia3::read(&file).unwrap()), &config);
    let summary = maia3::summary(&file).unwrap();
    assert_eq!(summary.published_as, Some("maia3-3m"));
    assert_eq!(summary.size.parameters, 3_152_964);
}

#[test]
fn a_network_is_described() {
    let file = Checkpoint::new(&parameters()).bytes();
    let network = maia3::read(&file).unwrap();
    let tensors = network.weights.tensors().iter();
    let count: usize = tensors.map(|tensor| tensor.numel()).sum();
    let summary = maia3::summary(&file).unwrap();
    assert_eq!(summary.size.parameters, count as i64);
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["family"], "maia3");
    assert_eq!(json["published_as"], serde_json::Value::Null);
    assert_eq!(json["model"]["gab"]["compress"], 3);
    assert!(json["macs_total"].as_i64() > json["macs"].as_i64());
}

#[test]
fn other_networks_are_named_in_the_error() {
    let good = parameters();
    let changed = |change: fn(&mut Vec<Parameter>)| {
        let mut parameters = good.clone();
        change(&mut parameters);
        error(&Checkpoint::new(&parameters).bytes())
    };
    fn at<'a>(parameters: &'a mut [Parameter], name: &str) -> &'a mut Parameter {
        parameters.iter_mut().find(|p| p.0 == name).unwrap()
    }
    let add = |name: &'static str| {
        let mut parameters = good.clone();
        parameters.push((name.to_owned(), vec![1], vec![0.5]));
        error(&Checkpoint::new(&parameters).bytes())
    };
    let messages = [
        (
            changed(|p| p.retain(|p| p.0 != "fc_value.bias")),
            "no parameter `fc_value.bias`",
        ),
        (
            changed(|p| p.retain(|p| p.0 != "gab_shared_weight")),
            "no parameter `gab_shared_weight`",
        ),
        (
            changed(|p| p.retain(|p| !p.0.contains("layers"))),
            "no parameter `transformer.layers.0",
        ),
        (
            changed(|p| at(p, "last_ln.bias").1 = vec![2, 12]),
            "`last_ln.bias` has the shape [2, 12] in place of [24]",
        ),
        (
            changed(|p| at(p, "fc_value_hid.weight").1 = vec![240]),
            "[240] in place of a matrix's",
        ),
        (
            changed(|p| at(p, "transformer.layers.1.self_attn.sm3.bias").1 = vec![4, 7]),
            "in place of [28]",
        ),
        (
            changed(|p| at(p, "elo_embedding_low.weight").1 = vec![5, 1]),
            "104 features per square",
        ),
        (
            changed(|p| {
                let weight = at(p, "token_projection.weight");
                weight.1 = vec![24, 96 + 3 + 10];
                weight.2.resize(24 * 109, 0.0);
            }),
            "the clocks as inputs",
        ),
        (
            changed(|p| {
                let weight = at(p, "token_projection.weight");
                weight.1 = vec![24, 9 * 12 + 10];
                weight.2.resize(24 * 118, 0.0);
            }),
            "history is 9",
        ),
        (
            changed(|p| {
                let copy = at(p, "gab_shared_weight").clone();
                let name = "module.gab_shared_weight".to_owned();
                p.push((name, copy.1, copy.2));
            }),
            "two parameters `gab_shared_weight`",
        ),
        (add("abs_pe.bias"), "absolute position encodings"),
        (
            add("transformer.layers.0.self_attn.relative_bias.gate"),
            "relative position biases",
        ),
        (
            add("transformer.layers.0.self_attn.mha.in_proj_bias"),
            "biases in attention",
        ),
        (add("transformer.layers.1.norm2.bias"), "centred norms"),
    ];
    for (message, told) in messages {
        assert!(message.contains(told), "{message}");
    }
    let mut infinite = good.clone();
    at(&mut infinite, "last_ln.bias").2[3] = f32::NAN;
    let message = error(&Checkpoint::new(&infinite).bytes());
    assert!(message.contains("`last_ln.bias` holds numbers that are not finite"));
    let numbers = Numbers::Long;
    let whole = Checkpoint {
        numbers,
        ..Checkpoint::new(&good)
    };
    assert!(error(&whole.bytes()).contains("does not contain floating-point numbers"));
}

/// The copies of the shared generator in the layers must be identical.
#[test]
fn copies_of_the_generator_must_be_copies() {
    let mut parameters = parameters();
    let generator = parameters
        .iter()
        .find(|p| p.0 == "gab_shared_weight")
        .unwrap()
        .clone();
    let name = "transformer.layers.1.self_attn.gab_weight".to_owned();
    parameters.push((name, generator.1, generator.2));
    let write = |parameters: &[Parameter]| {
        let checkpoint = Checkpoint {
            has_copies: false,
            ..Checkpoint::new(parameters)
        };
        checkpoint.bytes()
    };
    assert!(maia3::read(&write(&parameters)).is_ok());
    parameters.last_mut().unwrap().2[17] += 0.25;
    let message = error(&write(&parameters));
    assert!(
        message.contains("a generator of attention biases of its own"),
        "{message}"
    );
}

#[test]
fn files_that_are_not_checkpoints_are_named() {
    let parameters = parameters();
    let good = Checkpoint::new(&parameters);
    let file = good.bytes();
    for (file, told) in [
        (b"1. e4 e5".to_vec(), "not a PyTorch checkpoint"),
        (Vec::new(), "not a PyTorch checkpoint"),
        // The first bytes that torch.save wrote before version 1.6.
        (
            b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.".to_vec(),
            "before version 1.6",
        ),
        (
            Checkpoint {
                extra: &[("constants.pkl", b"\x80\x02).")],
                ..good.clone()
            }
            .bytes(),
            "it is TorchScript",
        ),
        (
            Checkpoint {
                byte_order: Some("big"),
                ..good.clone()
            }
            .bytes(),
            "big-endian",
        ),
        (
            Checkpoint {
                compression: CompressionMethod::Deflated,
                ..good.clone()
            }
            .bytes(),
            "is compressed",
        ),
        (
            archive(
                &[("games.pgn".to_owned(), b"1. e4".to_vec())],
                CompressionMethod::Stored,
            ),
            "no entry `data.pkl`",
        ),
        (
            archive(
                &[("data.pkl".to_owned(), b"\x80\x02}.".to_vec())],
                CompressionMethod::Stored,
            ),
            "no dictionary of tensors",
        ),
        (
            archive(
                &[("data.pkl".to_owned(), b"\x80\x02K\x07.".to_vec())],
                CompressionMethod::Stored,
            ),
            "no dictionary of tensors",
        ),
        (file[..file.len() - 9].to_vec(), "or is truncated"),
    ] {
        let message = error(&file);
        assert!(message.contains(told), "{message}");
    }
    let script = Checkpoint {
        extra: &[("constants.pkl", b"")],
        ..good
    };
    assert!(!is_checkpoint(&script.bytes()));
    assert!(!is_checkpoint(b"1. e4 e5"));
    assert!(is_checkpoint(&file[..100]));
}
