//! `tessera bench`: prints the search's signature and its speed.

use super::options::SearchArguments;
use super::output::{print, print_json};
use anyhow::Context;
use serde_json::json;
use shakmaty::CastlingMode;
use tessera::agent::AgentKind;
use tessera::backend::BackendKind;
use tessera::chess::Game;
use tessera::eval::bench::{POSITIONS, SIGNATURE_DEPTH, run};
use tessera::inference;
use tessera::play::Limits;
use tessera::progress;
use tessera::search::Search;

/// Default memory for the search tree and the evaluation cache in MiB.
const HASH: usize = 1024;

/// Measure the search on 34 fixed positions
///
/// Without --nodes, every position is searched to the same mean leaf depth. With the random backend
/// and one thread, the number of nodes is then the search's signature, which is the same on every
/// machine.
#[derive(clap::Args)]
pub struct Arguments {
    /// Search this many nodes per position
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    nodes: Option<u64>,
    /// Search this position instead of the fixed ones
    #[arg(long, value_name = "FEN")]
    fen: Option<String>,
    /// Backend that evaluates positions; `random` derives evaluations from a hash of the position
    #[arg(long, value_enum, default_value_t = BackendKind::Random, value_name = "BACKEND")]
    backend: BackendKind,
    #[command(flatten)]
    search: SearchArguments,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub fn run(self) -> anyhow::Result<()> {
        let games = match &self.fen {
            Some(fen) => vec![Game::from_fen(fen, CastlingMode::Standard).context("--fen")?],
            None => POSITIONS
                .iter()
                .map(|fen| Game::from_fen(fen, CastlingMode::Standard))
                .collect::<Result<_, _>>()?,
        };
        let settings = self.search.settings(AgentKind::Mcts, self.backend, HASH)?;
        let mut search = Search::new(
            inference::load(&settings.backend)?,
            &settings.options.search,
        );
        let limits = Limits {
            nodes: self.nodes,
            depth: self.nodes.is_none().then_some(SIGNATURE_DEPTH),
            ..Limits::default()
        };
        let bar = progress::bar(Some(games.len() as u64), "positions");
        let sum = run(&mut search, &games, &limits, || bar.inc(1))?;
        bar.finish_and_clear();
        let (nodes, nps) = (sum.nodes, sum.nodes_per_second());
        if self.json {
            return print_json(&json!({
                "nodes": nodes,
                "nps": nps,
                "seconds": sum.elapsed.as_secs_f64(),
                "cpu_seconds": sum.cpu.as_secs_f64(),
                "bytes_per_node": sum.bytes as f64 / nodes.max(1) as f64,
            }));
        }
        print(&format!("{nodes} nodes {nps} nps\n"))
    }
}
