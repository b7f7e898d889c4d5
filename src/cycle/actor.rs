//! Plays self-play games.

use super::config::{ActorConfig, CycleConfig};
use super::context::WorkerContext;
use super::error::CycleError;
use super::worker::work;
use crate::chess::Ratings;
use crate::selfplay::GamePlayer;
use rand::Rng;
use std::sync::Arc;

/// A worker that plays games with the newest network.
pub struct Actor<'a> {
    /// The loop's configuration.
    pub config: &'a CycleConfig,
    /// The actors' settings.
    pub actors: &'a ActorConfig,
}

impl Actor<'_> {
    /// Plays until stopped, or until the loop's last generation exists.
    ///
    /// # Errors
    /// [`CycleError`]; shards that have been written are kept.
    pub fn run(&self, context: &WorkerContext) -> Result<(), CycleError> {
        // Each run of an actor needs its own seed; otherwise, it would repeat the games of another
        // run.
        let plan = self
            .actors
            .plan(&self.config.search, rand::rng().random())?;
        let (plan, actors) = (&plan, self.actors);
        work(context, self.config, self.config.generations, |latest| {
            let reads_ratings = latest.network().properties().reads_ratings;
            let newest = Arc::clone(&latest);
            let mut player = GamePlayer::new(plan, move || newest.network());
            move |number, stopped: &dyn Fn() -> bool| {
                let foresight = actors.foresight.as_ref();
                player.play_by_futures(foresight.map(|it| it.at(latest.generation())));
                let played = player.play(number, stopped, &|_| {})?;
                Ok(played.map(|played| {
                    let mut record = played.to_record();
                    if !reads_ratings {
                        // The configured ratings are only an input for the network, not ratings of
                        // players.
                        record.ratings = Ratings::default();
                    }
                    record
                }))
            }
        })
    }
}
