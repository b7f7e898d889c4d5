//! The agents: `mcts`, `policy`, `value`, `human`, `diffusion` and `world`.
//!
//! [`AgentKind`] names them and builds them. `mcts` is a
//! [`Search`]; the others answer from one or two batches of
//! evaluations. `human` also searches a little at high levels.

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
pub use human::{HIGHEST_RATING, LOWEST_RATING};
pub use options::{DiffusionOptions, HumanOptions, Options};

use diffusion::DiffusionAgent;
use human::HumanAgent;
use immediate::ImmediateAgent;
use std::sync::Arc;

/// An agent whose options can change between moves.
pub trait ConfigurableAgent: Agent {
    /// Plays by these options from now on. It keeps what it knows as far as that
    /// stays true.
    fn adjust(&mut self, options: &Options);

    /// Asks `backend` from now on, which evaluates every position as the one before
    /// it did.
    fn set_backend(&mut self, backend: Arc<dyn Backend>);
}

impl ConfigurableAgent for Search {
    fn adjust(&mut self, options: &Options) {
        self.imagine_by(&options.world);
        Search::adjust(self, &options.search);
    }

    fn set_backend(&mut self, backend: Arc<dyn Backend>) {
        Search::set_backend(self, backend);
    }
}

/// The agents that can be chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum AgentKind {
    /// PUCT over the network.
    #[default]
    Mcts,
    /// The move that the policy likes best: one evaluation.
    Policy,
    /// The most valuable of the policy's candidates: one evaluation for the
    /// position, and one after each candidate.
    Value,
    /// A move as people of a rating play it, sampled from the policy.
    Human,
    /// The move that a network reads off the future that it imagines.
    Diffusion,
    /// PUCT in the imagination of a network that has learned the rules.
    World,
}

impl AgentKind {
    /// The agent, thinking with `backend`.
    #[must_use]
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

    /// The family of networks that it is for; `None` where others will do.
    #[must_use]
    pub fn family(self) -> Option<&'static str> {
        match self {
            AgentKind::Diffusion => Some("diffusion"),
            AgentKind::World => Some("world"),
            AgentKind::Mcts | AgentKind::Policy | AgentKind::Value | AgentKind::Human => None,
        }
    }

    /// Returns whether it searches a tree, so that nodes and time are limits to it.
    #[must_use]
    pub fn searches(self) -> bool {
        matches!(self, AgentKind::Mcts | AgentKind::World)
    }
}
