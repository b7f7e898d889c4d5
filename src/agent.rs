//! The agents: `mcts`, `policy`, `value`, `human`, `diffusion` and `world`.
//!
//! [`AgentKind`] names and builds the agents. `mcts` and `world` run a [`Search`]; the other agents
//! answer from evaluations alone, without a tree, except that `human` adds a short search at high
//! levels.

mod diffusion;
mod human;
mod immediate;
mod options;
mod policy;
pub(crate) mod sampling;
mod value;

use crate::backend::Backend;
use crate::play::Agent;
use crate::search::Search;
pub use human::{HIGHEST_RATING, LOWEST_RATING, thinking_time};
pub use options::{DiffusionOptions, HumanOptions, Options};

use diffusion::DiffusionAgent;
use human::HumanAgent;
use immediate::ImmediateAgent;
use std::sync::Arc;

/// An agent whose options can change between moves.
pub trait ConfigurableAgent: Agent {
    /// Applies these options from now on. The agent keeps all state that remains valid.
    fn adjust(&mut self, options: &Options);

    /// Replaces the backend with another that evaluates every position identically.
    fn set_backend(&mut self, backend: Arc<dyn Backend>);
}

impl ConfigurableAgent for Search {
    fn adjust(&mut self, options: &Options) {
        self.adjust_with(&options.search, &options.world);
    }

    fn set_backend(&mut self, backend: Arc<dyn Backend>) {
        Search::set_backend(self, backend);
    }
}

/// The available agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[cfg_attr(test, schema(as = Agent, description = "The agent that chooses the move."))]
pub enum AgentKind {
    /// PUCT over the network.
    #[default]
    Mcts,
    /// The policy's likeliest move, from one evaluation.
    Policy,
    /// The policy's candidate with the best value, from one evaluation of the position and one
    /// after each candidate.
    Value,
    /// A move sampled from the policy, as people of a given rating play.
    Human,
    /// The move that a network picks from an imagined continuation.
    Diffusion,
    /// PUCT in the imagination of a world model, which has learned the rules.
    World,
}

impl AgentKind {
    /// Creates the agent, which evaluates positions with `backend`.
    pub fn build(self, backend: Arc<dyn Backend>, options: &Options) -> Box<dyn ConfigurableAgent> {
        match self {
            AgentKind::Mcts => Box::new(Search::new(backend, &options.search)),
            AgentKind::Policy => Box::new(ImmediateAgent::new(policy::answer, 1, backend, options)),
            AgentKind::Value => Box::new(ImmediateAgent::new(
                value::answer,
                value::EVALUATIONS,
                backend,
                options,
            )),
            AgentKind::Human => Box::new(HumanAgent::new(backend, options)),
            AgentKind::Diffusion => Box::new(DiffusionAgent::new(backend, options)),
            AgentKind::World => Box::new(Search::in_imagination(
                backend,
                &options.search,
                &options.world,
            )),
        }
    }

    /// Returns the network family that the agent needs; `None` if any family will do.
    pub fn family(self) -> Option<&'static str> {
        match self {
            AgentKind::Diffusion => Some("diffusion"),
            AgentKind::World => Some("world"),
            AgentKind::Mcts | AgentKind::Policy | AgentKind::Value | AgentKind::Human => None,
        }
    }

    /// Returns whether the agent searches a tree, so that limits on nodes and time apply.
    pub fn searches(self) -> bool {
        matches!(self, AgentKind::Mcts | AgentKind::World)
    }
}
