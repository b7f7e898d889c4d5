//! The players that commands such as `puzzles` and `epd` measure.

use super::options::SearchArguments;
use clap::{Args, ValueEnum};
use serde::Serialize;
use shakmaty::Position;
use tessera::agent::AgentKind;
use tessera::command_line::BackendArguments;
use tessera::encode::Encoder;
use tessera::eval::runner::{Player, Task};
use tessera::inference;
use tessera::play::Limits;

/// Memory for the search tree of one player in MiB, enough for more than a hundred thousand nodes.
const HASH: usize = 64;
/// Number of positions that a searching player is assumed to gather at a time. The backend merges
/// the positions of all players, so the number of players is the backend's recommended batch
/// divided by this.
const BATCH_SHARE: usize = 8;

/// A player.
#[derive(Args, Clone, Debug)]
pub struct PlayerArguments {
    /// The agent that chooses moves
    #[arg(long, value_enum, default_value_t, value_name = "AGENT")]
    agent: AgentKind,
    /// Nodes that `mcts` searches per move
    #[arg(long, value_name = "N", default_value_t = 800, value_parser = clap::value_parser!(u64).range(1..))]
    nodes: u64,
    #[command(flatten)]
    backend: BackendArguments,
    #[command(flatten)]
    search: SearchArguments,
    /// Positions searched in parallel, each by its own player; 0 chooses a number that suits the
    /// device
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
}

/// Players of one kind, and details about them for the results.
pub struct PlayerPool {
    pub players: Vec<Player>,
    pub description: Description,
}

#[derive(Serialize)]
pub struct Description {
    agent: String,
    /// The node limit; `None` for players that do not search.
    nodes: Option<u64>,
    pub network: String,
}

impl PlayerArguments {
    /// Creates the players for these tasks. The players play the side to move.
    pub fn pool<T: Task>(&self, tasks: &mut [T]) -> anyhow::Result<PlayerPool> {
        let settings = self
            .search
            .settings(self.agent, self.backend.backend, HASH)?;
        let mut settings = settings.answering(&Limits::default());
        let searches = settings.agent.searches();
        let limits = settings.limits(&Limits::of_nodes(self.nodes));
        settings.backend.threads = self.jobs * settings.options.search.threads;
        if !searches {
            // The players never see a position twice.
            settings.backend.cache = 0;
        }
        for task in tasks.iter_mut() {
            let game = task.game_mut();
            game.set_ratings(settings.ratings(game.position().turn()));
        }
        let backend = inference::load(&settings.backend)?;
        let properties = backend.properties();
        let gathered = match searches && properties.encoder != Encoder::Nothing {
            true => properties.recommended_batch / BATCH_SHARE,
            // Other players gain nothing from batches shared by several of them.
            false => 0,
        };
        let count = match self.jobs {
            0 => properties.recommended_threads.max(gathered),
            jobs => jobs,
        };
        let count = count.min(tasks.len()).max(1);
        let agent = settings.agent.to_possible_value();
        Ok(PlayerPool {
            players: (0..count)
                .map(|_| Player {
                    agent: settings.agent.build(backend.clone(), &settings.options),
                    limits: limits.clone(),
                })
                .collect(),
            description: Description {
                agent: agent.map_or_else(String::new, |agent| agent.get_name().to_owned()),
                nodes: limits.nodes.filter(|_| searches),
                network: properties.name.clone(),
            },
        })
    }
}
