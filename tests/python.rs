//! The tests' Python interpreter.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Finds a Python that can `import a, b`, where `modules` is that list: the interpreter that
/// `tools/test` prepares, or the user's own.
pub fn with(modules: &str) -> Option<PathBuf> {
    let prepared = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    let import = format!("import {modules}");
    [prepared, PathBuf::from("python3")]
        .into_iter()
        .find(|python| {
            let probe = Command::new(python).args(["-c", &import]).output();
            probe.is_ok_and(|probe| probe.status.success())
        })
}

/// Finds a Python, or skips the test.
pub fn with_or_skip(modules: &str) -> Option<PathBuf> {
    let found = with(modules);
    if found.is_none() {
        crate::skip::skip(&format!(
            "a Python with {modules} (tools/test prepares one)"
        ));
    }
    found
}
