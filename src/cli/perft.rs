//! `tessera perft`: counts legal moves.

use super::options::PositionArguments;
use super::output::{print, print_json};
use serde_json::{Map, json};
use std::fmt::Write;
use std::time::Instant;
use tessera::chess::perft::divide;

/// Count the legal move sequences of a given length
#[derive(clap::Args)]
pub struct Arguments {
    /// Length in plies
    #[arg(value_name = "DEPTH", value_parser = clap::value_parser!(u32).range(1..=30))]
    depth: u32,
    #[command(flatten)]
    position: PositionArguments,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let game = self.position.game()?;
        let clock = Instant::now();
        let mut moves = Vec::new();
        let nodes = divide(game.position(), self.depth, &|| false, |mv, count| {
            moves.push((game.format_move(mv), count));
        });
        let nodes = nodes.expect("nothing stops it");
        let seconds = clock.elapsed().as_secs_f64();
        moves.sort();
        let nps = (nodes as f64 / seconds.max(1e-9)) as u64;
        if self.json {
            let moves: Map<_, _> = moves.into_iter().map(|(mv, n)| (mv, json!(n))).collect();
            return print_json(&json!({
                "depth": self.depth,
                "nodes": nodes,
                "seconds": seconds,
                "nps": nps,
                "moves": moves,
            }));
        }
        let mut text = String::new();
        for (mv, count) in moves {
            writeln!(text, "{mv}: {count}")?;
        }
        writeln!(text, "\n{nodes} nodes {nps} nps")?;
        print(&text)
    }
}
