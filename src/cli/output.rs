//! Output of the commands.

use anyhow::Context;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use tessera::output;

/// Writes a file or a stream.
pub fn save(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    output::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Prints `value` as JSON on a separate line.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    print(&line)
}

/// Prints `text` immediately. Unlike `print!`, it reports a closed pipe.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
