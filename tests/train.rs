//! The trainer from end to end, through its binary: games to a shard, a shard
//! to a network, a kill in between.

use shakmaty::san::SanPlus;
use shakmaty::{Chess, Move, Position};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Games whose players hurry to the far side of the board, which a network can
/// learn: one of the two longest strides is drawn. Every move is scored as an
/// engine would, at random.
fn games(count: usize) -> String {
    let mut state = 1u64;
    let mut draw = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize
    };
    let mut text = String::new();
    for round in 0..count {
        let result = ["1-0", "0-1", "1/2-1/2"][round % 3];
        write!(
            text,
            "[Event \"test\"]\n[Round \"{round}\"]\n[Result \"{result}\"]\n\n"
        )
        .unwrap();
        let mut position = Chess::default();
        for ply in 0..60 {
            let mut moves = position.legal_moves();
            if moves.is_empty() {
                break;
            }
            let turn = position.turn();
            moves.sort_by_key(|mv| (turn.relative_rank(mv.to().rank()), mv.to(), mv.from()));
            let mv: Move = moves[moves.len() - 1 - draw() % moves.len().min(2)];
            let number = position.fullmoves();
            let dots = if position.turn().is_white() {
                "."
            } else {
                "..."
            };
            let san = SanPlus::from_move_and_play_unchecked(&mut position, mv);
            let pawns = (draw() % 600) as f64 / 100.0 - 3.0;
            write!(text, "{number}{dots} {san} {{[%eval {pawns:.2},{ply}]}} ").unwrap();
        }
        write!(text, "{result}\n\n").unwrap();
    }
    text
}

fn train(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_train"));
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// A folder with a shard and a configuration of a tiny network.
fn workplace(steps: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("games.pgn"), games(60)).unwrap();
    succeed(train(folder.path()).args([
        "pack",
        "games.pgn",
        "-o",
        "games.shard",
        "--evals",
        "chooser",
    ]));
    let config = format!(
        r#"
name = "tiny"
steps = {steps}
batch = 64
log_every = 1
validate_every = 10
checkpoint_every = 5
[model]
layers = 2
width = 16
heads = 2
feed_forward = 16
position = {{ kind = "gab", compress = 2, hidden = 8, generator = 4 }}
[data]
group = 1000
validation = 0.2
shards = [{{ path = "games.shard" }}]
[optimizer]
kind = "muon"
[schedule]
peak = 0.003
warmup = 5
"#
    );
    std::fs::write(folder.path().join("tiny.toml"), config).unwrap();
    folder
}

fn run(folder: &Path, output: &str) -> Command {
    let mut command = train(folder);
    command.args([
        "run",
        "--config",
        "tiny.toml",
        "--device",
        "cpu",
        "--threads",
        "1",
        "-o",
        output,
    ]);
    command
}

/// The lines of a run's metrics, without what depends on the clock.
fn metrics(folder: &Path, output: &str) -> Vec<serde_json::Value> {
    let text =
        std::fs::read_to_string(folder.join(output).join("metrics.jsonl")).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|mut line| {
            let fields = line.as_object_mut().unwrap();
            fields.remove("seconds");
            fields.remove("samples_per_second");
            line
        })
        .collect()
}

#[test]
fn a_killed_run_goes_on_as_if_nothing_had_happened() {
    let workplace = workplace(40);
    let folder = workplace.path();
    succeed(&mut run(folder, "whole"));
    let whole = metrics(folder, "whole");
    assert_eq!(
        whole.iter().filter(|line| line["split"] == "train").count(),
        40
    );

    let mut killed = run(folder, "killed")
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while metrics(folder, "killed").len() < 13 && killed.try_wait().unwrap().is_none() {
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "the run does not get on"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    succeed(&mut run(folder, "killed"));
    assert_eq!(metrics(folder, "killed"), whole);

    let losses = |name: &str| -> Vec<f64> {
        let lines = whole.iter().filter(|line| line["split"] == "train");
        lines.map(|line| line[name].as_f64().unwrap()).collect()
    };
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    for name in ["policy", "q"] {
        let losses = losses(name);
        let (first, last) = (mean(&losses[..5]), mean(&losses[35..]));
        assert!(last < 0.8 * first, "{name}: from {first} to {last}");
    }
    assert!(folder.join("whole/metrics.svg").exists());
}

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

/// The accuracy of a run's last validation, and the loss of its policy.
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
        // One step so small that it changes nothing.
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
fn every_recipe_trains() {
    let workplace = workplace(12);
    let folder = workplace.path();
    succeed(&mut run(folder, "teacher"));
    succeed(train(folder).args(["export", "teacher", "-o", "teacher.pt"]));
    let config = std::fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let optimistic = config.replace("[data]", "optimistic_policy = true\n[data]");
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
        format!("{optimistic}\n[loss]\npolicy_optimistic = 1.0\nlabel_smoothing = 0.05"),
    ];
    for (number, recipe) in recipes.iter().enumerate() {
        std::fs::write(folder.join("tiny.toml"), recipe).unwrap();
        let output = format!("recipe-{number}");
        succeed(&mut run(folder, &output));
        let lines = metrics(folder, &output);
        let policy = |line: &&serde_json::Value| line["split"] == "train";
        let first = lines.iter().find(policy).unwrap()["policy"]
            .as_f64()
            .unwrap();
        let last = lines.iter().rev().find(policy).unwrap()["policy"]
            .as_f64()
            .unwrap();
        assert!(last < first, "{recipe}: {first} to {last}");
        assert_eq!(lines[0]["policy_carried"], 1.0);
        let is_taught = recipe.contains("teacher.pt");
        assert_eq!(lines[0].get("teacher_policy").is_some(), is_taught);
    }
    succeed(train(folder).args(["export", "recipe-5", "-o", "hopeful.pt"]));
    let metadata = tessera::nn::describe(Some(&folder.join("hopeful.pt"))).unwrap();
    assert_eq!(metadata.outputs.last().unwrap(), "policy_optimistic");

    for (recipe, named) in [
        (optimistic.clone(), "policy_optimistic"),
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
