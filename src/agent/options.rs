//! Settings of an agent.

use crate::backend::Decoding;
use crate::search::{Parameters, WorldOptions};

/// Options of the agent `human` alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HumanOptions {
    /// Whether it takes the time that a person might take.
    pub takes_time: bool,
}

/// Options of the agent `diffusion` alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffusionOptions {
    /// Evaluations in which it predicts a future; 0 leaves them to the clock.
    pub steps: usize,
}

impl Default for DiffusionOptions {
    fn default() -> DiffusionOptions {
        let steps = Decoding::default().steps;
        DiffusionOptions { steps }
    }
}

/// Everything that steers an agent, whichever it is; the defaults are the engine's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Settings of a search. Agents without a search use those that are not about trees: lines,
    /// seed, temperature, tablebases.
    pub search: Parameters,
    /// Share of the policy that a move is drawn from where the policy itself is
    /// sampled, in 0…1: the likeliest moves that together have it (nucleus sampling).
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
