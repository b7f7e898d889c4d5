//! Tests that an interrupted run ends with the same checkpoints and metrics as an uninterrupted
//! one, bit for bit.

use crate::train::recovery::{checkpoint, start, unaligned};
use crate::train::workplace::{assert_same_metrics, metrics, succeed, train, workplace};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use tch::Tensor;

/// Number of kills per run; the environment variable `TESSERA_KILLS` can increase it.
const KILLS: usize = 5;

/// Returns a checkpoint's contents: its state without the run's duration, and its tensors by name.
fn contents(path: &Path) -> (String, BTreeMap<String, Vec<u8>>) {
    let bytes = |tensor: Tensor| {
        let mut bytes = vec![0; tensor.numel() * tensor.kind().elt_size_in_bytes()];
        tensor.copy_data_u8(&mut bytes, tensor.numel());
        bytes
    };
    let tensors = Tensor::read_safetensors(path).unwrap().into_iter();
    let mut tensors: BTreeMap<String, Vec<u8>> = tensors
        .map(|(name, tensor)| (name, bytes(tensor)))
        .collect();
    tensors.remove("checksum").unwrap();
    let state = tensors.remove("state").unwrap();
    let mut state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    state.as_object_mut().unwrap().remove("seconds").unwrap();
    (state.to_string(), tensors)
}

/// Asserts that two runs ended with the same checkpoints and metrics.
pub fn assert_alike(folder: &Path, [one, other]: [&str; 2], step: u64) {
    assert_same_metrics(folder, [one, other]);
    let [(state, tensors), (found_state, found)] =
        [one, other].map(|run| contents(&checkpoint(folder, run, step)));
    assert_eq!(found_state, state, "{other}");
    assert!(tensors.keys().eq(found.keys()), "{other}");
    for (name, bytes) in &tensors {
        assert!(*bytes == found[name], "`{name}` differs in {other}");
    }
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_run_killed_at_random_instants_ends_like_an_uninterrupted_one() {
    const STEPS: u64 = 40;
    let wanted = std::env::var("TESSERA_KILLS");
    let wanted = wanted.map_or(KILLS, |wanted| wanted.parse().unwrap());
    let workplace = workplace(STEPS);
    let folder = workplace.path();
    let clock = Instant::now();
    succeed(&mut unaligned(folder, "whole"));
    let span = clock.elapsed();
    let whole = metrics(folder, "whole");
    assert!(whole.len() >= 14 + 3, "{whole:?}");

    // The machine's speed varies the instants enough.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(60);
    let (mut kills, mut ends) = (0, 0);
    while kills < wanted {
        let mut child = start(unaligned(folder, "killed"));
        std::thread::sleep(random.random_range(span / 100..span));
        child.kill().unwrap();
        if !child.wait().unwrap().success() {
            kills += 1;
            continue;
        }
        assert_alike(folder, ["whole", "killed"], STEPS);
        std::fs::remove_dir_all(folder.join("killed")).unwrap();
        ends += 1;
    }
    succeed(&mut unaligned(folder, "killed"));
    assert_alike(folder, ["whole", "killed"], STEPS);
    println!("{kills} kills of {} runs", ends + 1);

    let losses = |name: &str| -> Vec<f64> {
        let lines = whole.iter().filter(|line| line["split"] == "train");
        lines.map(|line| line[name].as_f64().unwrap()).collect()
    };
    for name in ["policy", "q", "loss"] {
        let losses = losses(name);
        let (first, last) = (losses[0], losses[losses.len() - 1]);
        assert!(last < 0.8 * first, "{name}: from {first} to {last}");
    }
}

/// Trains in bf16 on the default number of threads.
fn in_bf16(folder: &Path, output: &str, optimizer: &str) -> Command {
    let mut command = train(folder);
    command.args(["run", "tiny.toml", "-o", output]);
    let kind = format!("optimizer.kind=\"{optimizer}\"");
    let precision = "precision=\"bf16\"";
    for set in [precision, "checkpoint_every=4", "validate_every=5", &kind] {
        command.args(["--set", set]);
    }
    command.args(["--device", "cpu"]);
    command
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn every_optimizer_resumes_bit_for_bit_in_bf16() {
    // The steps include a checkpoint, a validation, and a step after both.
    const STEPS: u64 = 6;
    let workplace = workplace(STEPS);
    let folder = workplace.path();
    for optimizer in ["nadam", "muon", "soap", "sgd"] {
        let [whole, resumed] = ["whole", "resumed"].map(|run| format!("{optimizer}-{run}"));
        succeed(&mut in_bf16(folder, &whole, optimizer));
        let mut starts = 0;
        loop {
            starts += 1;
            let mut command = in_bf16(folder, &resumed, optimizer);
            // Each session takes only a few steps.
            let told = succeed(command.args(["--time", "0.0005m"]));
            if told.starts_with("finished") {
                break;
            }
        }
        assert!(starts > 1, "{optimizer} was not stopped");
        assert_alike(folder, [&whole, &resumed], STEPS);
    }
}
