//! Tests the code that all our exporters and importers write.

use super::records::Records;
use crate::interop_lc0::generate::{BODY, Shape, generate};
use crate::{gpt, interop_lc0, interop_maia3, torchscript};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tch::Device;
use tessera::backend::CodePolicy;
use tessera::interop::lc0;
use tessera::network::lc0::{HeadChoice, PolicyHead, ValueHead};
use tessera::network::{About, Architecture, Chessformer, Evaluator, Maia3, Network, WorldModel};
use tessera::torch::check::{ARGUMENTS, OPERATORS};
use tessera::torch::{ExportPrecision, open};

fn about() -> About {
    About {
        correction: None,
        name: "random".to_owned(),
        search_value: "wdl".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    }
}

/// Returns a network of this architecture with random weights.
fn random(architecture: impl Evaluator) -> Network {
    let flat = architecture.initial_weights();
    Network::new(Box::new(architecture), &flat, about())
}

/// Returns a network of every kind that can be exported or imported, by name.
fn networks() -> Vec<(String, Network)> {
    let chessformers = torchscript::networks().into_iter().map(|(name, config)| {
        let model = Chessformer::new(&config, Device::Cpu).unwrap();
        (name, random(model))
    });
    let shapes = interop_lc0::towers().into_iter();
    let shapes = shapes.chain(interop_lc0::bodies()).enumerate();
    let choices = [
        HeadChoice::default(),
        HeadChoice {
            policy: PolicyHead::Optimistic,
            value: ValueHead::St,
        },
    ];
    let read = |shape: &Shape, choice| lc0::read(&generate(shape, 5), choice).unwrap();
    let lc0 = shapes.map(|(index, shape)| (format!("Lc0 {index}"), read(&shape, choices[0])));
    let chosen = ("Lc0's other heads".to_owned(), read(&BODY, choices[1]));
    let maia3 = interop_maia3::small().into_iter().map(|config| {
        let model = Maia3::new(&config, Device::Cpu).unwrap();
        ("Maia-3".to_owned(), random(model))
    });
    chessformers
        .chain(lc0)
        .chain([chosen])
        .chain(maia3)
        .collect()
}

/// Creates a world model.
fn world() -> Network<WorldModel> {
    let config = json!({
        "encoder": {
            "layers": 1, "width": 32, "heads": 4, "feed_forward": 32, "norm": "layer",
            "position": { "kind": "gab", "compress": 4, "hidden": 16, "generator": 8 },
            "attacks": true, "attack_bias": true,
        },
    });
    let world = WorldModel::new(&serde_json::from_value(config).unwrap(), Device::Cpu).unwrap();
    let flat = world.initial_weights();
    Network::new(Box::new(world), &flat, about())
}

/// Returns the functions of `torch` that a file's code calls.
fn called(file: &[u8]) -> BTreeSet<String> {
    let records = Records::read(file);
    let code = std::str::from_utf8(records.get("code/__torch__.py")).unwrap();
    let calls = code.split("torch.").skip(1).filter_map(|rest| {
        let end = rest.find(|byte: char| byte != '_' && !byte.is_ascii_alphanumeric())?;
        rest[end..].starts_with('(').then(|| rest[..end].to_owned())
    });
    calls.collect()
}

/// Returns the keyword arguments in a file's code.
fn named(file: &[u8]) -> BTreeSet<String> {
    let records = Records::read(file);
    let code = std::str::from_utf8(records.get("code/__torch__.py")).unwrap();
    let names = code.split('=').filter_map(|before| {
        let start = before.rfind(|byte: char| byte != '_' && !byte.is_ascii_lowercase())? + 1;
        let is_argument = before[..start].ends_with(", ");
        (is_argument && start < before.len()).then(|| before[start..].to_owned())
    });
    names.collect()
}

/// Functions called in networks that earlier exporters wrote.
const EARLIER: [&str; 1] = ["split"];

/// The allow-lists contain exactly the operators and the keyword arguments of these networks.
#[test]
fn the_allow_lists_match_the_exporters() {
    let _guard = tch::no_grad_guard();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.pt");
    let written = networks().into_iter().map(|(name, network)| {
        network.write(ExportPrecision::Fp16, &path).unwrap();
        (name, fs::read(&path).unwrap())
    });
    let mut files: Vec<(String, Vec<u8>)> = written.collect();
    for (name, config) in gpt::networks() {
        let network = gpt::random(&config);
        network.write(ExportPrecision::Fp16, &path).unwrap();
        files.push((name.to_owned(), fs::read(&path).unwrap()));
    }
    world().write(ExportPrecision::Fp16, &path).unwrap();
    files.push(("world".to_owned(), fs::read(&path).unwrap()));
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("nets");
    for entry in fs::read_dir(shipped).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "pt") {
            files.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    let mut operators: BTreeSet<String> = EARLIER.map(str::to_owned).into();
    operators.extend(files.iter().flat_map(|(_, file)| called(file)));
    let arguments = files.iter().flat_map(|(_, file)| named(file)).collect();
    let text = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let lists: [(BTreeSet<String>, BTreeSet<String>); 2] =
        [(operators, text(&OPERATORS)), (arguments, text(&ARGUMENTS))];
    for (all, listed) in lists {
        let lacking: Vec<_> = all.difference(&listed).collect();
        let idle: Vec<_> = listed.difference(&all).collect();
        assert!(
            lacking.is_empty() && idle.is_empty(),
            "{lacking:?} {idle:?}"
        );
    }
    for (name, file) in &files {
        if let Err(error) = open(file, CodePolicy::Checked) {
            panic!("{name}: {error}");
        }
    }
}
