//! Tests that variants are trained and compared.

use crate::train::workplace::{fail, succeed, train, workplace};
use std::path::Path;
use std::process::Command;

/// Prepares an ablation that compares two widths of the tiny network.
fn prepare(folder: &Path) {
    let base = std::fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let base = base.replace('[', "[base.").replace("[base.{", "[{");
    let text = format!(
        r#"
title = "widths"
metrics = ["policy", "policy_accuracy"]
[base]
{base}
[[variants]]
name = "narrow"
reference = {{ policy = 3.0 }}
[[variants]]
name = "wide"
set = {{ "model.width" = 32 }}
reference = {{ policy = 2.5 }}
"#
    );
    std::fs::write(folder.join("ablation.toml"), text).unwrap();
}

fn ablate(folder: &Path, output: &str) -> Command {
    let mut command = train(folder);
    let device = ["--device", "cpu", "--threads", "1"];
    command
        .args(["ablate", "ablation.toml", "-o", output])
        .args(device);
    command
}

#[test]
fn variants_are_trained_once_and_compared() {
    let workplace = workplace(6);
    let folder = workplace.path();
    prepare(folder);
    let only = succeed(ablate(folder, "out").args(["--only", "wide"]));
    assert!(
        only.contains("| wide ") && !only.contains("| narrow "),
        "{only}"
    );
    let checkpoint = folder.join("out/wide/checkpoints/step-000000006.safetensors");
    let written = |path: &Path| std::fs::metadata(path).unwrap().modified().unwrap();
    let then = written(&checkpoint);

    let table = succeed(&mut ablate(folder, "out"));
    assert_eq!(
        written(&checkpoint),
        then,
        "a finished variant is left alone"
    );
    for part in [
        "| narrow ",
        "| wide ",
        "| 2.5000 (-0.5000) ",
        "policy_accuracy",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let json = succeed(ablate(folder, "out").arg("--json"));
    let json: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row["steps"], 6);
        assert!(row["measured"]["policy"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert!(rows[0]["parameters"].as_i64() < rows[1]["parameters"].as_i64());

    let errors = fail(ablate(folder, "out").args(["--only", "deep"]));
    assert!(errors.contains("narrow, wide"), "{errors}");
}

#[test]
fn seeds_give_intervals() {
    let workplace = workplace(6);
    let folder = workplace.path();
    prepare(folder);
    let json = succeed(ablate(folder, "out").args(["--seeds", "2", "--json"]));
    let json: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    for row in json["rows"].as_array().unwrap() {
        let values = row["by_seed"]["policy"].as_array().unwrap();
        let [one, other] = values.as_slice() else {
            panic!("{row}");
        };
        assert_ne!(one, other, "the seeds differ");
        let mean = (one.as_f64().unwrap() + other.as_f64().unwrap()) / 2.0;
        assert!((row["measured"]["policy"].as_f64().unwrap() - mean).abs() < 1e-9);
    }
    let seed = |run: &str| {
        let config = std::fs::read_to_string(folder.join("out").join(run).join("config.toml"));
        let config: toml::Table = config.unwrap().parse().unwrap();
        (config["seed"].clone(), config["data"]["seed"].clone())
    };
    assert_eq!(seed("wide"), (0.into(), 0.into()));
    assert_eq!(seed("wide.1"), (1.into(), 1.into()));
    let table = succeed(ablate(folder, "out").args(["--seeds", "2"]));
    let wide = table
        .lines()
        .find(|line| line.starts_with("| wide "))
        .unwrap();
    assert_eq!(
        wide.matches(" ± ").count(),
        4,
        "two metrics with differences: {wide}"
    );
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn variants_get_equal_time() {
    let workplace = workplace(6);
    let folder = workplace.path();
    prepare(folder);
    succeed(ablate(folder, "out").args(["--time", "0.05m"]));
    let steps = std::fs::read_to_string(folder.join("out/steps.json")).unwrap();
    let steps: serde_json::Value = serde_json::from_str(&steps).unwrap();
    for variant in ["narrow", "wide"] {
        let fitted = steps[variant]["steps"].as_u64().unwrap();
        let config = folder.join("out").join(variant).join("config.toml");
        let config = std::fs::read_to_string(config).unwrap();
        assert!(
            config.contains(&format!("\nsteps = {fitted}\n")),
            "{config}"
        );
    }
}
