//! `tessera-train ablate-heads`: measures the effect of each attention head over positions.

use super::samples::{one_each, open};
use clap::Args;
use serde_json::json;
use std::io::{Write, stdout};
use std::path::PathBuf;
use tessera::backend::CodeArguments;
use tessera::command_line::network_file;
use tessera::error_report::tell;
use tessera::eval::move_match::Interval;
use tessera::explain::{HeadEffect, head_effects};

/// Arguments of `tessera-train ablate-heads`.
#[derive(Args)]
pub struct AblateHeads {
    /// The network: a file, or a name such as tessera-s; by default the network built into the
    /// program
    #[arg(long, value_name = "NET", value_parser = network_file)]
    net: Option<PathBuf>,
    /// PGN files, separated by commas; each game gives one random position
    #[arg(long, required = true, value_delimiter = ',', value_name = "FILE.pgn")]
    games: Vec<PathBuf>,
    /// Maximum number of positions
    #[arg(long, default_value_t = 200, value_name = "N")]
    limit: usize,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    code: CodeArguments,
}

impl AblateHeads {
    /// Measures the heads and prints them, those with the greatest effect first.
    pub fn run(&self) -> anyhow::Result<()> {
        let network = open(self.net.as_deref(), &self.code)?;
        let games = one_each(&self.games, self.limit)?;
        let heads = head_effects(&network, &games, |layer, head| {
            if head == 1 {
                tell(format_args!("layer {layer}"));
            }
        })?;
        let (name, positions) = (&network.about.name, games.len());
        let text = match self.json {
            true => json!({ "network": name, "positions": positions, "heads": heads }).to_string(),
            false => format!(
                "{name} without each of its attention heads, over {positions} positions of as many \
                 games\n\n{}",
                table(&heads)
            ),
        };
        Ok(writeln!(stdout(), "{}", text.trim_end())?)
    }
}

/// Returns a table of the effects with their 95 % intervals.
fn table(heads: &[HeadEffect]) -> String {
    let mut text =
        "| head | policy, nats | value | other first moves |\n|---|---|---|---|\n".to_owned();
    let number = |it: &Interval| format!("{:.3} ({:.3} to {:.3})", it.mean, it.low, it.high);
    for effect in heads {
        let Interval { mean, low, high } = effect.changed;
        let [mean, low, high] = [mean, low, high].map(|share| 100.0 * share);
        text += &format!(
            "| layer {}, head {} | {} | {} | {mean:.1} % ({low:.1} to {high:.1}) |\n",
            effect.layer,
            effect.head,
            number(&effect.divergence),
            number(&effect.q)
        );
    }
    text
}
