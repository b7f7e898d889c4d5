//! The loop: self-play, reanalysis, training and the gate, over one store.
//!
//! Each part is a worker that follows the [`Store`](crate::store::Store) and asks
//! nothing of the others. So there may be any number of actors and reanalysers, on any
//! machines, and any of them may be killed at any instant: what is lost is its own
//! unfinished shard.
//!
//! - [Actors](Actor) play games with the newest network, which they take up between two
//!   searches, as KataGo's do.
//! - [Reanalysers](Reanalyser) search positions of games that were played already, by
//!   people or by actors (MuZero Reanalyze, Schrittwieser et al. 2021).
//! - The [learner](Learner) trains on a window of the newest rows, so many steps a
//!   generation, and puts the average of its weights as the next network. It sees no row
//!   more often than is allowed on average, and waits for rows before it would.
//! - The [gate](Gate), if there is one, lets a network pass that does not lose a match
//!   against the one before.
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
