//! Positions with the next moves of their games, and the positions after those moves.

use super::{Columns, Examples, PositionColumns};
use crate::chess::{Ending, Game};
use crate::data::label::TargetRules;
use crate::data::legal::Legal;
use crate::data::record::Record;
use crate::data::replay::{ReplayError, along};
use crate::data::sample::{Policy, Sample, Wdl};
use crate::encode::InputFormat;
use shakmaty::Position;
use std::ops::Range;
use std::sync::Arc;

/// Average number of plies per game.
const PLIES: f64 = 85.0;

/// Extracts every main-line position before a move, with the next moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnrollExamples {
    /// The encoding of positions.
    pub format: InputFormat,
    /// Number of moves to unroll from each position.
    pub plies: usize,
}

/// The role of a position in an unrolled game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Moment {
    /// The game continues, or was aborted at this position.
    Playing,
    /// The game ended here by mate or by a draw under the rules.
    Over,
    /// After the end of the game.
    Gone,
    /// After the last known position of an aborted game.
    Unknown,
}

/// The positions of a game in order, each with the move played from it; the last one has no move.
pub type Moments = [(Sample, Option<u16>)];

/// A position with the next moves of its game. All examples from a game share its positions.
#[derive(Clone, Debug)]
pub struct Unrolled {
    game: Arc<Moments>,
    /// Whether the game ended under the rules of chess at its last position.
    is_over: bool,
    first: usize,
    plies: usize,
}

impl Unrolled {
    /// Returns the position after a number of plies: its role in the game, its sample and the move
    /// played. Past the end of the game, the last position is repeated without targets.
    fn at(&self, ply: usize) -> (Moment, &Sample, Option<u16>) {
        let last = self.game.len() - 1;
        let place = self.first + ply;
        let (sample, played) = &self.game[place.min(last)];
        let moment = match (place.cmp(&last), self.is_over) {
            (std::cmp::Ordering::Less, _) | (std::cmp::Ordering::Equal, false) => Moment::Playing,
            (std::cmp::Ordering::Equal, true) => Moment::Over,
            (std::cmp::Ordering::Greater, true) => Moment::Gone,
            (std::cmp::Ordering::Greater, false) => Moment::Unknown,
        };
        (moment, sample, *played)
    }
}

/// Returns the position after the last move as a sample, and whether the game ended there under the
/// rules of chess. If so, the rules determine the sample's targets.
fn last(game: &Game, format: InputFormat) -> (Sample, bool) {
    let (input, _) = format.encode(game);
    let ending = game.ending();
    let result = ending.map(|ending| match ending {
        Ending::Checkmate => Wdl::Loss,
        _ => Wdl::Draw,
    });
    let position = game.position();
    let sample = Sample {
        input,
        legal: Legal::of(&position.legal_moves(), position.turn()),
        policy: Policy::Unknown,
        result,
        q: result.map(Wdl::q),
        short_term: result.map(Wdl::q),
        moves_left: result.map(|_| 0.0),
        weight: 1.0,
    };
    (sample, ending.is_some())
}

impl Examples for UnrollExamples {
    type Example = Unrolled;
    type Columns = UnrollColumns;

    /// Estimates the number from an average game length. The number of labelled positions is not
    /// used: a main-line position may have no label, and variations have labels too.
    fn expected(&self, games: f64, _positions: f64) -> f64 {
        games * PLIES
    }

    fn of_record(
        &self,
        record: &Record,
        rules: &TargetRules,
        mut keep: impl FnMut() -> bool,
        mut emit: impl FnMut(Unrolled),
    ) -> Result<(), ReplayError> {
        let (positions, game) = along(self.format, record, rules)?;
        let kept: Vec<bool> = positions.iter().map(|_| keep()).collect();
        if !kept.contains(&true) {
            return Ok(());
        }
        let (last, is_over) = last(&game, self.format);
        let moments = positions.into_iter().map(|it| (it.sample, Some(it.played)));
        let moments: Arc<Moments> = moments.chain([(last, None)]).collect();
        for (first, _) in kept.into_iter().enumerate().filter(|(_, kept)| *kept) {
            emit(Unrolled {
                game: Arc::clone(&moments),
                is_over,
                first,
                plies: self.plies,
            });
        }
        Ok(())
    }
}

/// A batch of B examples with K moves and K + 1 consecutive positions each.
#[derive(Clone, Debug, Default)]
pub struct UnrollColumns {
    /// The B · (K + 1) positions, grouped by example. Positions past the end of a game have no
    /// targets.
    pub positions: PositionColumns,
    /// The role of each of the B · (K + 1) positions in its game.
    pub moments: Vec<Moment>,
    /// The B · K moves as policy indices; 0 if no move was played.
    pub moves: Vec<i64>,
    /// The number K of moves.
    pub plies: usize,
}

impl Columns for UnrollColumns {
    type Example = Unrolled;

    fn push(&mut self, example: &Unrolled) {
        self.plies = example.plies;
        for ply in 0..=example.plies {
            let (moment, sample, played) = example.at(ply);
            match moment {
                Moment::Playing | Moment::Over => self.positions.push(sample),
                Moment::Gone | Moment::Unknown => self.positions.push(&Sample {
                    legal: Legal::default(),
                    policy: Policy::Unknown,
                    weight: 0.0,
                    ..sample.clone()
                }),
            }
            self.moments.push(moment);
            if ply < example.plies {
                let is_there = moment == Moment::Playing;
                let played = played.filter(|_| is_there).unwrap_or(0);
                self.moves.push(played.into());
            }
        }
    }

    fn len(&self) -> usize {
        self.moments.len() / (self.plies + 1)
    }

    fn part(&self, places: Range<usize>) -> UnrollColumns {
        let of = |each: usize| places.start * each..places.end * each;
        let positions = of(self.plies + 1);
        UnrollColumns {
            positions: self.positions.part(positions.clone()),
            moments: self.moments[positions].to_vec(),
            moves: self.moves[of(self.plies)].to_vec(),
            plies: self.plies,
        }
    }
}

#[cfg(test)]
mod tests;
