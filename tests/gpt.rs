//! Tests that a GPT file gives the same results in the engine, in PyTorch, and by its formulas.

pub mod written;

use crate::golden::Golden;
use crate::torchscript::code;
use serde_json::json;
use std::fs;
use std::process::Command;
use tch::{Device, Kind, Tensor};
use tessera::chess::Ratings;
use tessera::network::gpt::{Conditions, GptConfig, Sequences};
use tessera::network::{About, Architecture, Gpt, Network};
use tessera::torch::ExportPrecision;

/// Tolerance for values computed in f32, to allow for differences between machines.
const TOLERANCE: f64 = 1e-5;

/// Returns our architecture and GPT-2's.
pub fn networks() -> [(&'static str, GptConfig); 2] {
    let sizes = r#"{"layers": 2, "width": 32, "heads": 4, "feed_forward": 48, "context": 24"#;
    let published = r#", "norm": "layer", "positions": "learned", "mlp": "gelu", "tied": true,
        "outcome": false, "vocabulary": {"san": ["e4", "e5", "Nf3"]}"#;
    [("gpt", ""), ("gpt-2", published)].map(|(name, rest)| {
        let config = serde_json::from_str(&format!("{sizes}{rest}}}"));
        (name, config.unwrap())
    })
}

/// Creates a network whose weights are large enough for every part to affect the output.
pub fn random(config: &GptConfig) -> Network<Gpt> {
    let gpt = Gpt::new(config, Device::Cpu).unwrap();
    tch::manual_seed(7);
    let flat = gpt.initial_weights();
    let flat = &flat + Tensor::randn_like(&flat) * 0.2;
    let about = About {
        correction: None,
        name: "random".to_owned(),
        search_value: String::new(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    };
    Network::new(Box::new(gpt), &flat, about)
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    Vec::try_from(tensor.reshape([-1])).unwrap()
}

#[test]
fn engine_pytorch_and_formulas_agree() {
    let _guard = tch::no_grad_guard();
    let folder = tempfile::tempdir().unwrap();
    let python = crate::python::with("torch");
    let mut golden = Golden::open("gpt", python.is_some());
    let conditions = [(1500, 0), (2900, 400), (0, 3500)].map(|(white, black)| Conditions {
        ratings: Ratings {
            white: Some(white),
            black: Some(black),
        },
        result: None,
    });
    for (name, config) in networks() {
        let path = folder.path().join(format!("{name}.pt"));
        let network = random(&config);
        network.write(ExportPrecision::F32, &path).unwrap();
        golden.bytes(&format!("{name} code"), &code(&path));
        let vocabulary = network.architecture.vocabulary.size() as i64;
        let tokens = Tensor::arange(27, (Kind::Int64, Device::Cpu)).square();
        let tokens = (tokens * 7).remainder(vocabulary).view([3, 9]);
        let results = Tensor::from_slice(&[0i64, 1, 3]).view([3, 1]);
        let sequences = Sequences {
            ratings: Conditions::ratings(&conditions),
            results: results.shallow_clone(),
            ..Sequences::of_tokens(tokens.shallow_clone())
        };
        let gpt = &network.architecture;
        let features = gpt.features(&network.weights, &sequences, None);
        let next = gpt.next(&network.weights, &features);
        let said: Vec<Vec<f32>> = [Some(next.tokens), next.outcome]
            .iter()
            .flatten()
            .map(floats)
            .collect();
        for (output, numbers) in ["next", "outcome"].iter().zip(&said) {
            let numbers: Vec<f64> = numbers.iter().map(|&number| number.into()).collect();
            golden.numbers(&format!("{name} {output}"), &numbers, TOLERANCE);
        }
        let rows: Vec<Vec<i64>> = Vec::try_from(&tokens).unwrap();
        let ratings = floats(&sequences.ratings);
        let ratings: Vec<_> = ratings.chunks(2).map(|row| json!([row])).collect();
        let results: Vec<Vec<i64>> = Vec::try_from(&results).unwrap();
        let games = json!({
            "tokens": rows, "ratings": ratings, "results": results, "said": said,
        });
        fs::write(path.with_extension("json"), games.to_string()).unwrap();
    }
    let Some(python) = python else {
        return golden.finish();
    };
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/gpt.py");
    let output = Command::new(python)
        .arg(script)
        .arg(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert_eq!(text.lines().count(), networks().len(), "{text}");
    print!("{text}");
    golden.finish();
}
