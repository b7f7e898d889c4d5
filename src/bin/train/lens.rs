//! `tessera-train lens`: fits a map per layer, after which the heads read the network's outputs.

use super::samples::{open, spread};
use anyhow::Context;
use clap::Args;
use std::path::{Path, PathBuf};
use tessera::backend::CodeArguments;
use tessera::command_line::network_file;
use tessera::error_report::tell;
use tessera::explain::{LensAbout, fit_lens};
use tessera::{output, overwrite};

/// Arguments of `tessera-train lens`.
#[derive(Args)]
pub struct LensCommand {
    /// The network: a file, or a name such as tessera-s; by default the network built into the
    /// program
    #[arg(long, value_name = "NET", value_parser = network_file)]
    net: Option<PathBuf>,
    /// PGN files, separated by commas, of the games to learn from; every tenth game is held out
    #[arg(long, required = true, value_delimiter = ',', value_name = "FILE.pgn")]
    games: Vec<PathBuf>,
    /// Maximum number of positions to learn from, eight per game
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    limit: usize,
    /// Number of optimizer steps, of 64 positions each
    #[arg(long, default_value_t = 2000, value_name = "N")]
    steps: usize,
    /// The file to write
    #[arg(short, long, value_name = "OUT.json")]
    output: PathBuf,
    #[command(flatten)]
    code: CodeArguments,
}

impl LensCommand {
    /// Fits the lens, writes it, and prints its quality.
    pub fn run(&self) -> anyhow::Result<()> {
        overwrite::refuse(&self.output, self.games.iter().chain(&self.net))?;
        let network = open(self.net.as_deref(), &self.code)?;
        let [positions, held_out] = spread(&self.games, self.limit)?;
        let lens = fit_lens(
            &network,
            &positions,
            &held_out,
            self.steps,
            |step, divergence| {
                tell(format_args!(
                    "step {step}: {divergence:.3} nats from the policy"
                ));
            },
        )?;
        let shown = self.output.display();
        lens.write(&self.output)
            .with_context(|| format!("cannot write {shown}"))?;
        let summary = summary(&self.output, &lens.about);
        Ok(output::announce(&self.output, summary.trim_end())?)
    }
}

/// Summarises a lens's quality, with a table of the distances after each layer.
fn summary(path: &Path, about: &LensAbout) -> String {
    let mut text = format!(
        "{}: a lens of {}, fitted to {} positions; mean distances from its outputs over {} positions \
         held out\n\n| after | policy, nats | value | policy without the lens | value without the lens \
         |\n|---|---|---|---|---|\n",
        path.display(),
        about.network,
        about.positions,
        about.held_out
    );
    for (layer, (tuned, untuned)) in about.tuned.iter().zip(&about.untuned).enumerate() {
        let name = match layer {
            0 => "embedding".to_owned(),
            _ => format!("layer {layer}"),
        };
        text += &format!(
            "| {name} | {:.3} | {:.3} | {:.2} | {:.2} |\n",
            tuned.divergence, tuned.q, untuned.divergence, untuned.q
        );
    }
    text
}
