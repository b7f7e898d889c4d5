//! What all our exporters and importers write.

use super::records::Records;
use crate::interop_lc0::generate::{BODY, Shape, generate};
use crate::{gpt, interop_lc0, interop_maia3, torchscript};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use tch::{Device, Kind, Tensor};
use tessera::interop::lc0;
use tessera::network::graph::{Attribute, GraphConfig, NodeConfig, OutputConfig, OutputForm};
use tessera::network::lc0::{HeadChoice, PolicyHead, ValueHead};
use tessera::network::{About, Architecture, Chessformer, Evaluator, Graph, Maia3, Network, World};
use tessera::nn::CodePolicy;
use tessera::nn::torch::check::{ARGUMENTS, OPERATORS};
use tessera::nn::torch::{ExportPrecision, open};

fn about() -> About {
    About {
        name: "random".to_owned(),
        search_value: "wdl".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    }
}

/// A network of this architecture with random weights.
fn random(architecture: impl Evaluator) -> Network {
    let flat = architecture.initial_weights();
    Network::new(Box::new(architecture), &flat, about())
}

/// A graph that has every operator of ONNX that can be imported.
fn graph() -> Network {
    let mut nodes = Vec::new();
    let mut node = |operator: &str, inputs: &[&str], attributes: &[(&str, Attribute)]| {
        let output = format!("{}{}", operator, nodes.len());
        let owned = |name: &&str| (*name).to_owned();
        nodes.push(NodeConfig {
            operator: operator.to_owned(),
            inputs: inputs.iter().map(owned).collect(),
            outputs: vec![output.clone()],
            attributes: attributes
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
        });
        output
    };
    let ints = |values: &[i64]| Attribute::Ints(values.to_vec());
    let axis = |value| ("axis", Attribute::Int(value));

    let pooled = node("GlobalAveragePool", &["planes"], &[]);
    let x = &*node("Flatten", &[&pooled], &[]);
    let y = &*node("MatMul", &[x, "square"], &[]);
    // Rows of 112 numbers, to be added up.
    let mut made = vec![y.to_owned()];
    for operator in [
        "Relu",
        "Tanh",
        "Sigmoid",
        "Softplus",
        "Mish",
        "Selu",
        "Elu",
        "Exp",
        "Log",
        "Sqrt",
        "Reciprocal",
        "Erf",
        "Abs",
        "Neg",
        "Identity",
    ] {
        made.push(node(operator, &[x], &[]));
    }
    for operator in ["Softmax", "LogSoftmax"] {
        made.push(node(operator, &[x], &[axis(-1)]));
    }
    for kind in [1, 10] {
        made.push(node("Cast", &[x], &[("to", Attribute::Int(kind))]));
    }
    for operator in ["Sub", "Mul", "Div", "Pow", "Max", "Min"] {
        made.push(node(operator, &[x, y], &[]));
    }
    made.push(node("Clip", &[x, "zero", "one"], &[]));
    let greater = node("Greater", &[x, y], &[]);
    made.push(node("Where", &[&greater, x, y], &[]));
    made.push(node(
        "Gemm",
        &[x, "square", "row"],
        &[("transB", Attribute::Int(1))],
    ));
    made.push(node("LayerNormalization", &[x, "row", "row"], &[]));

    let turned = node("Transpose", &["planes"], &[("perm", ints(&[0, 1, 3, 2]))]);
    let filtered = node(
        "Conv",
        &[&turned, "kernel", "row"],
        &[("pads", ints(&[1; 4]))],
    );
    let both = [("axes", ints(&[2, 3])), ("keepdims", Attribute::Int(0))];
    made.push(node("ReduceMean", &[&filtered], &both));
    made.push(node("ReduceSum", &[&turned], &both));
    let folded = node("Reshape", &[x], &[("shape", ints(&[-1, 8, 14]))]);
    made.push(node("Reshape", &[&folded], &[("shape", ints(&[-1, 112]))]));
    let column = node("Unsqueeze", &[x], &[("axes", ints(&[2]))]);
    made.push(node("Squeeze", &[&column], &[("axes", ints(&[2]))]));
    let wide = node("Expand", &[&column, "wide"], &[]);
    made.push(node(
        "ReduceSum",
        &[&wide],
        &[("axes", ints(&[2])), ("keepdims", Attribute::Int(0))],
    ));
    let shape = node("Shape", &[x], &[]);
    made.push(node("Expand", &["row", &shape], &[]));
    let whole = [
        ("axes", ints(&[1])),
        ("starts", ints(&[0])),
        ("ends", ints(&[56])),
    ];
    let half = node("Slice", &[x], &whole);
    let doubled = node("Concat", &[&half, &half], &[axis(1)]);
    made.push(doubled.clone());
    made.push(node(
        "Slice",
        &[x, "last", "before", "columns", "back"],
        &[],
    ));
    made.push(node("Gather", &[x, "places"], &[axis(1)]));
    let single = node("Gather", &[x, "place"], &[axis(1)]);
    made.push(node("Unsqueeze", &[&single], &[("axes", ints(&[1]))]));
    let sum = made
        .into_iter()
        .reduce(|sum, next| node("Add", &[&sum, &next], &[]));
    let sum = sum.unwrap();
    let logits = node("MatMul", &[&sum, "moves"], &[]);
    let policy = node("Softmax", &[&logits], &[axis(-1)]);
    let value = node("MatMul", &[&sum, "column"], &[]);
    nodes.push(NodeConfig {
        operator: "Split".to_owned(),
        inputs: vec![doubled],
        outputs: vec!["left".to_owned(), "right".to_owned()],
        attributes: [("axis".to_owned(), Attribute::Int(1))].into(),
    });
    nodes.push(NodeConfig {
        operator: "ReduceMean".to_owned(),
        inputs: vec!["left".to_owned()],
        outputs: vec!["length".to_owned()],
        attributes: [("axes".to_owned(), ints(&[1]))].into(),
    });

    let random = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu)) * 0.01;
    let integers = |values: &[i64]| Tensor::from_slice(values);
    let places: Vec<i64> = (0..112).rev().collect();
    let tensors = [
        ("square", random(&[112, 112])),
        ("row", random(&[112])),
        ("column", random(&[112, 1])),
        ("moves", random(&[112, 1858])),
        ("kernel", random(&[112, 112, 3, 3])),
        ("zero", Tensor::from(0f32)),
        ("one", Tensor::from(1f32)),
        ("wide", integers(&[1, 112, 3])),
        ("last", integers(&[-1])),
        ("before", integers(&[-1000])),
        ("columns", integers(&[1])),
        ("back", integers(&[-1])),
        ("places", integers(&places)),
        ("place", Tensor::from(5i64)),
    ];
    let tensors = tensors.map(|(name, tensor)| (name.to_owned(), tensor));
    let output = |name: &str, value: String, form| OutputConfig {
        name: name.to_owned(),
        value,
        form,
    };
    let names = tensors.iter().map(|(name, _)| (name.clone(), name.clone()));
    let config = GraphConfig {
        operator_set: 13,
        input: "planes".to_owned(),
        input_format: 1,
        outputs: vec![
            output("policy", policy, OutputForm::Probabilities),
            output("wdl", value, OutputForm::Result),
            output("moves_left", "length".to_owned(), OutputForm::Plain),
        ],
        tensors: names.collect::<BTreeMap<String, String>>(),
        nodes,
    };
    let (graph, weights) = Graph::from_tensors(config, tensors).unwrap();
    Network {
        architecture: Box::new(graph),
        weights,
        about: about(),
    }
}

