//! What the commands print.

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{self, Write};

/// Prints `value` as JSON on a line of its own.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    print(&line)
}

/// Prints `text` at once. Unlike `print!` it reports a closed pipe.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// A progress bar on standard error; silent where that is no terminal.
pub fn progress(length: usize, unit: &str) -> ProgressBar {
    let template = format!(
        "{{elapsed_precise}} {{wide_bar}} {{pos}}/{{len}} {unit} {{msg}} {{per_sec}}, {{eta}} left"
    );
    let style = ProgressStyle::with_template(&template).expect("the template is well-formed");
    ProgressBar::new(length as u64).with_style(style)
}
