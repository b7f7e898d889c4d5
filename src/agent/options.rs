//! What steers an agent.

use crate::nn::Decoding;
use crate::search::Parameters;

/// Everything that steers an agent, whichever it is; the defaults are the engine's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What steers a search. Agents that do not search heed what is not about trees:
    /// lines, seed, temperature, tablebases.
    pub search: Parameters,
    /// Share of the policy that a move is drawn from where the policy itself is
    /// sampled, in 0…1: the likeliest moves that together have it (nucleus sampling).
    pub top_p: f32,
    /// Evaluations in which the agent `diffusion` imagines a future; 0 leaves them to the
    /// clock.
    pub imagination_steps: usize,
    /// Whether the agent `human` takes the time that a person might take.
    pub human_time: bool,
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
            imagination_steps: Decoding::default().steps,
            human_time: false,
        }
    }
}
