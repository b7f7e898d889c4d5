//! Measures networks in each dtype, and shows which dtype `auto` selects:
//! `cargo bench --bench precision -- FILE…`.
//!
//! The networks are the one that ships with the program, an Lc0 attention body with random weights,
//! and the given files, of any kind that `tessera import` reads. Each network is measured on one
//! core with all of the processor's instruction sets, and again with some of them hidden from
//! libtorch's libraries and from our kernels. Each rate is the best of several rounds, because a
//! machine is never completely idle.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tch::Device;
use tempfile::TempDir;
use tessera::interop;
use tessera::network::lc0::HeadChoice;
use tessera::network::{About, ArchitectureConfig, Network};
use tessera::torch::ExportPrecision;

/// Batch sizes: a size typical of the start of a search, and the recommended size.
const BATCHES: [usize; 2] = [8, 32];
/// Number of rounds for each batch size.
const TURNS: usize = 9;
/// Duration of a round.
const TIME: &str = "200ms";
/// The dtypes, in the order of the table's columns.
const FORMATS: [&str; 3] = ["f32", "bf16", "int8"];
/// Instruction sets that remain visible to the libraries, and the settings that hide the others.
const MASKS: [(&str, &[(&str, &str)]); 4] = [
    ("all", &[]),
    (
        "oneDNN without VNNI and bf16",
        &[("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")],
    ),
    (
        "AVX2",
        &[
            ("ATEN_CPU_CAPABILITY", "avx2"),
            ("ONEDNN_MAX_CPU_ISA", "AVX2"),
            ("MKL_ENABLE_INSTRUCTIONS", "AVX2"),
        ],
    ),
    (
        "SSE4",
        &[
            ("ATEN_CPU_CAPABILITY", "default"),
            ("ONEDNN_MAX_CPU_ISA", "SSE41"),
            ("MKL_ENABLE_INSTRUCTIONS", "SSE4_2"),
        ],
    ),
];

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut networks = vec![shipped(), body(&folder)];
    // Cargo adds --bench.
    let files = std::env::args().skip(1).filter(|word| word != "--bench");
    networks.extend(files.map(|file| imported(Path::new(&file), &folder)));
    println!("Evaluations a second in batches of 8 / 32.\n");
    println!("| instruction sets | network | f32 | bf16 | int8 | auto | of the fastest |");
    println!("|---|---|---|---|---|---|---|");
    for (mask, settings) in MASKS {
        for (name, path) in &networks {
            println!("| {mask} | {name} | {} |", row(path, settings, &folder));
        }
    }
}

/// A network's name in the table, and its file.
type Named = (String, PathBuf);

fn shipped() -> Named {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("nets/tessera-xs.pt");
    ("tessera-xs".to_owned(), path)
}

/// Creates a body with BT4's structure, but with 4 layers of width 256 instead of 15 of width 1024.
fn body(folder: &TempDir) -> Named {
    let config = json!({
        "family": "lc0",
        "policy_head": "vanilla",
        "value_head": "winner",
        "model": {
            "input_format": 1,
            "activation": "mish",
            "tower": null,
            "attention": {
                "width": 256,
                "embedding": { "kind": "dense", "board": 128, "feed_forward": 384 },
                "gates": true,
                "encoder": {
                    "layers": 4,
                    "heads": 8,
                    "attention": 256,
                    "feed_forward": 384,
                    "smolgen": { "compress": 32, "hidden": 64, "generator": 64 },
                },
                "smolgen_activation": "swish",
                "feed_forward_activation": "mish",
            },
            "policy": {
                "embedding": 256,
                "heads": {
                    "vanilla": { "kind": "attention", "embedding": null, "encoder": null, "width": 256 },
                },
            },
            "value": {
                "winner": { "features": 32, "hidden": 128, "wdl": true, "error": false, "buckets": null },
            },
            "moves_left": { "features": 8, "hidden": 128 },
        },
    });
    let config: ArchitectureConfig = serde_json::from_value(config).expect("an architecture");
    let architecture = config.build(Device::Cpu).expect("sizes that fit");
    let architecture = architecture
        .into_evaluator()
        .expect("a network of positions");
    tch::manual_seed(1);
    let weights = architecture.initial_weights();
    let about = About {
        name: "body".to_owned(),
        search_value: "wdl".to_owned(),
        training: Value::Null,
        licence: "CC0-1.0".to_owned(),
        correction: None,
    };
    let network = Network::new(architecture, &weights, about);
    write("BT4's shape, small", &network, folder)
}

fn imported(file: &Path, folder: &TempDir) -> Named {
    let shown = file.display();
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{shown}: {error}"));
    let network = interop::open(&bytes, HeadChoice::default());
    let network = network.unwrap_or_else(|error| panic!("{shown}: {error}"));
    write(&network.about.name, &network, folder)
}

fn write(name: &str, network: &Network, folder: &TempDir) -> Named {
    let path = folder.path().join(format!("{name}.pt"));
    let written = network.write(ExportPrecision::F32, &path);
    written.expect("a folder that can be written");
    (name.to_owned(), path)
}

/// Returns a network's table cells: its speed in each dtype, the dtype that `auto` selects, and the
/// speed in that dtype as a share of the highest speed.
fn row(net: &Path, settings: &[(&str, &str)], folder: &TempDir) -> String {
    let batches = BATCHES
        .repeat(TURNS)
        .into_iter()
        .map(|size| size.to_string());
    let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .args([
            "backendbench",
            "--precision",
            "all",
            "--device",
            "cpu",
            "--json",
        ])
        .args(["--threads", "1", "--time", TIME])
        .args(["--batch", &batches.collect::<Vec<_>>().join(",")])
        .arg("--net")
        .arg(net)
        .envs(settings.iter().copied())
        // Make `auto` measure again.
        .env("XDG_CACHE_HOME", folder.path())
        .output()
        .expect("the engine starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| {
        panic!("backendbench: {}", String::from_utf8_lossy(&output.stderr));
    });
    let auto = said["format"]["precision"].as_str().unwrap_or_default();
    let mut best: BTreeMap<(&str, usize), f64> = BTreeMap::new();
    for result in said["results"].as_array().into_iter().flatten() {
        let format = result["precision"].as_str().unwrap_or_default();
        let batch = result["batch"].as_u64().unwrap_or_default() as usize;
        let rate = result["evaluations_per_second"]
            .as_f64()
            .unwrap_or_default();
        let best = best.entry((format, batch)).or_default();
        *best = best.max(rate);
    }
    let pair = |of: &dyn Fn(usize) -> Option<String>| {
        let cells: Option<Vec<String>> = BATCHES.into_iter().map(of).collect();
        cells.map_or("–".to_owned(), |cells| cells.join(" / "))
    };
    let mut cells: Vec<String> = FORMATS
        .into_iter()
        .map(|format| pair(&|batch| Some(format!("{:.0}", best.get(&(format, batch))?))))
        .collect();
    cells.push(auto.to_owned());
    cells.push(pair(&|batch| {
        let rates = FORMATS
            .into_iter()
            .filter_map(|format| best.get(&(format, batch)));
        let highest = rates.copied().fold(0.0, f64::max);
        Some(format!(
            "{:.0} %",
            100.0 * best.get(&(auto, batch))? / highest
        ))
    }));
    cells.join(" | ")
}
