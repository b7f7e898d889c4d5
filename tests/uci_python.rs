//! python-chess, on which many tools are built, drives the real program as a client.

use std::process::Command;

/// Returns a Python with python-chess, or skips the calling test.
pub fn python() -> Option<&'static str> {
    let python = if cfg!(windows) { "python" } else { "python3" };
    let has_chess = Command::new(python)
        .args(["-c", "import chess.engine"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !has_chess {
        crate::skip::skip("a Python with python-chess (`pip install chess`)");
    }
    has_chess.then_some(python)
}

#[test]
fn python_chess_plays_analyses_and_ponders() {
    let Some(python) = python() else { return };
    let output = Command::new(python)
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/python/uci_client.py"
        ))
        .arg(env!("CARGO_BIN_EXE_tessera"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complaints}");
}
