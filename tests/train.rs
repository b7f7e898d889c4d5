//! The trainer from end to end, through its binary: games to a shard, a shard
//! to a network, and all that may go wrong in between.

#[path = "train/ablation.rs"]
mod ablation;
#[path = "train/recovery.rs"]
mod recovery;
#[path = "train/report.rs"]
mod report;
#[path = "train/workplace.rs"]
mod workplace;

use workplace::{metrics, run, succeed, train, workplace};

#[test]
fn a_run_is_measured_and_exported() {
    let workplace = workplace(10);
    let folder = workplace.path();
    succeed(&mut run(folder, "run"));
    let measured = succeed(train(folder).args(["eval", "run", "--json", "--device", "cpu"]));
    let measured: serde_json::Value =
        serde_json::from_str(measured.lines().next_back().unwrap()).unwrap();
    let written = metrics(folder, "run");
    let validated = written
        .iter()
        .rev()
        .find(|line| line["split"] == "validation")
        .unwrap();
    for name in ["policy", "q", "moves_left", "policy_accuracy"] {
        let (now, then) = (
            measured[name].as_f64().unwrap(),
            validated[name].as_f64().unwrap(),
        );
        assert!((now - then).abs() < 1e-5, "{name}: {now}, then {then}");
    }
    succeed(train(folder).args(["export", "run", "-o", "tiny.pt", "--name", "tiny-net"]));
    let metadata = tessera::nn::describe(Some(&folder.join("tiny.pt"))).unwrap();
    assert_eq!(metadata.name, "tiny-net");
    assert_eq!(metadata.training["samples"], 640);
}

#[test]
fn mistakes_get_one_line() {
    let workplace = workplace(10);
    let folder = workplace.path();
    let config = std::fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let cases = [
        (config.replace("heads = 2", "heads = 3"), "model.heads"),
        (config.replace("batch = 64", "batch = 0"), "batch"),
        (config.replace("warmup", "warm_up"), "warm_up"),
        (config.replace("games.shard", "none.shard"), "none.shard"),
    ];
    for (text, named) in cases {
        std::fs::write(folder.join("tiny.toml"), text).unwrap();
        let mut wrong = run(folder, "wrong");
        let output = wrong.env("RUST_BACKTRACE", "1").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        let told = errors.lines().any(|line| line.starts_with("error: "));
        assert!(
            told && errors.contains(named) && !errors.contains("stack backtrace"),
            "{errors}"
        );
    }
    let output = train(folder)
        .args(["export", "nothing", "-o", "x.pt"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing"));
}

#[test]
fn describe_gives_the_papers_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let size = |preset: &str| -> serde_json::Value {
        let out = succeed(train(folder.path()).args(["describe", "--preset", preset, "--json"]));
        serde_json::from_str(out.lines().next_back().unwrap()).unwrap()
    };
    let close = |value: &serde_json::Value, target: f64, tolerance: f64| {
        (value.as_f64().unwrap() / target - 1.0).abs() <= tolerance
    };
    for preset in ["cf-240m-shaw", "cf-240m-gab"] {
        let size = size(preset);
        assert!(close(&size["parameters"], 243e6, 0.02), "{preset}: {size}");
        assert!(close(&size["macs"], 12.8e9, 0.02), "{preset}: {size}");
    }
    for preset in ["cf-6m-shaw", "cf-6m-gab"] {
        let size = size(preset);
        assert!(close(&size["parameters"], 6e6, 0.1), "{preset}: {size}");
        assert!(close(&size["macs"], 214e6, 0.02), "{preset}: {size}");
    }
}
