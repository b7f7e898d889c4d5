//! Training examples of a family of networks, drawn from games.
//!
//! The loader decides which games and blocks come when. What an example is, how many
//! a game gives and how they lie side by side in a batch, [`Examples`] decide:
//! [`Positions`], of which a network sees one at a time, the same with the future that
//! follows ([`Horizon`]), whole [`Games`], or an [`Unroll`] of moves from a position on.

mod games;
mod horizon;
mod positions;
mod unroll;

pub use games::{GameColumns, GameTokens, Games};
pub use horizon::{Future, FuturePly, Horizon, HorizonColumns, Instead, WithFuture};
pub use positions::{PolicyTargets, PositionColumns, Positions};
pub use unroll::{Moment, Moments, Unroll, UnrollColumns, Unrolled};

use super::Curve;
use super::label::TargetRules;
use super::record::Record;
use super::replay::ReplayError;
use super::v6::{Chunk, V6Error};
use std::ops::Range;

/// A kind of examples.
pub trait Examples: Send + Sync + 'static {
    /// One of them with its targets.
    type Example: Send + Sync + 'static;
    /// Several of them in a batch.
    type Columns: Columns<Example = Self::Example>;

    /// Estimates the number of examples in this many games with this many labelled positions.
    fn expected(&self, games: f64, positions: f64) -> f64;

    /// Passes the examples of a game to `emit`. `keep` filters them: it is called once
    /// for each.
    ///
    /// # Errors
    /// [`ReplayError`] if the record does not describe a game; examples before the
    /// fault have been passed on.
    fn of_record(
        &self,
        record: &Record,
        rules: &TargetRules,
        keep: impl FnMut() -> bool,
        emit: impl FnMut(Self::Example),
    ) -> Result<(), ReplayError>;

    /// The same for the games of a chunk. Unusable records go to `bad`, whose error
    /// ends the reading.
    ///
    /// # Errors
    /// The error that `bad` returns.
    fn of_chunk<X>(
        &self,
        chunk: &Chunk,
        keep: impl FnMut() -> bool,
        emit: impl FnMut(Self::Example),
        bad: impl FnMut(V6Error) -> Result<(), X>,
    ) -> Result<(), X>
    where
        Self: Sized,
    {
        of_games(self, chunk, keep, emit, bad)
    }
}

/// The examples of a chunk's games, played through as records.
fn of_games<E: Examples, X>(
    examples: &E,
    chunk: &Chunk,
    mut keep: impl FnMut() -> bool,
    mut emit: impl FnMut(E::Example),
    mut bad: impl FnMut(V6Error) -> Result<(), X>,
) -> Result<(), X> {
    for record in chunk.games(&mut bad)? {
        let played = examples.of_record(&record, &OF_CHUNKS, &mut keep, &mut emit);
        if let Err(fault) = played {
            bad(V6Error {
                path: chunk.path().to_owned(),
                offset: 0,
                fault: fault.into(),
            })?;
        }
    }
    Ok(())
}

/// Examples side by side, ready to become tensors.
pub trait Columns: Default + Send + 'static {
    /// One of them.
    type Example;

    /// Adds one.
    fn push(&mut self, example: &Self::Example);

    /// Their number.
    fn len(&self) -> usize;

    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those at `places`.
    #[must_use]
    fn part(&self, places: Range<usize>) -> Self;
}

/// The targets of chunks: every position has a search.
const OF_CHUNKS: TargetRules = TargetRules {
    evals: None,
    played: false,
    noise: false,
    curve: Curve::Lc0,
    alternatives: None,
};
