//! `tessera describe`: what a network file is.

use super::output::{print, print_json};
use serde_json::Value;
use std::fmt::Write;
use std::path::PathBuf;
use tessera::nn;

/// Say what a network file is
#[derive(clap::Args)]
pub struct Arguments {
    /// The network; without it, the one built into the program
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let metadata = nn::describe(self.file.as_deref())?;
        if self.json {
            return print_json(&metadata);
        }
        let mut text = String::new();
        if let Value::Object(fields) = serde_json::to_value(&metadata)? {
            list(&mut text, "", &fields)?;
        }
        print(&text)
    }
}

/// A line for each field, those of nested objects under their path.
fn list(
    text: &mut String,
    prefix: &str,
    fields: &serde_json::Map<String, Value>,
) -> std::fmt::Result {
    for (name, value) in fields {
        let name = format!("{prefix}{name}");
        match value {
            Value::Object(fields) => list(text, &format!("{name}."), fields)?,
            Value::Array(values) => {
                let values: Vec<String> = values.iter().map(plain).collect();
                writeln!(text, "{name}: {}", values.join(", "))?;
            }
            value => writeln!(text, "{name}: {}", plain(value))?,
        }
    }
    Ok(())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
