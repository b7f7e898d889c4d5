//! Extracts a network family's training examples from games.
//!
//! The loader determines the order of games and blocks. An implementation of [`Examples`] defines
//! the kind of example, the number of examples per game, and the layout of a batch. An example is a
//! single position ([`PositionExamples`]), a position with its future ([`HorizonExamples`]), a whole game
//! ([`GameExamples`]), or a position with the next moves and the positions after them ([`UnrollExamples`]).

mod games;
mod horizon;
mod positions;
mod unroll;

pub use games::{GameColumns, GameExamples, GameTokens};
pub use horizon::{Future, FuturePly, HorizonColumns, HorizonExamples, Instead, WithFuture};
pub use positions::{PolicyTargets, PositionColumns, PositionExamples};
pub use unroll::{Moment, Moments, UnrollColumns, UnrollExamples, Unrolled};

use super::Curve;
use super::label::TargetRules;
use super::record::Record;
use super::replay::ReplayError;
use super::v6::{Chunk, V6Error};
use std::ops::Range;

/// A kind of examples.
pub trait Examples: Send + Sync + 'static {
    /// One example with its targets.
    type Example: Send + Sync + 'static;
    /// A batch of examples.
    type Columns: Columns<Example = Self::Example>;

    /// Estimates the number of examples in `games` games that have `positions` labelled positions.
    fn expected(&self, games: f64, positions: f64) -> f64;

    /// Passes the examples of a game to `emit`. `keep` is called once for each example, and returns
    /// whether to emit it.
    ///
    /// # Errors
    /// [`ReplayError`] if the record does not describe a game. The examples before the fault have
    /// already been emitted.
    fn of_record(
        &self,
        record: &Record,
        rules: &TargetRules,
        keep: impl FnMut() -> bool,
        emit: impl FnMut(Self::Example),
    ) -> Result<(), ReplayError>;

    /// Passes the examples of a chunk's games to `emit`. Unusable records are passed to `bad`; if
    /// `bad` returns an error, reading stops.
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

/// Converts a chunk's games to records and passes their examples to `emit`.
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
            bad(V6Error::new(&chunk.path, 0, fault))?;
        }
    }
    Ok(())
}

/// A batch of examples in columns, ready to become tensors.
pub trait Columns: Default + Send + 'static {
    /// The type of one example.
    type Example;

    /// Adds an example.
    fn push(&mut self, example: &Self::Example);

    /// Returns the number of examples.
    fn len(&self) -> usize;

    /// Returns whether the batch contains no examples.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the examples at `places`.
    fn part(&self, places: Range<usize>) -> Self;
}

/// The target rules for chunks, in which every position has a search result.
const OF_CHUNKS: TargetRules = TargetRules {
    evals: None,
    played: false,
    noise: false,
    curve: Curve::Lc0,
    alternatives: None,
};
