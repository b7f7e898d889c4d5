//! `tessera doctor` on this machine, healthy and with faults.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn doctor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tessera"))
        .arg("doctor")
        .args(arguments)
        .output()
        .unwrap()
}

/// Returns the JSON object on the last line, after checking that it agrees with the exit status and
/// that every fault has a remedy.
fn diagnosis(arguments: &[&str]) -> Value {
    let output = doctor(&[arguments, &["--json"]].concat());
    let said = String::from_utf8(output.stdout).unwrap();
    let diagnosis: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let findings = diagnosis["findings"].as_array().unwrap();
    for finding in findings {
        assert!(!finding["found"].as_str().unwrap().is_empty());
        assert_eq!(finding["ok"] == true, finding["remedy"].is_null());
    }
    let well = findings.iter().all(|finding| finding["ok"] == true);
    assert_eq!(diagnosis["ok"], well);
    assert_eq!(output.status.success(), well);
    diagnosis
}

fn finding<'a>(diagnosis: &'a Value, subject: &str) -> &'a Value {
    let findings = diagnosis["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|finding| finding["subject"] == subject)
        .unwrap()
}

#[test]
fn the_libtorch_of_the_build_is_healthy() {
    let diagnosis = diagnosis(&[]);
    assert_eq!(finding(&diagnosis, "libtorch")["ok"], true);
    assert_eq!(
        diagnosis["libtorch"]["found"],
        diagnosis["libtorch"]["expected"]
    );
    assert!(diagnosis["cpu"]["threads"].as_u64().unwrap() > 0);
    let format = diagnosis["format"]["precision"].as_str().unwrap();
    let told = finding(&diagnosis, "network")["found"].as_str().unwrap();
    assert!(told.contains(&format!("runs in {format}")), "{told}");
    let speeds = diagnosis["format"]["speeds"].as_array().unwrap();
    assert_ne!(speeds.len(), 1);
    for speed in speeds {
        let rate = speed["evaluations_per_second"].as_f64().unwrap();
        let precision = speed["precision"].as_str().unwrap();
        assert!(told.contains(&format!("{precision} {rate:.0}")), "{told}");
    }
    // On a machine with a driver, the report names the missing CUDA part.
    let gpus = diagnosis["gpus"].as_array().map_or(0, Vec::len);
    let used = diagnosis["cuda_devices"].as_u64().unwrap();
    assert_eq!(finding(&diagnosis, "CUDA")["ok"], gpus == 0 || used > 0);
    let levels = finding(&diagnosis, "levels")["found"].as_str().unwrap();
    assert!(levels.starts_with("tessera-human"), "{levels}");
}

/// PATH finds an engine of this name first, which works or does not.
#[cfg(unix)]
#[test]
fn the_judge_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/faulty_engine.py");
    std::os::unix::fs::symlink(engine, folder.path().join("stockfish")).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let folders = std::iter::once(folder.path().to_owned()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).unwrap();
    for (fault, said) in [
        ("crash", "scores reviews"),
        ("mute", "brew install stockfish"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
            .env("PATH", &path)
            .env("ENGINE", env!("CARGO_BIN_EXE_tessera"))
            .env("FAULT", fault)
            .args(["doctor", "--json"])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let diagnosis: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let judge = finding(&diagnosis, "judge");
        assert_eq!(judge["ok"], true);
        assert!(judge["found"].as_str().unwrap().contains(said), "{judge}");
    }
}

#[test]
fn an_invalid_network_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.pt");
    fs::write(&file, "no TorchScript").unwrap();
    let file = file.to_str().unwrap();
    let diagnosis = diagnosis(&["--net", file]);
    let network = finding(&diagnosis, "network");
    assert_eq!(network["ok"], false);
    assert!(network["found"].as_str().unwrap().contains(file));
    assert!(diagnosis["network"].is_null());

    let output = doctor(&["--net", file]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success());
    assert!(
        said.lines()
            .any(|line| line.starts_with("wrong") && line.contains(file))
    );
    assert!(said.contains("fix: "));
}

/// Every kind of CPU has these ways. The network's own code with libtorch's operators is the
/// reference, as on a GPU.
#[test]
fn all_ways_are_compared_on_a_device_that_is_named() {
    let diagnosis = diagnosis(&["--device", "cpu", "--net", "tessera-xs"]);
    let [comparison] = &diagnosis["comparisons"].as_array().unwrap()[..] else {
        panic!("{diagnosis}")
    };
    assert_eq!(comparison["network"], "tessera-xs");
    assert_eq!(comparison["reference"], "file");
    assert_eq!(comparison["batches"], serde_json::json!([1, 32]));
    let ways = comparison["ways"].as_array().unwrap();
    for (way, precision, most) in [
        ("kernels", "f32", 1e-6),
        ("operators", "f32", 1e-4),
        ("operators", "fp16", 0.01),
        ("encoder", "fp16", 0.01),
        ("file", "f32", 0.0),
    ] {
        let mut ways = ways.iter();
        let found = ways.find(|it| it["way"] == way && it["precision"] == precision);
        let found = found.unwrap_or_else(|| panic!("{way} in {precision}: {comparison}"));
        assert!(found["refused"].is_null(), "{found}");
        for numbers in ["differences", "speeds"] {
            assert_eq!(found[numbers].as_array().unwrap().len(), 2, "{found}");
        }
        let differences = found["differences"].as_array().unwrap().iter();
        assert!(
            differences
                .map(|it| it.as_f64().unwrap())
                .all(|it| it <= most),
            "{found}"
        );
        let speeds = found["speeds"].as_array().unwrap().iter();
        assert!(
            speeds.map(|it| it.as_f64().unwrap()).all(|it| it > 0.0),
            "{found}"
        );
    }

    let output = doctor(&["--device", "cuda:99"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success());
    assert_eq!(
        said.lines()
            .filter(|line| line.contains("it does not run: "))
            .count(),
        1
    );
    assert!(!said.contains("differences from"), "{said}");
}
