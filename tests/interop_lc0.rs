//! Tests Lc0's network files: imported networks match an independent implementation, exported files
//! read back unchanged, and malformed files are rejected safely.

pub mod generate;
mod hostile;
#[path = "networks/plain.rs"]
pub mod plain;
mod positions;
pub mod protobuf;
mod reference;
mod written;

use generate::{BODY, Body, Shape, TOWER, generate};
use positions::{positions, rows};
use rayon::prelude::*;
use reference::{Evaluation, Reference};
use std::path::{Path, PathBuf};
use tch::{Kind, Tensor};
use tessera::encode::Input;
use tessera::interop::lc0::{self, Lc0Error};
use tessera::network::lc0::{HeadChoice, Lc0Config};
use tessera::network::{Lc0, Network, Output, Positions};

/// Tolerance for differences between f32 and f64.
const TOLERANCE: f64 = 1e-4;

/// Returns the ten Maia networks, if available.
fn maia(name: &str) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/nets");
    let file: PathBuf = folder.join(format!("maia-{name}.pb.gz"));
    let read = std::fs::read(&file).ok();
    if read.is_none() {
        crate::skip::skip(&file.display().to_string());
    }
    read
}

/// Reads a network with its default heads from a weights file.
fn read(file: &[u8]) -> Result<Network, Lc0Error> {
    lc0::read(file, HeadChoice::default())
}

/// Returns the specification that a network was built from.
fn model(network: &Network) -> &Lc0Config {
    &network.downcast::<Lc0>().unwrap().config
}

/// Compares a network's outputs for these positions with those of the reference implementation.
fn compare(network: &Network, file: &[u8], inputs: &[Input]) {
    // Many tests run concurrently, so more threads would only wait for each other.
    tch::set_num_threads(1);
    let reference = Reference::new(file);
    let names = network.architecture.interface().outputs;
    let outputs = network.forward(Positions::Rows(&rows(inputs)));
    let output = |name: Output| -> Option<Vec<Vec<f64>>> {
        let place = names.iter().position(|&other| other == name)?;
        let tensor = match name {
            Output::Wdl => outputs[place].softmax(-1, None::<Kind>),
            _ => outputs[place].shallow_clone(),
        };
        Some(table(&tensor))
    };
    let [policy, wdl] = [Output::Policy, Output::Wdl].map(|name| output(name).unwrap());
    let [moves_left, q] = [Output::MovesLeft, Output::Q].map(output);
    let expected: Vec<Evaluation> = inputs
        .par_iter()
        .map(|input| reference.evaluate(input.words()))
        .collect();
    for (index, expected) in expected.iter().enumerate() {
        close("policy", &policy[index], &expected.policy);
        close("wdl", &wdl[index], &expected.wdl);
        assert_eq!(moves_left.is_some(), expected.moves_left.is_some());
        if let (Some(found), Some(expected)) = (&moves_left, expected.moves_left) {
            close("moves_left", &found[index], &[expected]);
        }
        if let (Some(found), Some(expected)) = (&q, expected.q) {
            close("q", &found[index], &[expected]);
        }
    }
}

/// Returns the rows of a tensor [B, …].
fn table(tensor: &Tensor) -> Vec<Vec<f64>> {
    let rows = tensor.size()[0];
    let flat = tensor.to_kind(Kind::Double).contiguous().view([rows, -1]);
    (0..rows)
        .map(|row| Vec::try_from(flat.get(row)).unwrap())
        .collect()
}

fn close(name: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (found, expected) in found.iter().zip(expected) {
        let off = (found - expected).abs();
        assert!(
            off <= TOLERANCE * expected.abs().max(1.0),
            "{name}: {found}, not {expected}"
        );
    }
}

fn check(shape: &Shape, seed: u64, count: usize) -> Network {
    let file = generate(shape, seed);
    let network = read(&file).unwrap();
    compare(&network, &file, &positions(count, seed));
    let summary = lc0::summary(&file).unwrap();
    assert_eq!(&summary.model, model(&network));
    assert_eq!(summary.licence, "ODbL-1.0");
    assert_eq!(summary.training["steps"], 1234);
    let tensors = network.weights.tensors().iter();
    let parameters = tensors.map(|tensor| tensor.numel() as i64);
    assert_eq!(summary.size.parameters, parameters.sum::<i64>());
    network
}

