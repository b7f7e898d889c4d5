//! The self-play loop: self-play, reanalysis, training and gating through a shared store.
//!
//! Each worker polls the [`Store`](crate::store::Store) and does not depend on the other workers.
//! Any number of actors and reanalysers can therefore run on any machines. They can be killed at
//! any time, and lose only their own unfinished shards.
//!
//! - [Actors](Actor) play games with the newest network. They may switch to a newer network between
//!   two moves of a game, as in KataGo.
//! - [Reanalysers](Reanalyser) search positions of existing games, which people or actors have
//!   played (MuZero Reanalyze, Schrittwieser et al. 2021).
//! - The [learner](Learner) trains on a window of the newest rows, with a fixed number of steps per
//!   generation, and publishes its averaged weights as the next network. It limits the average
//!   number of times that a row is used, and waits for new rows if necessary.
//! - The optional [gate](Gate) rejects a network that loses a match against the last accepted one.
//! - The optional [gauntlet](Gauntlet) measures networks against the first one and the previous one.
//!
//! A *row* is a position with its targets, as in KataGo.

mod actor;
mod arena;
mod config;
mod context;
mod ending;
mod error;
mod gate;
mod gauntlet;
mod latest;
mod learner;
mod networks;
mod reanalyser;
mod report;
mod rows;
mod shard_uploader;
mod sprt;
mod window;
mod worker;

pub use actor::Actor;
pub use config::{
    ActorConfig, CycleConfig, GamesConfig, GateConfig, LearnerConfig, ReanalyserConfig,
    SearchConfig, Share, StrengthConfig,
};
pub use context::WorkerContext;
pub use ending::{FINAL, STOPPED, is_final, was_ended_by_others};
pub use error::{CycleConfigError, CycleError};
pub use gate::Gate;
pub use gauntlet::Gauntlet;
pub use learner::{Learner, Learning};
pub use reanalyser::Reanalyser;
pub use report::write_report;
pub use rows::Rows;
pub use sprt::Sprt;
pub use window::WindowConfig;
