//! The gauntlet: games that measure how strong a new network is.

use super::arena::Arena;
use super::config::{CycleConfig, StrengthConfig, openings};
use super::context::WorkerContext;
use super::error::CycleError;
use super::networks::Networks;
use super::shard_uploader::put_any;
use crate::backend::Backend;
use crate::store::{Games, Generation, Generations, Name, Strength};
use std::sync::Arc;

/// The worker that measures new networks. It decides nothing. If it falls behind, it measures the
/// newest network and leaves out those before.
pub struct Gauntlet<'a> {
    /// The loop's configuration.
    pub config: &'a CycleConfig,
    /// The settings of the games.
    pub strength: &'a StrengthConfig,
}

impl Gauntlet<'_> {
    /// Measures networks until stopped, or until the loop's last generation has been measured.
    ///
    /// # Errors
    /// [`CycleError`]; measurements that have been written are kept.
    pub fn run(&self, context: &WorkerContext) -> Result<(), CycleError> {
        let mut generations = Generations::default();
        let mut measured = 0;
        loop {
            context.tolerate(generations.look(context.store))?;
            let last = generations.last().map(|last| last.number);
            let is_over = self.config.generations.is_some_and(|end| last >= Some(end));
            let newest = generations.accepted().filter(|newest| {
                let is_due = is_over || newest.number.is_multiple_of(self.strength.every);
                newest.number > measured && is_due
            });
            let Some(newest) = newest else {
                if is_over || !context.wait(self.config.poll) {
                    return Ok(());
                }
                continue;
            };
            let Some(()) = context.tolerate(self.measure(context, newest))? else {
                if !context.wait(self.config.poll) {
                    return Ok(());
                }
                continue;
            };
            measured = newest.number;
        }
    }

    /// Measures a network, unless this has been done. Returns `None` if the match was stopped.
    fn measure(
        &self,
        context: &WorkerContext,
        newest: &Generation,
    ) -> Result<Option<()>, CycleError> {
        let store = context.store;
        let name = Name::strength(newest.number);
        if store.get(&name)?.is_some() {
            return Ok(Some(()));
        }
        let networks = Networks::new(store, &self.config.search, context.threads);
        let network = networks.load(newest)?;
        let manifest = |number| {
            let name = Name::generation(number);
            let found = store.manifest(&name, number)?;
            found.ok_or(CycleError::Missing {
                name,
                what: "missing",
            })
        };
        let play = |opponent: &Generation| {
            let backends = [Arc::clone(&network), networks.load(opponent)?];
            self.play(context, newest.number, opponent.number, backends)
        };
        let mut opponent = manifest(newest.number - 1)?;
        // The initial network is always accepted.
        while !opponent.is_accepted() {
            opponent = manifest(opponent.number - 1)?;
        }
        let Some(previous) = play(&opponent)? else {
            return Ok(None);
        };
        let first = match opponent.number {
            0 => Some(previous),
            _ => play(&manifest(0)?)?,
        };
        let Some(first) = first else {
            return Ok(None);
        };
        let strength = Strength {
            number: newest.number,
            first,
            previous,
        };
        put_any(store, &name, &strength.to_json())?;
        (context.tell)(&format!("generation {}: {strength}", newest.number));
        Ok(Some(()))
    }

    /// Plays the games against one opponent. Returns `None` if they were stopped.
    fn play(
        &self,
        context: &WorkerContext,
        number: u64,
        opponent: u64,
        backends: [Arc<dyn Backend>; 2],
    ) -> Result<Option<Games>, CycleError> {
        let settings = self.strength;
        let openings = openings(&settings.openings, settings.random_plies, number)?;
        let search = &self.config.search;
        let arena = Arena::new(
            backends,
            search,
            openings,
            settings.visits,
            settings.max_plies,
        )?;
        let pairs = (settings.games / 2).max(1);
        let score = arena.play(pairs, |_| false, &|| context.is_stopped())?;
        Ok(score.map(|score| {
            let [wins, draws, losses] = score.games;
            Games {
                opponent,
                wins,
                draws,
                losses,
            }
        }))
    }
}
