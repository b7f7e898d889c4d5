//! Runs our two programs for the end-to-end tests and locates their games.

use crate::waiting::PATIENCE;
use std::borrow::BorrowMut;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};
use tessera::data::examples::PositionExamples;
use tessera::data::loader::{Cursor, Loader, LoaderError, RankShard, Sampling, Split};
use tessera::encode::InputFormat;

pub const TESSERA: &str = env!("CARGO_BIN_EXE_tessera");
pub const TRAIN: &str = env!("CARGO_BIN_EXE_tessera-train");

/// Returns a command that runs `tessera` in a folder.
pub fn tessera(folder: &Path, arguments: &[&str]) -> Command {
    command(TESSERA, folder, arguments)
}

/// Returns a command that runs `tessera-train` in a folder.
pub fn train(folder: &Path, arguments: &[&str]) -> Command {
    command(TRAIN, folder, arguments)
}

fn command(program: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

/// Runs a command that must succeed; returns its standard output.
#[track_caller]
pub fn succeed(mut command: impl BorrowMut<Command>) -> String {
    printed(command.borrow_mut().output().unwrap())
}

/// Returns the standard output of a process that must have succeeded.
#[track_caller]
pub fn printed(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail with a one-line message and no backtrace; returns its standard
/// error.
#[track_caller]
pub fn fail(mut command: impl BorrowMut<Command>) -> String {
    let command = command.borrow_mut().env("RUST_BACKTRACE", "1");
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{command:?}");
    assert!(!errors.contains("stack backtrace"), "{errors}");
    let lines = errors.lines().filter(|line| line.starts_with("error: "));
    assert_eq!(lines.count(), 1, "{errors}");
    errors
}

/// Waits until `condition` holds.
///
/// # Panics
/// If that takes longer than [`PATIENCE`]; the message contains `what` was awaited.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for the exit of a process, and kills it if it hangs.
#[track_caller]
pub fn exit(child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("waited in vain until process {} ended", child.id());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the path of a file in tests/games.
pub fn games(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("tests/games").join(name)
}

/// Starts preparing batches of positions in the classical format.
pub fn loader(
    sampling: &Sampling,
    split: Split,
    batch_size: usize,
    cursor: Cursor,
    threads: usize,
) -> Result<Loader, LoaderError> {
    let positions = PositionExamples {
        format: InputFormat::Classical,
        variations: sampling.variations(),
    };
    let shard = RankShard::WHOLE;
    Loader::for_rank(
        positions, sampling, split, batch_size, cursor, shard, threads,
    )
}

/// Returns the number of launches in a trace, as `bench/gpu` counts them.
pub fn launches(python: &Path, trace: &Path) -> usize {
    let script = "import json, runpy, sys; gpu = runpy.run_path(sys.argv[1]); \
                  print(len(gpu['launches'](json.load(open(sys.argv[2])))))";
    let mut counter = Command::new(python);
    counter.args(["-c", script]);
    counter.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/gpu"));
    counter.arg(trace);
    succeed(&mut counter).trim().parse().unwrap()
}
