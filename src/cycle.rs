//! The self-play loop: self-play, reanalysis, training and the gate, which share one store.
//!
//! Each part is a worker that follows the [`Store`](crate::store::Store) and does not depend on the
//! others. Any number of actors and reanalysers can therefore run on any machines, and each can be
//! killed at any time: it loses only its own unfinished shard.
//!
//! - [Actors](Actor) play games with the newest network. They switch networks between two searches,
//!   as in KataGo.
//! - [Reanalysers](Reanalyser) search positions from existing games again, whether people or actors
//!   played them (MuZero Reanalyze, Schrittwieser et al. 2021).
//! - The [learner](Learner) trains on a window of the newest rows, with a fixed number of steps per
//!   generation, and publishes its averaged weights as the next network. It limits how often a row
//!   is used on average, and waits for new rows if necessary.
//! - The optional [gate](Gate) passes a network unless it loses a match against the previous one.
//!
//! A *row* is a position with its targets, as in KataGo.

mod actor;
mod config;
mod context;
mod ending;
mod error;
mod gate;
mod latest;
mod learner;
mod networks;
mod reanalyser;
mod rows;
mod shard_uploader;
mod sprt;
mod window;
mod worker;

pub use actor::Actor;
pub use config::{
    ActorConfig, CycleConfig, GamesConfig, GateConfig, LearnerConfig, ReanalyserConfig,
    SearchConfig, Share,
};
pub use context::WorkerContext;
pub use ending::{FINAL, is_final, was_ended_by_others};
pub use error::{CycleConfigError, CycleError};
pub use gate::Gate;
pub use learner::{Learner, Learning};
pub use reanalyser::Reanalyser;
pub use rows::Rows;
pub use sprt::Sprt;
pub use window::WindowConfig;
