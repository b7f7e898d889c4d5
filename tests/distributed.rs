//! Training in several processes, over loopback and through the real binary.

use crate::support::{TRAIN, games, printed, succeed, train, wait_until};
use crate::train::workplace::{assert_same_metrics, metrics};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tch::{Kind, Tensor};
use tessera::train::Checkpoint;

/// Creates a folder with a shard of real games and the configuration of a tiny network whose
/// parameters still fill several buckets.
fn workplace(steps: u64, optimizer: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let games = games("tcec-standard.pgn");
    let arguments = [
        "pack",
        games.to_str().unwrap(),
        "-o",
        "a.shard",
        "--evals",
        "chooser",
    ];
    succeed(train(folder.path(), &arguments));
    let config = format!(
        r#"
name = "tiny"
steps = {steps}
batch = 24
log_every = 1
validate_every = 4
checkpoint_every = 2
validation_samples = 100
[keep]
newest = 100
[model]
layers = 1
width = 32
heads = 2
feed_forward = 32
position = {{ kind = "gab", compress = 4, hidden = 256, generator = 256 }}
[data]
group = 1000
spread = 1
validation = 0.2
shards = [{{ path = "a.shard" }}]
[augment]
mirror = 0.5
[optimizer]
{optimizer}
"#
    );
    std::fs::write(folder.path().join("tiny.toml"), config).unwrap();
    folder
}

const SGD: &str = "kind = \"sgd\"\nclip_norm = 0\n[schedule]\npeak = 0.05\nwarmup = 0";
const NADAM: &str = "kind = \"nadam\"\n[schedule]\npeak = 0.003\nwarmup = 5";

const RUN: [&str; 6] = ["run", "tiny.toml", "--device", "cpu", "--threads", "1"];

/// Starts a run of `size` processes.
fn start(folder: &Path, output: &str, size: usize) -> Vec<Child> {
    start_each(folder, output, size, |_| &[])
}

/// Starts a run of `size` processes, each with its own arguments.
fn start_each(
    folder: &Path,
    output: &str,
    size: usize,
    own: fn(usize) -> &'static [&'static str],
) -> Vec<Child> {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let processes = (0..size).map(|rank| {
        train(
            folder,
            &[RUN.as_slice(), &["-o", output], own(rank)].concat(),
        )
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", size.to_string())
        .env("LOCAL_RANK", rank.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", &port)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
    });
    processes.collect()
}

fn finish(processes: Vec<Child>) {
    for process in processes {
        printed(process.wait_with_output().unwrap());
    }
}

fn checkpoint(folder: &Path, output: &str, step: u64) -> Checkpoint {
    let file = format!("step-{step:09}.safetensors");
    Checkpoint::read(&folder.join(output).join("checkpoints").join(file)).unwrap()
}

/// Returns whether two lines of metrics agree to within `tolerance`, as they do when sums are
/// accumulated in a different order.
fn agree(left: &serde_json::Value, right: &serde_json::Value, tolerance: f64) -> bool {
    use serde_json::Value;
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let (left, right) = (left.as_f64().unwrap(), right.as_f64().unwrap());
            (left - right).abs() <= tolerance * left.abs().max(1.0)
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| {
                    right.get(name).is_some_and(|other| {
                        name == "calibration" || agree(value, other, tolerance)
                    })
                })
        }
        (left, right) => left == right,
    }
}

fn largest(tensor: &Tensor) -> f64 {
    tensor.abs().max().to_kind(Kind::Double).double_value(&[])
}

#[test]
fn several_processes_take_the_steps_of_one() {
    let workplace = workplace(4, SGD);
    let folder = workplace.path();
    for size in [1, 2, 4] {
        finish(start(folder, &size.to_string(), size));
    }
    let steps = [0, 2, 4];
    let of = |size: usize| steps.map(|step| checkpoint(folder, &size.to_string(), step));
    let alone = of(1);
    // The learning rate is 0.05 in both steps before the second checkpoint.
    let moved = |run: &[Checkpoint; 3]| (&run[0].parameters - &run[1].parameters) / 0.05;
    for size in [2, 4] {
        let run = of(size);
        let (gradient, joint) = (moved(&alone), moved(&run));
        let off = largest(&(&gradient - &joint));
        assert!(largest(&gradient) > 0.1);
        assert!(off <= 1e-5 * largest(&gradient).max(1.0), "{size}: {off}");
        for (one, several) in alone.iter().zip(&run) {
            let off = largest(&(&one.parameters - &several.parameters));
            assert!(off <= 1e-5, "{size} processes are off by {off}");
            assert_eq!(one.state.cursor, several.state.cursor);
            assert_eq!(one.state.samples, several.state.samples);
        }
        let lines = metrics(folder, &size.to_string());
        assert_eq!(lines.len(), 5);
        for (line, expected) in lines.iter().zip(metrics(folder, "1")) {
            assert!(agree(line, &expected, 1e-4), "{line}\n{expected}");
        }
    }
}

