//! Network families behind one interface.
//!
//! A family is an [`Architecture`]: parameters and a forward pass in tch. Families that evaluate
//! single positions are also [`Evaluator`]s. A [`Network`] is an architecture with its weights.
//! [`open`] loads an eager, differentiable network from a network file, and [`Network::write`]
//! saves it. `network/toy.rs`, which is compiled only for tests, shows the minimum that a family
//! must implement. The sizes of all families are defined in `network/config`.
//!
//! | family | description | trained here |
//! |---|---|---|
//! | [`Chessformer`] | our transformers over 64 tokens | yes |
//! | [`Lc0`] | Lc0's residual towers and attention bodies | continues from an imported network, in every input format |
//! | [`Maia3`] | Maia-3's transformers, which read ratings | continues from an imported network |
//! | [`Gpt`] | transformers over the moves of games | yes |
//! | [`Diffusion`] | a Chessformer that predicts the boards and moves of the next plies | yes |
//! | [`WorldModel`] | a Chessformer that also predicts the latent board after a move | yes |

mod architecture;
pub(crate) mod bitboards;
mod blocks;
pub mod chessformer;
mod config;
pub mod diffusion;
mod encoder;
mod evaluator;
mod exported;
mod family;
mod file;
mod frozen;
pub mod gpt;
mod layers;
pub mod lc0;
pub mod maia3;
pub mod merge;
mod outputs;
mod parameters;
mod planes;
mod program;
mod removed;
mod size;
mod taps;
#[cfg(test)]
#[path = "network/tests/toy.rs"]
pub(crate) mod toy;
pub mod world;

pub(crate) use architecture::PLANES;
pub use architecture::{
    Architecture, Evaluator, Interface, NotAnEvaluator, Pass, Positions, Structure,
};
pub use blocks::KvCache;
pub use chessformer::Chessformer;
pub use config::ArchitectureConfig;
#[cfg(test)]
pub(crate) use config::toy::ToyConfig;
pub use diffusion::Diffusion;
pub use exported::ExportedProgram;
pub use family::ArchitectureError;
pub(crate) use file::described;
pub use file::{About, Network, OpenError, Playable, WeightsError, architecture, open, open_any};
pub use frozen::FrozenNetwork;
pub use gpt::Gpt;
pub use layers::Activation;
pub use lc0::Lc0;
pub use maia3::Maia3;
pub use outputs::{Output, OutputSet, Outputs};
pub use parameters::{Initial, Parameter, ParameterGroup, Weights};
pub use program::{Compact, Program};
pub(crate) use removed::only_left;
pub use size::Size;
pub use taps::{Addition, Tap, Taps};
pub use world::WorldModel;
