//! The engine starts in the way that GUIs start it: from any folder, and without environment
//! variables that locate libtorch.

#![cfg(unix)]

use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn the_engine_starts_from_any_folder_with_an_empty_environment() {
    let mut engine = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    engine
        .stdin
        .take()
        .unwrap()
        .write_all(b"uci\nquit\n")
        .unwrap();
    let output = engine.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complained}");
    assert!(said.lines().any(|line| line == "uciok"), "{complained}");
}
