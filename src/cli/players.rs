//! Who is measured by the commands that measure players.

use super::options::NetworkArguments;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::sync::Arc;
use tessera::agent::{AgentKind, Limits};
use tessera::eval::exam::Player;
use tessera::nn::{Backend, BackendKind, Properties};
use tessera::search::Parameters;

/// Memory of one searching player's tree, in MiB: room for a hundred thousand nodes
/// and more.
const HASH: usize = 64;
/// Searching players for each so many positions of the backend's recommended
/// batch: each gathers a few positions at a time and the backend puts them together.
const BATCH_SHARE: usize = 4;
/// Legal moves of a usual position, each of which `value` has evaluated.
const MOVES: usize = 32;

/// A player.
#[derive(Args, Clone, Debug)]
pub struct PlayerArguments {
    /// Who plays
    #[arg(long, value_enum, default_value_t)]
    agent: AgentKind,
    /// Nodes that `mcts` visits for a move
    #[arg(long, default_value_t = 800, value_parser = clap::value_parser!(u64).range(1..))]
    nodes: u64,
    /// Where evaluations come from
    #[arg(long, value_enum, default_value_t)]
    backend: BackendKind,
    #[command(flatten)]
    network: NetworkArguments,
    /// Threads of each search
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Positions searched at once, each by a player of its own; 0 suits the device
    #[arg(long, default_value_t = 0)]
    parallel: usize,
}

/// Players of one kind, and what they think with.
pub struct Crew {
    pub players: Vec<Player>,
    pub network: String,
}

impl PlayerArguments {
    /// The players for so many tasks.
    pub fn crew(&self, tasks: usize) -> anyhow::Result<Crew> {
        let backend = self.network.load(self.backend, self.parallel, 0)?;
        let count = self.count(backend.properties()).min(tasks).max(1);
        Ok(Crew {
            players: (0..count).map(|_| self.player(&backend)).collect(),
            network: backend.properties().name.clone(),
        })
    }

    /// What a result has to say of who brought it about.
    pub fn describe(&self) -> serde_json::Value {
        let agent = self.agent.to_possible_value();
        let nodes = (self.agent == AgentKind::Mcts).then_some(self.nodes);
        json!({"agent": agent.map(|agent| agent.get_name().to_owned()), "nodes": nodes})
    }

    fn count(&self, properties: &Properties) -> usize {
        match (self.parallel, self.agent.immediate()) {
            (0, Some(_)) => properties.recommended_threads,
            (0, None) => properties
                .recommended_threads
                .max(properties.recommended_batch / BATCH_SHARE),
            (parallel, _) => parallel,
        }
    }

    fn player(&self, backend: &Arc<dyn Backend>) -> Player {
        let backend = backend.clone();
        if let Some(immediate) = self.agent.immediate() {
            let batch = backend.properties().recommended_batch;
            return Player::Batched {
                width: match self.agent {
                    AgentKind::Value => batch.div_ceil(MOVES),
                    _ => batch,
                },
                choose: Box::new(move |games| immediate.choose(&*backend, games)),
            };
        }
        let parameters = Parameters {
            threads: self.threads,
            hash: HASH,
            ..Parameters::default()
        };
        Player::Thinker {
            agent: self.agent.build(backend, &parameters),
            limits: Limits {
                nodes: Some(self.nodes),
                ..Limits::default()
            },
        }
    }
}
