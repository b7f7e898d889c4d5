//! Habits: finding and allowing mates in one, and leaving pieces to be taken.

use crate::tactics::mates::faces_mate;
use crate::tactics::{Features, features_without_search};
use shakmaty::{Chess, Move};

/// Number of habits.
pub const HABITS: usize = 3;

/// The names of the habits: giving mate in a position in which a move gives mate; allowing mate in
/// one in a position in which the opponent threatens it and a move prevents it; leaving a piece to be
/// taken for nothing ([`Features::leaves_piece`]) in a position in which some moves do and others do
/// not.
pub const NAMES: [&str; HABITS] = ["finds mate in one", "allows mate in one", "leaves a piece"];

/// For each habit, which of a position's legal moves follow it; `None` if the position does not test
/// it.
pub type Followed = [Option<Vec<bool>>; HABITS];

/// Returns which of a position's legal moves follow each habit.
pub fn followed(position: &Chess, moves: &[Move]) -> Followed {
    let features = features_without_search(position, moves);
    let of = |habit: fn(&Features) -> bool| -> Vec<bool> { features.iter().map(habit).collect() };
    let is_choice = |moves: &Vec<bool>| moves.contains(&true) && moves.contains(&false);
    let mating = Some(of(|of| of.mates)).filter(|moves| moves.contains(&true));
    let allowing = Some(of(|of| of.allows_mate)).filter(is_choice);
    let allowing = allowing.filter(|_| faces_mate(position));
    [
        mating,
        allowing,
        Some(of(Features::leaves_piece)).filter(is_choice),
    ]
}

/// A habit in one position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Habit {
    /// Whether the move played follows it.
    pub played: bool,
    /// The predicted probability of the moves that follow it.
    pub predicted: f32,
}
