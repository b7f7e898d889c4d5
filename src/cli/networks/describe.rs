//! `tessera describe`: prints the metadata of a network file.

use crate::cli::output::{print, print_json};
use anyhow::Context;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tessera::backend::{CodeArguments, NetworkOptions};
use tessera::command_line::network_file;
use tessera::error_report::one_line;
use tessera::inference;
use tessera::interop::{self, FileKind};

/// Describe a network file: the engine's own, Lc0 weights, a Maia-3 checkpoint or ONNX
#[derive(clap::Args)]
pub struct Arguments {
    /// The network: a file, or a name such as tessera-s; by default the network built into the
    /// program
    #[arg(value_name = "NET", value_parser = network_file)]
    file: Option<PathBuf>,
    #[command(flatten)]
    code: CodeArguments,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Number of values from which a list is only counted.
const MOST: usize = 16;

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let described = match &self.file {
            Some(path) => foreign(path, self.code)?,
            None => None,
        };
        let described = match described {
            Some(described) => described,
            None => {
                let (net, code) = (self.file.clone(), self.code.policy());
                let metadata = inference::describe(net.as_deref(), code)?;
                let mut described = serde_json::to_value(metadata)?;
                let options = NetworkOptions {
                    net,
                    code,
                    ..NetworkOptions::default()
                };
                let runs = inference::runs(&options).unwrap_or_else(|error| one_line(&error));
                described["runs"] = runs.into();
                described
            }
        };
        if self.json {
            return print_json(&described);
        }
        let mut text = String::new();
        if let Value::Object(fields) = described {
            list(&mut text, "", &fields)?;
        }
        print(&text)
    }
}

/// Returns the description of a network file of another program, or `None` for any other file.
fn foreign(path: &Path, code: CodeArguments) -> anyhow::Result<Option<Value>> {
    let Ok(file) = std::fs::read(path) else {
        return Ok(None);
    };
    match FileKind::of(&file) {
        None | Some(FileKind::TorchScript) => Ok(None),
        Some(_) => {
            let described = interop::describe(&file, code.policy());
            let failed = || format!("cannot describe {}", path.display());
            described.map(Some).with_context(failed)
        }
    }
}

/// Appends a line for each field. Fields of nested objects are listed with their paths.
fn list(
    text: &mut String,
    prefix: &str,
    fields: &serde_json::Map<String, Value>,
) -> std::fmt::Result {
    for (name, value) in fields {
        let name = format!("{prefix}{name}");
        match value {
            Value::Object(fields) => list(text, &format!("{name}."), fields)?,
            // For tensors, only the names are listed.
            Value::Array(values) if values.iter().all(|value| value["name"].is_string()) => {
                let names: Vec<String> = values.iter().map(|value| plain(&value["name"])).collect();
                writeln!(text, "{name}: {}", names.join(", "))?;
            }
            Value::Array(values) if values.len() > MOST => {
                writeln!(text, "{name}: {} values", values.len())?;
            }
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