#[test]
fn maia_1500_matches_lc0_on_hundreds_of_positions() {
    let Some(file) = maia("1500") else { return };
    let network = read(&file).unwrap();
    compare(&network, &file, &positions(250, 15));
    // Q of the initial position according to Lc0 0.33.
    let start = [Input::encode(&tessera::chess::Game::default())];
    let outputs = network.forward(Positions::Rows(&rows(&start)));
    let wdl = &table(&outputs[1].softmax(-1, None::<Kind>))[0];
    assert!((wdl[0] - wdl[2] - 0.0402).abs() < 5e-5, "{wdl:?}");
    let summary = lc0::summary(&file).unwrap();
    assert!(
        (37_900_000..38_300_000).contains(&summary.size.macs_total),
        "{summary:?}"
    );
    assert_eq!(summary.licence, "unknown");
    assert_eq!(summary.min_version.as_deref(), Some("0.21.0"));
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn all_maia_networks_match_the_reference() {
    for name in [
        "1100", "1200", "1300", "1400", "1600", "1700", "1800", "1900", "2200",
    ] {
        let Some(file) = maia(name) else { return };
        compare(
            &read(&file).unwrap(),
            &file,
            &positions(25, name.len() as u64),
        );
    }
}

/// Returns scaled-down towers from every generation of Lc0 networks.
pub fn towers() -> Vec<Shape> {
    vec![
        // Older files, which do not name head formats: classical heads, with and without squeeze
        // and excitation.
        Shape {
            format: [2, 0, 0, 0, 0],
            policy_channels: 5,
            ..TOWER
        },
        Shape {
            format: [1, 0, 0, 0, 0],
            tower: Some((1, 8, None)),
            policy_channels: 3,
            ..TOWER
        },
        Shape {
            format: [3, 1, 1, 1, 1],
            tower: Some((1, 8, None)),
            policy_channels: 6,
            ..TOWER
        },
        Shape {
            format: [4, 2, 2, 1, 1],
            batch_norms: false,
            ..TOWER
        },
        Shape {
            input_format: 2,
            policy_channels: 73,
            encodings: &[1, 2, 3, 4],
            ..TOWER
        },
        // An attention policy with SELU and its own encoder layers.
        Shape {
            input_format: 3,
            format: [4, 3, 2, 1, 1],
            policy: (16, 12, 2),
            ..TOWER
        },
    ]
}

#[test]
fn towers_of_every_kind_match_the_reference() {
    for (seed, shape) in towers().iter().enumerate() {
        check(shape, seed as u64, 40);
    }
}

/// Returns scaled-down bodies of Lc0 networks: T1-256x10, BT2, BT3, BT4, and a tower with an
/// encoder on top.
pub fn bodies() -> Vec<Shape> {
    let body = BODY.body.unwrap();
    let map = Body {
        dense: None,
        ..body
    };
    let plain = Body {
        smolgen: None,
        gates: false,
        ..map
    };
    vec![
        Shape {
            format: [6, 3, 2, 1, 1],
            body_format: [0, 0, 1],
            body: Some(plain),
            many_heads: false,
            ..BODY
        },
        Shape {
            format: [6, 3, 2, 1, 1],
            body_format: [7, 8, 1],
            body: Some(map),
            many_heads: false,
            ..BODY
        },
        // The same network, in the format of a file from 2022.
        Shape {
            format: [4, 3, 2, 1, 1],
            body_format: [0, 0, 0],
            body: Some(map),
            many_heads: false,
            ..BODY
        },
        Shape {
            format: [6, 3, 1, 0, 0],
            body_format: [2, 1, 2],
            body: Some(body),
            many_heads: false,
            ..BODY
        },
        Shape {
            format: [7, 3, 2, 1, 1],
            body_format: [7, 0, 1],
            body: Some(map),
            input_format: 4,
            ..BODY
        },
        Shape {
            encodings: &[4, 2, 1, 3],
            input_format: 133,
            ..BODY
        },
        BODY,
        Shape {
            tower: Some((1, 16, None)),
            format: [6, 3, 2, 0, 0],
            body_format: [7, 8, 1],
            body: Some(map),
            many_heads: false,
            ..BODY
        },
    ]
}

#[test]
fn attention_bodies_of_every_kind_match_the_reference() {
    for (seed, shape) in bodies().iter().enumerate() {
        if shape.format[0] == 4 {
            // The reference implementation supports only the current format numbers.
            let file = generate(shape, seed as u64);
            let today = Shape {
                format: [6, 3, 2, 1, 1],
                body_format: [7, 8, 1],
                ..*shape
            };
            let today = generate(&today, seed as u64);
            compare(&read(&file).unwrap(), &today, &positions(10, 1));
        } else {
            check(shape, seed as u64, 40);
        }
    }
}

#[test]
#[ignore = "full-size networks: take minutes and gigabytes"]
fn full_size_bodies_match_the_reference() {
    let body = BODY.body.unwrap();
    let sizes = [
        // T1-256x10, BT3-768x15, BT4-1024x15.
        (
            Body {
                layers: 10,
                width: 256,
                heads: 8,
                feed_forward: 256,
                smolgen: Some((32, 256, 256)),
                dense: None,
                gates: true,
            },
            1,
        ),
        (
            Body {
                layers: 15,
                width: 768,
                heads: 24,
                feed_forward: 1024,
                smolgen: Some((32, 256, 256)),
                dense: Some((512, 1536)),
                ..body
            },
            2,
        ),
        (
            Body {
                layers: 15,
                width: 1024,
                heads: 32,
                feed_forward: 1536,
                smolgen: Some((32, 256, 256)),
                dense: Some((512, 1536)),
                ..body
            },
            2,
        ),
    ];
    for (body, embedding) in sizes {
        let shape = Shape {
            body: Some(body),
            body_format: [7, 0, embedding],
            policy: (body.width, body.width, 0),
            ..BODY
        };
        let network = check(&shape, 7, 2);
        println!("{:?}", model(&network).size());
    }
}
