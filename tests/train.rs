//! The trainer from end to end, through its binary: from games to a shard, from a shard to a
//! network, and failures along the way.

mod ablation;
pub mod diffusion;
mod exact;
mod families;
pub mod games;
mod kept;
mod merging;
mod ratings;
mod recovery;
mod replicas;
mod report;
mod traces;
pub mod workplace;
pub mod worlds;

use std::path::Path;
use workplace::{fail, metrics, run, run_on, succeed, train, workplace};

#[test]
fn a_run_is_measured_and_exported() {
    let workplace = workplace(10);
    let folder = workplace.path();
    succeed(&mut run(folder, "run"));
    let measured = succeed(train(folder).args(["validate", "run", "--json", "--device", "cpu"]));
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
    // Without --json, the calibration is explained, and summed up in a line per prediction.
    let said = succeed(train(folder).args(["validate", "run", "--device", "cpu"]));
    let (_, explained) = said.split_once("\nCalibration: ").unwrap();
    for name in ["win", "draw", "loss", "q"] {
        let start = format!("calibration.{name} ");
        let lines = explained.lines().filter(|line| line.starts_with(&start));
        let numbers: Vec<f64> = lines
            .map(|line| line[start.len()..].trim().parse().unwrap())
            .collect();
        let bins = measured["calibration"][name].as_array().unwrap();
        let number = |bin: &serde_json::Value, place: usize| bin[place].as_f64().unwrap();
        let filled = bins.iter().filter(|bin| !bin.is_null());
        let weight: f64 = filled.clone().map(|bin| number(bin, 0)).sum();
        let error = filled.map(|bin| number(bin, 0) * (number(bin, 1) - number(bin, 2)).abs());
        let expected = error.sum::<f64>() / weight;
        assert!(
            numbers.len() == 1 && (numbers[0] - expected).abs() < 1e-4,
            "{said}"
        );
    }
    succeed(train(folder).args(["export", "run", "-o", "tiny.pt", "--name", "tiny-net"]));
    let metadata = tessera::inference::describe(
        Some(&folder.join("tiny.pt")),
        tessera::backend::CodePolicy::Checked,
    )
    .unwrap();
    assert_eq!(metadata.name, "tiny-net");
    assert_eq!(metadata.training["samples"], 640);

    // Exporting a network file rewrites it unchanged, and creates the folder.
    succeed(train(folder).args(["export", "tiny.pt", "-o", "nets/again.pt"]));
    let again = tessera::inference::describe(
        Some(&folder.join("nets/again.pt")),
        tessera::backend::CodePolicy::Checked,
    )
    .unwrap();
    assert_eq!(again, metadata);
    let refused = train(folder)
        .args(["export", "tiny.pt", "--last", "-o", "last.pt"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--last"));

    // The exported file gives the same measurements as its run, apart from its half precision.
    let words = ["validate", "tiny.pt", "--device", "cpu", "--json"];
    let refused = train(folder).args(words).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("give a configuration"));
    let exported = succeed(train(folder).args(words).args(["tiny.toml"]));
    let exported: serde_json::Value =
        serde_json::from_str(exported.lines().next_back().unwrap()).unwrap();
    for name in ["policy", "q", "moves_left"] {
        let (file, run) = (
            exported[name].as_f64().unwrap(),
            measured[name].as_f64().unwrap(),
        );
        assert!((file - run).abs() < 1e-2 * run, "{name}: {file}, not {run}");
    }
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
        (config.replace("= 64", "= = 64"), "TOML parse error"),
        (config.replace("\"tiny\"", "''"), "`name` is empty"),
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
        assert!(errors.matches("TOML parse error").count() <= 1, "{errors}");
    }
    let [trainer, engine] = [
        env!("CARGO_BIN_EXE_tessera-train"),
        env!("CARGO_BIN_EXE_tessera"),
    ];
    for (program, command, option) in [
        (trainer, "export run -o x.pt", "--name"),
        (trainer, "export run -o x.pt", "--licence"),
        (trainer, "merge one two -o x.pt", "--name"),
        (engine, "import net.pb.gz -o x.pt", "--name"),
    ] {
        let mut refused = std::process::Command::new(program);
        refused.args(command.split(' ')).args([option, ""]);
        let output = refused.current_dir(folder).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{command} {option}: {errors}"
        );
    }
    let output = train(folder)
        .args(["export", "nothing", "-o", "x.pt"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing"));
}

#[test]
fn missing_training_or_validation_games_are_reported_once() {
    let workplace = workplace(4);
    let folder = workplace.path();
    let config = std::fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let keep = |share: &str| {
        let text = config
            .replace("validation = 0.2", &format!("validation = {share}"))
            .replace("validate_every = 10", "validate_every = 1");
        std::fs::write(folder.join("tiny.toml"), text).unwrap();
    };
    let said = |share: &str, output: &str| {
        keep(share);
        let done = run(folder, output).output().unwrap();
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{errors}");
        errors
    };
    let nothing = "no validation games: `data.validation`";
    let told = said("1e-9", "few");
    assert_eq!(told.matches(nothing).count(), 1, "{told}");
    assert!(told.contains("; on cpu, step 0 of 4, into few"), "{told}");
    let lines = metrics(folder, "few");
    assert!(lines.iter().all(|line| line["split"] == "train"));
    // If no validation is requested, none is run.
    assert!(!said("0.0", "none").contains("validat"));
    for output in ["few", "none"] {
        let told = fail(train(folder).args(["validate", output, "--device", "cpu"]));
        assert_eq!(told.matches(nothing).count(), 1, "{told}");
    }
    keep("0.999");
    let told = fail(&mut run(folder, "all"));
    assert!(
        told.contains("or `data.validation`, which is 0.999"),
        "{told}"
    );
}

#[test]
fn a_run_resumed_with_changes_reports_them() {
    let workplace = workplace(3);
    let folder = workplace.path();
    let said = |change: &[&str]| {
        let done = run(folder, "run").args(change).output().unwrap();
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{errors}");
        errors
    };
    assert!(!said(&[]).contains("changed"));
    assert!(!said(&["--steps", "4"]).contains("changed"));
    let told = said(&[
        "--steps",
        "5",
        "--set",
        "batch=32",
        "--set",
        "optimizer.kind=sgd",
        "--set",
        "seed=3",
    ]);
    let expected = "resuming with a changed configuration: batch is 32 (was 64), optimizer.kind \
        is \"sgd\" (was \"muon\"); weights and step are kept; ";
    assert!(told.contains(expected), "{told}");
    assert!(
        told.contains("ignored on resume: seed is 3 (was 0)"),
        "{told}"
    );
}

/// A reader such as `head` has closed the output.
#[test]
fn a_closed_pipe_is_not_a_failure() {
    let workplace = workplace(5);
    let folder = workplace.path();
    succeed(&mut run(folder, "run"));
    let commands: [&[&str]; 6] = [
        &[
            "pack",
            "games.pgn",
            "-o",
            "again.shard",
            "--evals",
            "chooser",
        ],
        &["stats", "games.shard"],
        &["stats", "games.shard", "--json"],
        &["size", "--preset", "cf-6m-gab"],
        &["validate", "run", "--device", "cpu"],
        &["export", "run", "-o", "tiny.pt"],
    ];
    for words in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = train(folder).args(words).stdout(writer).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {errors}");
        assert!(!errors.contains("panicked"), "{words:?}: {errors}");
    }
    assert!(folder.join("tiny.pt").is_file());
}

