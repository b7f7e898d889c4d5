//! Tests a run's report, and changes to its configuration.

use crate::train::workplace::{fail, metrics, run, succeed, train, workplace};
use std::path::Path;
use std::process::Command;

#[test]
fn keys_are_set_on_the_command_line() {
    let workplace = workplace(4);
    let folder = workplace.path();
    let sets = ["--set", "batch=32", "--set", "optimizer.kind=nadam"];
    succeed(run(folder, "run").args(sets));
    let lines = metrics(folder, "run");
    assert_eq!(lines.last().unwrap()["step"], 4);
    let samples = lines
        .iter()
        .filter_map(|line| line["samples"].as_u64())
        .max();
    assert_eq!(samples, Some(4 * 32));
    let config = std::fs::read_to_string(folder.join("run/config.toml")).unwrap();
    assert!(config.contains("kind = \"nadam\""), "{config}");
    for (set, told) in [
        ("optimizer.beta=1", "did you mean `beta1`?"),
        ("data.shards.3.rate=0.5", "data.shards.3.rate"),
        ("keep.newest=0", "keep.newest"),
        ("guard.deviations=inf", "guard.deviations"),
    ] {
        let errors = fail(run(folder, "wrong").args(["--set", set]));
        assert!(errors.contains(told), "{errors}");
    }
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn runs_are_shown_side_by_side() {
    let workplace = workplace(20);
    let folder = workplace.path();
    succeed(&mut run(folder, "one"));
    succeed(run(folder, "other").args(["--set", "schedule.peak=0.001"]));
    let lines = metrics(folder, "one");
    let validation = lines.iter().rfind(|line| line["split"] == "validation");
    let calibration = &validation.unwrap()["calibration"];
    for name in ["win", "draw", "loss", "q"] {
        let bins = calibration[name].as_array().unwrap();
        assert_eq!(bins.len(), 10);
        for bin in bins.iter().filter(|bin| !bin.is_null()) {
            let number = |place: usize| bin[place].as_f64().unwrap();
            assert!(
                number(0) > 0.0 && (-1.0..=1.0).contains(&number(2)),
                "{bin}"
            );
        }
    }

    succeed(train(folder).args(["report", "one", "other", "-o", "report.html"]));
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    for part in [
        "\"name\":\"one\"",
        "\"name\":\"other\"",
        "\"games\":60",
        "\"peak\":0.001",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // Missing data is reported only once, even if several runs used it.
    std::fs::remove_file(folder.join("games.shard")).unwrap();
    let config = folder.join("other/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let shard = "[[data.shards]]\npath = \"games.shard\"";
    assert!(text.contains(shard), "{text}");
    let second = "[[data.shards]]\npath = \"none.shard\"";
    std::fs::write(
        &config,
        text.replace(shard, &format!("{shard}\n\n{second}")),
    )
    .unwrap();
    let mut report = train(folder);
    let told = report.args(["report", "one", "other", "-o", "report.html"]);
    let told = String::from_utf8(told.output().unwrap().stderr).unwrap();
    assert_eq!(told.matches("games.shard").count(), 1, "{told}");
    assert_eq!(told.matches("No such file").count(), 1, "{told}");
    let errors = fail(train(folder).args(["report", "none", "-o", "x.html"]));
    assert!(errors.contains("none"), "{errors}");
}

#[test]
#[ignore = "needs TensorBoard: runs in tools/test --all"]
fn tensorboard_reads_the_metrics() {
    let Some(python) = crate::python::with_or_skip("tensorboard") else {
        return;
    };
    let workplace = workplace(20);
    let folder = workplace.path();
    // There are two sessions, and the second one rolls back the end of the first.
    succeed(&mut run(folder, "run"));
    std::fs::remove_file(folder.join("run/checkpoints/step-000000020.safetensors")).unwrap();
    succeed(&mut run(folder, "run"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/events.py");
    let read = succeed(Command::new(python).arg(script).arg(folder.join("run")));
    let read: serde_json::Value = serde_json::from_str(&read).unwrap();
    let lines = metrics(folder, "run");
    for (split, name) in [("train", "policy"), ("validation", "q"), ("train", "rate")] {
        let ours: Vec<(u64, f64)> = lines
            .iter()
            .filter(|line| line["split"] == split)
            .map(|line| (line["step"].as_u64().unwrap(), line[name].as_f64().unwrap()))
            .collect();
        let theirs = read[format!("{split}/{name}")].as_array().unwrap();
        let theirs: Vec<(u64, f64)> = theirs
            .iter()
            .map(|point| (point[0].as_u64().unwrap(), point[1].as_f64().unwrap()))
            .collect();
        assert_eq!(ours.len(), theirs.len(), "{split}/{name}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours.0, theirs.0);
            assert!(
                (ours.1 - theirs.1).abs() <= 1e-6 * ours.1.abs(),
                "{ours:?} {theirs:?}"
            );
        }
    }
}
