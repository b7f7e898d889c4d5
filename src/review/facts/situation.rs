//! A move, the lines after it, and the better lines.

use shakmaty::{Chess, Move};

/// A line of play that a search expects.
#[derive(Clone, Copy, Debug)]
pub struct Variation<'a> {
    /// Its moves.
    pub moves: &'a [Move],
    /// Whether the side that begins the line was proven to mate with it.
    pub mates: bool,
    /// The line's score in centipawns for the side that begins it, if known.
    pub centipawns: Option<i32>,
}

/// A move, and the move that should have been played.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The position before the move.
    pub before: &'a Chess,
    /// The opponent's move that led to the position.
    pub last: Option<Move>,
    /// The move played.
    pub played: Move,
    /// The best line.
    pub best: Variation<'a>,
    /// The opponent's best line after the move played.
    pub reply: Variation<'a>,
    /// Whether the lines are those of a judge, which can be followed until they are quiet, or of
    /// Tessera's own search.
    pub is_judged: bool,
}
