//! `tessera-train size`: prints the size of an architecture.

use clap::Args;
use std::io::{Write, stdout};
use std::path::PathBuf;
use tch::Device;
use tessera::network::ArchitectureConfig;
use tessera::network::chessformer::{ModelConfig, PRESETS};
use tessera::train::TrainConfig;

/// Arguments of `tessera-train size`.
#[derive(Args)]
pub struct Size {
    /// The training configuration with the architecture.
    #[arg(value_name = "FILE.toml", required_unless_present = "preset")]
    config: Option<PathBuf>,
    /// Name of an architecture.
    #[arg(long, value_name = "NAME", value_parser = PRESETS, conflicts_with = "config")]
    preset: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// List every parameter with its shape.
    #[arg(long, conflicts_with = "json")]
    parameters: bool,
}

impl Size {
    /// Prints the sizes.
    pub fn run(self) -> anyhow::Result<()> {
        let config = match (&self.preset, &self.config) {
            (Some(preset), _) => ArchitectureConfig::Chessformer {
                model: ModelConfig::preset(preset)?,
            },
            (None, Some(path)) => TrainConfig::read(path)?.architecture()?,
            (None, None) => unreachable!("clap asks for one of them"),
        };
        let model = config.build(Device::Cpu)?;
        let size = model.size();
        if self.json {
            writeln!(stdout(), "{}", serde_json::to_string(&size)?)?;
            return Ok(());
        }
        match &config {
            ArchitectureConfig::Chessformer { model } => {
                write!(stdout(), "{}", toml::to_string(model)?)?
            }
            other => write!(stdout(), "{}", toml::to_string(other)?)?,
        }
        writeln!(stdout())?;
        writeln!(stdout(), "parameters  {:>14}", size.parameters)?;
        writeln!(
            stdout(),
            "macs        {:>14}  dense layers of body, embedding's feed-forward, policy",
            size.macs
        )?;
        writeln!(stdout(), "macs_total  {:>14}  everything", size.macs_total)?;
        if self.parameters {
            writeln!(stdout())?;
            for parameter in model.parameters() {
                writeln!(stdout(), "{:<48} {:?}", parameter.name, parameter.shape)?;
            }
        }
        Ok(())
    }
}
