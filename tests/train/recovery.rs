//! Tests how a run recovers from faults: signals, damaged and unwritable checkpoints, and NaN
//! losses.

use crate::support::wait_until;
use crate::train::workplace::{
    assert_same_metrics, fail, games, metrics, pack, run, succeed, workplace,
};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Configures a run whose metrics lines, validations and checkpoints never coincide, so that all
/// unfinished state must be preserved.
pub fn unaligned(folder: &Path, output: &str) -> Command {
    let mut command = run(folder, output);
    command.args(["--set", "log_every=3", "--set", "validate_every=14"]);
    command
}

pub fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Waits until the run has written another metrics line or has ended.
fn wait_for_a_line(folder: &Path, output: &str, child: &mut Child) {
    let lines = metrics(folder, output).len();
    wait_until("the run has written another line", || {
        metrics(folder, output).len() > lines || child.try_wait().unwrap().is_some()
    });
}

pub fn checkpoint(folder: &Path, output: &str, step: u64) -> PathBuf {
    let name = format!("step-{step:09}.safetensors");
    folder.join(output).join("checkpoints").join(name)
}

#[test]
fn two_processes_cannot_train_into_one_folder() {
    let workplace = workplace(1000);
    let folder = workplace.path();
    let mut first = start(run(folder, "shared"));
    wait_for_a_line(folder, "shared", &mut first);
    let told = fail(&mut run(folder, "shared"));
    assert!(told.contains("another process is training into shared"));
    first.kill().unwrap();
    first.wait().unwrap();
    let mut second = run(folder, "shared");
    succeed(second.args(["--steps", "1", "--time", "0.01m"]));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_run_with_a_checkpoint() {
    let workplace = workplace(40);
    let folder = workplace.path();
    succeed(&mut unaligned(folder, "whole"));
    for signal in ["-TERM", "-INT"] {
        let mut child = start(unaligned(folder, "stopped"));
        wait_for_a_line(folder, "stopped", &mut child);
        let id = child.id().to_string();
        succeed(Command::new("kill").args([signal, &id]));
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        let is_stopped = told.starts_with("stopped");
        let status = if is_stopped { 75 } else { 0 };
        assert_eq!(output.status.code(), Some(status), "{told}");
        if is_stopped {
            let step = told.split_whitespace().skip_while(|word| *word != "step");
            let step = step.skip(1).find_map(|word| word.parse().ok()).unwrap();
            assert!(checkpoint(folder, "stopped", step).is_file(), "{told}");
        }
    }
    succeed(&mut unaligned(folder, "stopped"));
    assert_same_metrics(folder, ["whole", "stopped"]);
}

#[test]
fn a_damaged_checkpoint_is_skipped() {
    let workplace = workplace(20);
    let folder = workplace.path();
    succeed(&mut run(folder, "run"));
    let whole = metrics(folder, "run");
    let newest = checkpoint(folder, "run", 20);
    let mut bytes = std::fs::read(&newest).unwrap();
    let place = bytes.len() / 2;
    bytes[place] ^= 1;
    std::fs::write(&newest, &bytes).unwrap();
    let output = run(folder, "run").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    for told in [
        "step-000000020",
        "checksum",
        "the previous checkpoint, of step 15",
    ] {
        assert!(errors.contains(told), "{told}: {errors}");
    }
    assert_eq!(metrics(folder, "run"), whole);

    for step in [15, 20] {
        std::fs::write(checkpoint(folder, "run", step), "cut").unwrap();
    }
    let errors = fail(&mut run(folder, "run"));
    assert!(errors.contains("no checkpoint in"), "{errors}");
}

#[test]
fn a_failed_checkpoint_is_retried() {
    let workplace = workplace(20);
    let folder = workplace.path();
    succeed(&mut run(folder, "whole"));
    // A folder has the name of the file to be written.
    std::fs::create_dir_all(checkpoint(folder, "run", 10)).unwrap();
    let strict = ["--set", "keep.failures=0"];
    let errors = fail(run(folder, "run").args(strict));
    assert!(errors.contains("step-000000010"), "{errors}");
    assert!(checkpoint(folder, "run", 5).is_file());

    let output = run(folder, "run").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(
        errors.contains(
            "training continues without this checkpoint, the last whole one is of step 5"
        )
    );
    assert!(checkpoint(folder, "run", 20).is_file());
    assert_same_metrics(folder, ["whole", "run"]);
}

/// Uses a file system with room for little more than two checkpoints, in a separate namespace.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_full_disk_leaves_whole_checkpoints() {
    let mut probe = Command::new("unshare");
    probe.args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]);
    if !probe.output().is_ok_and(|output| output.status.success()) {
        crate::skip::skip("leave to mount a file system (unshare -rm)");
        return;
    }
    let workplace = workplace(40);
    let folder = workplace.path();
    succeed(&mut run(folder, "whole"));
    let size = std::fs::metadata(checkpoint(folder, "whole", 40))
        .unwrap()
        .len();
    std::fs::create_dir(folder.join("full")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size={} tmpfs full && \
         {} run tiny.toml --device cpu --threads 1 -o full/run; status=$?; \
         rm -f full/run/checkpoints/.unfinished*; cp -r full/run saved; exit $status",
        size * 5 / 2,
        env!("CARGO_BIN_EXE_tessera-train"),
    );
    let mut limited = Command::new("unshare");
    limited
        .args(["-rm", "sh", "-c", &script])
        .current_dir(folder);
    let errors = fail(&mut limited);
    assert_eq!(
        errors.matches("training continues without").count(),
        2,
        "{errors}"
    );
    assert!(errors.contains("step-000000020"), "{errors}");
    assert!(
        errors.contains("No space left on device") && !errors.contains("Os {"),
        "{errors}"
    );
    for step in [0, 5] {
        assert!(checkpoint(folder, "saved", step).is_file(), "{errors}");
    }
    succeed(&mut run(folder, "saved"));
    assert_same_metrics(folder, ["whole", "saved"]);
}

