//! Tests traces of training steps.

use crate::support::launches;
use crate::train::workplace::{games, pack, run, succeed, train, workplace};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// At least the number of kernels that a GPU launches in a training step of `tessera-xs`.
const LAUNCHES: usize = 890;

/// Returns the number of times that an operator was called in a trace.
fn calls(trace: &Path, operator: &str) -> usize {
    let trace: Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    events
        .iter()
        .filter(|event| event["name"] == operator)
        .count()
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn ten_steps_are_traced() {
    let workplace = workplace(40);
    let folder = workplace.path();
    let traced = |steps: &str, file: &str| {
        let mut run = run(folder, &format!("run of {file}"));
        run.args(["--steps", steps, "--trace", file]);
        run.arg("--as-on-a-gpu");
        let output = run.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    traced("40", "whole.json");
    // Each step clips the gradient once.
    assert_eq!(calls(&folder.join("whole.json"), "aten::reciprocal"), 10);
    traced("13", "short.json");
    assert_eq!(calls(&folder.join("short.json"), "aten::reciprocal"), 3);
    let told = traced("10", "none.json");
    assert!(told.contains("none.json was not written"), "{told}");
    assert!(!folder.join("none.json").exists());
}

/// Counted on the CPU. A GPU also copies the batch.
#[test]
fn a_step_takes_few_launches() {
    let Some(python) = crate::python::with_or_skip("json") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pack(folder, &games(20));
    for name in ["maia", "people", "endings"] {
        fs::copy(
            folder.join("games.shard"),
            folder.join(name).with_extension("shard"),
        )
        .unwrap();
    }
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("nets/configs/tessera-xs.toml");
    let mut run = train(folder);
    run.arg("run").arg(config);
    run.args(["-o", "run", "--shards", ".", "--device", "cpu"]);
    run.args(["--threads", "1", "--set", "batch=4", "--steps", "21"]);
    succeed(run.args(["--trace", "trace.json", "--as-on-a-gpu"]));
    let counted = launches(&python, &folder.join("trace.json"));
    assert!(
        (5 * LAUNCHES..=10 * LAUNCHES).contains(&counted),
        "{counted}"
    );
}