/// Waits until `lines` lines of metrics have been written.
fn wait_for(folder: &Path, output: &str, lines: usize) {
    let what = format!("{output} has {lines} lines of metrics");
    wait_until(&what, || metrics(folder, output).len() >= lines);
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn when_one_is_killed_the_others_stop_and_all_can_resume() {
    let workplace = workplace(30, NADAM);
    let folder = workplace.path();
    finish(start(folder, "whole", 2));
    for victim in [0, 1] {
        let output = format!("killed-{victim}");
        let mut processes = start(folder, &output, 2);
        wait_for(folder, &output, 9);
        let mut killed = processes.remove(victim);
        killed.kill().unwrap();
        killed.wait().unwrap();
        let other = processes.remove(0).wait_with_output().unwrap();
        assert!(!other.status.success(), "it finished before the kill");
        let errors = String::from_utf8_lossy(&other.stderr);
        let told = errors.lines().filter(|line| line.starts_with("error: "));
        let told: Vec<&str> = told.collect();
        assert!(
            told.len() == 1 && told[0].contains(&format!("process {} of 2 lost", 1 - victim)),
            "{errors}"
        );
        finish(start(folder, &output, 2));
        assert_same_metrics(folder, ["whole", &output]);
    }
}

#[cfg(unix)]
#[test]
fn a_signal_to_one_stops_all_with_a_checkpoint() {
    let workplace = workplace(100_000, NADAM);
    let folder = workplace.path();
    let processes = start(folder, "run", 2);
    wait_for(folder, "run", 5);
    let last = processes.last().unwrap().id().to_string();
    let sent = Command::new("kill")
        .args(["-TERM", &last])
        .status()
        .unwrap();
    assert!(sent.success());
    let mut told = Vec::new();
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(75));
        told.push(String::from_utf8(output.stdout).unwrap());
    }
    assert!(
        told[0].contains("stopped") && told[1].is_empty(),
        "{told:?}"
    );
    let newest = Checkpoint::read(&folder.join("run")).unwrap();
    let steps = metrics(folder, "run");
    assert_eq!(steps.last().unwrap()["step"], newest.state.step);
}

/// All processes return to the checkpoint together, up to the permitted number of times.
#[test]
fn a_persistent_nan_loss_ends_all() {
    let far_too_fast = "kind = \"sgd\"\nclip_norm = 0\n[schedule]\npeak = 1e30\nwarmup = 0";
    let workplace = workplace(40, far_too_fast);
    let folder = workplace.path();
    for process in start(folder, "run", 2) {
        let output = process.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{errors}");
        assert!(errors.contains("lower schedule.peak"), "{errors}");
    }
    let lines = metrics(folder, "run");
    assert!(lines.iter().any(|line| line["split"] == "event"));
}

#[test]
fn a_run_resumes_with_another_number_of_processes() {
    let workplace = workplace(8, SGD);
    let folder = workplace.path();
    finish(start(folder, "whole", 1));
    let config = std::fs::read_to_string(folder.join("tiny.toml")).unwrap();
    std::fs::write(
        folder.join("tiny.toml"),
        config.replace("steps = 8", "steps = 3"),
    )
    .unwrap();
    finish(start(folder, "changed", 3));
    std::fs::write(folder.join("tiny.toml"), config).unwrap();
    finish(start(folder, "changed", 2));
    let whole = checkpoint(folder, "whole", 8);
    let changed = checkpoint(folder, "changed", 8);
    let off = largest(&(whole.parameters - changed.parameters));
    assert!(off <= 1e-4, "{off}");
    assert_eq!(whole.state.cursor, changed.state.cursor);
}

/// Returns torchrun from the tools' virtual environment, or otherwise from PATH.
fn torchrun() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/torchrun");
    [own, PathBuf::from("torchrun")]
        .into_iter()
        .find(|program| {
            let version = Command::new(program).arg("--help").output();
            version.is_ok_and(|output| output.status.success())
        })
}

#[test]
fn torchrun_launches_a_run() {
    let Some(torchrun) = torchrun() else {
        crate::skip::skip("torchrun");
        return;
    };
    let workplace = workplace(4, SGD);
    let folder = workplace.path();
    finish(start(folder, "alone", 1));
    let launcher = ["--standalone", "--nproc-per-node=2", "--no-python"];
    let output = Command::new(torchrun)
        .args(launcher)
        .arg(TRAIN)
        .args(RUN)
        .args(["-o", "run"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    printed(output);
    assert!(errors.contains("2 processes train together"), "{errors}");
    let (alone, run) = (checkpoint(folder, "alone", 4), checkpoint(folder, "run", 4));
    let off = largest(&(alone.parameters - run.parameters));
    assert!(off <= 1e-5, "{off}");
}

#[test]
fn mistakes_get_one_line() {
    let workplace = workplace(4, SGD);
    let folder = workplace.path();
    let mut alone = train(folder, &RUN);
    let output = alone.env("WORLD_SIZE", "2").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        errors.lines().count() == 1 && errors.contains("RANK"),
        "{errors}"
    );

    // 24 samples cannot be split among five processes.
    for process in start(folder, "uneven", 5) {
        let output = process.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(errors.contains("24") && errors.contains('5'), "{errors}");
    }

    let differently = |rank| match rank {
        0 => [].as_slice(),
        _ => &["--set", "seed=7"],
    };
    let [first, second] = start_each(folder, "different", 2, differently)
        .try_into()
        .unwrap();
    let output = second.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("different configuration"), "{errors}");
    assert!(!first.wait_with_output().unwrap().status.success());
}
