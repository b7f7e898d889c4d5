//! The options of the agents.

use crate::backend::Decoding;
use crate::search::{Parameters, WorldOptions};

/// Options that apply only to the agent `human`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HumanOptions {
    /// Whether the agent takes as long as a person might.
    pub takes_time: bool,
}

/// Options that apply only to the agent `diffusion`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffusionOptions {
    /// Number of evaluations for imagining a future; with 0, the clock decides.
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
    /// The parameters of a search. Agents that do not search use only those that do not concern the
    /// tree: lines, seed, temperature, tablebases.
    pub search: Parameters,
    /// If the policy itself is sampled, only the likeliest moves that together have this share of
    /// the probability (0…1) are considered (nucleus sampling).
    pub top_p: f32,
    /// Options that apply only to the agent `human`.
    pub human: HumanOptions,
    /// Options that apply only to the agent `diffusion`.
    pub diffusion: DiffusionOptions,
    /// Options that apply only to the agent `world`.
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