#[test]
fn a_damaged_shard_is_reported_once_and_a_missing_one_leaves_no_folder() {
    let workplace = workplace(40);
    let folder = workplace.path();
    let errors = fail(run(folder, "none").args(["--set", "data.shards.0.path=none.shard"]));
    assert!(errors.contains("none.shard"), "{errors}");
    assert!(!folder.join("none").exists());

    let mut bytes = std::fs::read(folder.join("games.shard")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(folder.join("damaged.shard"), bytes).unwrap();
    let text = std::fs::read_to_string(folder.join("tiny.toml")).unwrap();
    let both = "shards = [{ path = \"games.shard\" }, { path = \"damaged.shard\" }]";
    let text = text.replace("shards = [{ path = \"games.shard\" }]", both);
    std::fs::write(folder.join("tiny.toml"), text).unwrap();
    // Every epoch of a few steps reads the damaged shard again.
    let output = run(folder, "run").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors.matches("damaged.shard").count(), 1, "{errors}");
    assert!(
        errors.contains("left out: damaged.shard is damaged"),
        "{errors}"
    );
}

#[test]
fn the_time_left_is_printed_before_the_first_metrics_line() {
    let workplace = workplace(1_000_000);
    let folder = workplace.path();
    let errors = folder.join("errors");
    let mut command = run(folder, "run");
    command.args([
        "--set",
        "log_every=1000000",
        "--set",
        "validate_every=1000000",
    ]);
    command.stderr(std::fs::File::create(&errors).unwrap());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let told = || std::fs::read_to_string(&errors).unwrap();
    wait_until("the time left is printed", || {
        told().contains(" left\n") || child.try_wait().unwrap().is_some()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let told = told();
    let line = told.lines().find(|line| line.starts_with("step ")).unwrap();
    assert!(
        line.contains(" samples/s, ") && !line.contains("loss"),
        "{told}"
    );
    assert!(metrics(folder, "run").is_empty());
}

#[test]
fn checkpoints_are_written_by_time() {
    let workplace = workplace(60);
    let folder = workplace.path();
    let kept = ["--set", "keep.every=1", "--set", "checkpoint_every=1h"];
    let kept = run(folder, "kept").args(kept).status().unwrap();
    assert!(kept.success());
    assert!(
        checkpoint(folder, "kept", 17).is_file(),
        "steps to keep are written"
    );
    let all = ["--set", "keep.newest=1000"];
    for (output, every, expected) in [("hour", "1h", 0..1), ("often", "1ms", 10..60)] {
        let set = format!("checkpoint_every={every}");
        succeed(run(folder, output).args(all).args(["--set", &set]));
        let between = (1..60).filter(|&step| checkpoint(folder, output, step).is_file());
        let count = between.count();
        assert!(expected.contains(&count), "{output}: {count}");
        assert!(checkpoint(folder, output, 60).is_file());
    }
    let errors = fail(run(folder, "wrong").args(["--set", "checkpoint_every=soon"]));
    assert!(
        errors.contains("a number of steps, such as 1000, or a time"),
        "{errors}"
    );
}

#[cfg(unix)]
#[test]
fn a_run_survives_the_loss_of_its_output() {
    let workplace = workplace(10);
    let folder = workplace.path();
    let mut unwatched = crate::cli::unread(">$pipe 2>&1", env!("CARGO_BIN_EXE_tessera-train"));
    unwatched
        .args(["run", "tiny.toml", "-o", "run"])
        .args(["--device", "cpu", "--threads", "1"])
        .env("RUST_LOG", "trace")
        .current_dir(folder);
    assert!(unwatched.status().unwrap().success());
    assert!(checkpoint(folder, "run", 10).is_file());
}

#[test]
fn a_persistent_nan_loss_ends_the_run() {
    let workplace = workplace(30);
    let folder = workplace.path();
    succeed(run(folder, "run").args(["--set", "steps=10"]));
    let sets = ["--set", "schedule.peak=1e30", "--set", "guard.rollbacks=2"];
    let errors = fail(run(folder, "run").args(sets));
    for told in [
        "no longer finite",
        "3 times from the checkpoint of step 10",
        "schedule.peak",
    ] {
        assert!(errors.contains(told), "{told}: {errors}");
    }
    assert_eq!(errors.matches("back to step 10").count(), 2, "{errors}");
    // The run's earlier progress is intact.
    succeed(&mut run(folder, "run"));
    let lines = metrics(folder, "run");
    assert_eq!(lines.last().unwrap()["step"], 30);
    let is_finite = |line: &serde_json::Value| line["split"] == "event" || line["policy"].is_f64();
    assert!(lines.iter().all(is_finite));
}

#[test]
fn a_bad_batch_is_skipped() {
    let workplace = workplace(60);
    let folder = workplace.path();
    // One sample is a move in a variation, and its small weight vanishes in a sum of floats.
    let text = games(60).replacen("} 1...", "} ( 1. Nh3 {[%eval 0.10,5]} ) 1...", 1);
    assert!(text.contains("Nh3 {"));
    pack(folder, &text);
    let bad = ["--set", "data.variation_weight=3.4e38"];
    let output = run(folder, "run").args(bad).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(
        errors.contains("continuing with the batches after these"),
        "{errors}"
    );
    let lines = metrics(folder, "run");
    let event = lines.iter().find(|line| line["split"] == "event").unwrap();
    assert_eq!(event["reason"], "the loss is no longer finite");
    assert!(event["rolled_back_from"].as_u64() > event["step"].as_u64());
    assert_eq!(lines.last().unwrap()["step"], 60);
}
