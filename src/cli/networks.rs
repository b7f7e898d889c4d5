//! The subcommands that need libtorch.

mod describe;
mod doctor;
mod explain;
mod export;
mod generate;
mod import;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum Command {
    Doctor(doctor::Arguments),
    Describe(describe::Arguments),
    Explain(Box<explain::Arguments>),
    Generate(generate::Arguments),
    Import(import::Arguments),
    ExportLc0(export::Lc0Arguments),
    ExportOnnx(export::OnnxArguments),
}

impl Command {
    /// Runs the command that was parsed.
    pub fn run(self) -> anyhow::Result<()> {
        match self {
            Command::Doctor(arguments) => arguments.run(),
            Command::Describe(arguments) => arguments.run(),
            Command::Explain(arguments) => arguments.run(),
            Command::Generate(arguments) => arguments.run(),
            Command::Import(arguments) => arguments.run(),
            Command::ExportLc0(arguments) => arguments.run(),
            Command::ExportOnnx(arguments) => arguments.run(),
        }
    }
}
