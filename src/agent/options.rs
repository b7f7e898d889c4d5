//! The options of agents.

use crate::backend::Decoding;
use crate::search::{Parameters, WorldOptions};

/// Options of the agent `human` alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HumanOptions {
    /// Whether it takes as long as a person might.
    pub takes_time: bool,
}

/// Options of the agent `diffusion` alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffusionOptions {
    /// Evaluations in which it imagines a future; with 0 the clock decides.
    pub steps: usize,
}

impl Default for DiffusionOptions {
    fn default() -> DiffusionOptions {
        let steps = Decoding::default().steps;
        DiffusionOptions { steps }
    }
}

/// The options of any agent; the defaults are the engine's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The parameters of a search. Agents that do not search use those that do not concern
    /// the tree: lines, seed, temperature, tablebases.
    pub search: Parameters,
    /// Share of the policy from which moves are sampled, in 0…1, if the policy itself is
    /// sampled: the likeliest moves that together have it (nucleus sampling).
    pub top_p: f32,
    /// Options of the agent `human` alone.
    pub human: HumanOptions,
    /// Options of the agent `diffusion` alone.
    pub diffusion: DiffusionOptions,
    /// Options of the agent `world` alone.
    pub world: WorldOptions,
}

impl Default for Options {
    fn default() -> Options {
        Parameters::default().into()
    }
}

impl From<Parameters> for Options {
    fn from(search: Parameters) -> Options {
        Options {
            search,
            top_p: 1.0,
            human: HumanOptions::default(),
            diffusion: DiffusionOptions::default(),
            world: WorldOptions::default(),
        }
    }
}