#[test]
fn a_model_needs_no_position_encoding() {
    let workplace = workplace(2);
    let folder = workplace.path();
    let text = std::fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("position"));
    let text: Vec<&str> = lines.collect();
    std::fs::write(folder.join("tiny.toml"), text.join("\n")).unwrap();
    succeed(&mut run(folder, "run"));
    let config = std::fs::read_to_string(folder.join("run/config.toml")).unwrap();
    assert!(config.contains("kind = \"gab\""), "{config}");
}

#[test]
fn describe_gives_the_papers_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let size = |preset: &str| -> serde_json::Value {
        let out = succeed(train(folder.path()).args(["size", "--preset", preset, "--json"]));
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

/// Returns the accuracy and the policy loss of a run's last validation.
fn validated(folder: &Path, output: &str) -> (f64, f64) {
    let lines = metrics(folder, output);
    let mut validations = lines.iter().rev();
    let last = validations
        .find(|line| line["split"] == "validation")
        .unwrap();
    let number = |name: &str| last[name].as_f64().unwrap();
    (number("policy_accuracy"), number("policy"))
}

#[test]
fn runs_start_from_networks_and_checkpoints_and_grow() {
    let workplace = workplace(60);
    let folder = workplace.path();
    succeed(&mut run(folder, "small"));
    succeed(train(folder).args(["export", "small", "-o", "small.pt", "--precision", "f32"]));
    let (_, learned) = validated(folder, "small");

    let config = std::fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let with = |init: &str, model: [(&str, &str); 2]| {
        // Take a single step, too small to change anything.
        let text = config
            .replace("steps = 60", &format!("steps = 1\ninit = \"{init}\""))
            .replace("peak = 0.003", "peak = 1e-9")
            .replace(model[0].0, model[0].1)
            .replace(model[1].0, model[1].1);
        std::fs::write(folder.join("tiny.toml"), text).unwrap();
    };
    let same = [("", ""); 2];
    let grown = [("layers = 2", "layers = 3"), ("width = 16", "width = 32")];
    for (output, init, model) in [
        ("again", "small.pt", same),
        ("further", "small", same),
        ("grown", "small.pt", grown),
    ] {
        with(init, model);
        succeed(&mut run(folder, output));
        let (_, loss) = validated(folder, output);
        assert!(
            (loss - learned).abs() < 0.01,
            "{output}: {loss}, not {learned}"
        );
        // A network's sample count includes all of its runs.
        succeed(train(folder).args(["export", output, "-o", "later.pt"]));
        let metadata = tessera::inference::describe(
            Some(&folder.join("later.pt")),
            tessera::backend::CodePolicy::Checked,
        )
        .unwrap();
        assert_eq!(metadata.training["samples"], 61 * 64);
    }
    with("small.pt", [("layers = 2", "layers = 1"), ("", "")]);
    let output = run(folder, "shrunk").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("small.pt") && errors.contains("layers"),
        "{errors}"
    );
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn every_recipe_trains() {
    let workplace = workplace(30);
    let folder = workplace.path();
    succeed(&mut run(folder, "teacher"));
    succeed(train(folder).args(["export", "teacher", "-o", "teacher.pt"]));
    let config = std::fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let recipes = [
        config.replace("\"muon\"", "\"soap\"\nsoap_frequency = 3"),
        config.replace("batch = 64", "batch = 64\naccumulate = 3"),
        config.replace(
            "batch = 64",
            "batch = 64\naverage = { kind = \"stochastic\", every = 3, most = 2 }",
        ),
        config.replace(
            "[optimizer]",
            "[augment]\nmirror = 0.5\n[distillation]\nnet = \"teacher.pt\"\n[optimizer]",
        ),
        config.replace("batch = 64", "batch = 64\nfrozen = [\"embedding.*\"]"),
        format!("{config}\n[loss]\nlabel_smoothing = 0.05"),
    ];
    for (number, recipe) in recipes.iter().enumerate() {
        std::fs::write(folder.join("tiny.toml"), recipe).unwrap();
        let output = format!("recipe-{number}");
        succeed(&mut run_on(folder, &output, 2));
        let lines = metrics(folder, &output);
        let split = lines.iter().filter(|line| line["split"] == "train");
        let losses: Vec<f64> = split.map(|line| line["policy"].as_f64().unwrap()).collect();
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
        let (first, last) = (mean(&losses[..5]), mean(&losses[25..]));
        assert!(last < 0.97 * first, "{recipe}: {first} to {last}");
        assert_eq!(lines[0]["target_counts"]["policy"], 64.0);
        let is_taught = recipe.contains("teacher.pt");
        assert_eq!(lines[0].get("teacher_policy").is_some(), is_taught);
    }
    for (recipe, named) in [
        (
            config.replace("[data]", "optimistic_policy = true\n[data]"),
            "`optimistic_policy = true` was removed",
        ),
        (
            format!("{config}\n[loss]\npolicy_optimistic = 1.0"),
            "`policy_optimistic = 1.0` was removed",
        ),
        (
            config.replace("[data]", "[data]\nfocus = { least = 0.2, slope = 2.0 }"),
            "unknown field `focus`",
        ),
        (
            config.replace("batch = 64", "batch = 64\nfrozen = [\"body.*\"]"),
            "body.*",
        ),
        (
            config.replace("[optimizer]", "[augment]\nmirror = 2.0\n[optimizer]"),
            "augment.mirror",
        ),
        (
            config.replace("batch = 64", "batch = 64\naccumulate = 0"),
            "accumulate",
        ),
        (
            config.replace(
                "[optimizer]",
                "[distillation]\nnet = \"none.pt\"\n[optimizer]",
            ),
            "none.pt",
        ),
        (
            config.replace("batch = 64", "batch = 64\ninit = \"none.pt\""),
            "none.pt",
        ),
    ] {
        std::fs::write(folder.join("tiny.toml"), &recipe).unwrap();
        let output = run(folder, "wrong").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains(named),
            "{errors}"
        );
    }
}
