//! Resumes a run from 24 November 2026. Its checkpoint, its shard and its subsequent metrics are
//! kept here, to ensure that long runs survive changes to the trainer.

use super::workplace::{metrics, succeed, train};
use std::path::Path;

/// Tolerance of the losses; it is needed because the originals were computed on another processor.
const TOLERANCE: f64 = 1e-3;

const CHECKPOINT: &str = "step-000000006.safetensors";

#[test]
fn a_run_of_an_earlier_version_resumes() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/train/kept");
    let workplace = tempfile::tempdir().unwrap();
    let folder = workplace.path();
    let checkpoints = folder.join("run/checkpoints");
    std::fs::create_dir_all(&checkpoints).unwrap();
    std::fs::copy(kept.join(CHECKPOINT), checkpoints.join(CHECKPOINT)).unwrap();
    for name in ["config.toml", "games.shard"] {
        std::fs::copy(kept.join(name), folder.join(name)).unwrap();
    }
    let words = ["run", "config.toml", "-o", "run", "--set"];
    let told =
        succeed(
            train(folder)
                .args(words)
                .args(["steps=12", "--device", "cpu", "--threads", "1"]),
        );
    assert!(
        told.contains("finished at step 12 after 192 samples"),
        "{told}"
    );

    let found = metrics(folder, "run");
    let text = std::fs::read_to_string(kept.join("metrics.jsonl")).unwrap();
    let expected: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(expected.len(), 5);
    for line in &expected {
        let mut same = found
            .iter()
            .filter(|it| it["step"] == line["step"] && it["split"] == line["split"]);
        let found = same.next().unwrap();
        for name in ["policy", "q", "loss", "gradient_norm"] {
            let Some(then) = line[name].as_f64() else {
                continue;
            };
            let now = found[name].as_f64().unwrap();
            assert!(
                (now - then).abs() < TOLERANCE * then,
                "{name}: {now}, then {then}"
            );
        }
    }
}
