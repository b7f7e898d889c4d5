//! The subcommands that need libtorch.

mod describe;
mod doctor;
mod explain;
mod export;
mod generate;
mod import;

use clap::Subcommand;

#[derive(Subcommand)]
pub enum NetworkCommand {
    Doctor(doctor::Arguments),
    Describe(describe::Arguments),
    Explain(Box<explain::Arguments>),
    Generate(generate::Arguments),
    Import(import::Arguments),
    ExportLc0(export::Lc0Arguments),
    ExportOnnx(export::OnnxArguments),
}

impl NetworkCommand {
    /// Runs the command that was parsed.
    pub fn run(self) -> anyhow::Result<()> {
        match self {
            NetworkCommand::Doctor(arguments) => arguments.run(),
            NetworkCommand::Describe(arguments) => arguments.run(),
            NetworkCommand::Explain(arguments) => arguments.run(),
            NetworkCommand::Generate(arguments) => arguments.run(),
            NetworkCommand::Import(arguments) => arguments.run(),
            NetworkCommand::ExportLc0(arguments) => arguments.run(),
            NetworkCommand::ExportOnnx(arguments) => arguments.run(),
        }
    }
}