/// A network of every kind that can be exported or imported, by name.
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
    let onnx = ("ONNX".to_owned(), graph());
    chessformers
        .chain(lc0)
        .chain([chosen, onnx])
        .chain(maia3)
        .collect()
}

/// A world model.
fn world() -> Network<World> {
    let config = json!({
        "encoder": {
            "layers": 1, "width": 32, "heads": 4, "feed_forward": 32, "norm": "layer",
            "position": { "kind": "gab", "compress": 4, "hidden": 16, "generator": 8 },
            "attacks": true, "attack_bias": true,
        },
    });
    let world = World::new(&serde_json::from_value(config).unwrap(), Device::Cpu).unwrap();
    let flat = world.initial_weights();
    Network::new(Box::new(world), &flat, about())
}

/// The functions of `torch` that a file's code calls.
fn called(file: &[u8]) -> BTreeSet<String> {
    let records = Records::read(file);
    let code = std::str::from_utf8(records.get("code/__torch__.py")).unwrap();
    let calls = code.split("torch.").skip(1).filter_map(|rest| {
        let end = rest.find(|byte: char| byte != '_' && !byte.is_ascii_alphanumeric())?;
        rest[end..].starts_with('(').then(|| rest[..end].to_owned())
    });
    calls.collect()
}

/// The arguments that a file's code names.
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

/// What networks call that earlier exporters wrote.
const EARLIER: [&str; 1] = ["split"];

/// The lists have the operators that these networks call and the arguments that they name,
/// and no other.
#[test]
fn what_exporters_write_is_what_files_may_bring() {
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
