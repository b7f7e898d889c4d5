//! `go perft`: counting the leaves of the tree of legal moves.

use crate::agent::Control;
use crate::chess::Game;
use shakmaty::{Chess, Move, Position};

/// Plies that are counted without looking whether to stop: a few milliseconds.
const UNINTERRUPTED: u32 = 3;

/// Deeper counts are cut to this. None has ever ended at a third of it, and the
/// stack holds it.
const DEEPEST: u32 = 50;

/// Counts the leaves after `depth` plies; each root move's share is handed to
/// `each` as it is known. `None` if `control` said stop first.
pub(crate) fn perft(
    game: &Game,
    depth: u32,
    control: &Control,
    mut each: impl FnMut(Move, u64),
) -> Option<u64> {
    let Some(below) = depth.min(DEEPEST).checked_sub(1) else {
        return Some(1);
    };
    let mut total = 0;
    for mv in game.position().legal_moves() {
        let mut position = game.position().clone();
        position.play_unchecked(mv);
        let leaves = count(&position, below, control)?;
        each(mv, leaves);
        total += leaves;
    }
    Some(total)
}

fn count(position: &Chess, depth: u32, control: &Control) -> Option<u64> {
    if depth <= UNINTERRUPTED {
        return (!control.stopped()).then(|| shakmaty::perft(position, depth));
    }
    let mut total = 0;
    for mv in position.legal_moves() {
        let mut position = position.clone();
        position.play_unchecked(mv);
        total += count(&position, depth - 1, control)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_known_ones() {
        let game = Game::default();
        let control = Control::default();
        for (depth, leaves) in [(0, 1), (1, 20), (2, 400), (3, 8902), (5, 4_865_609)] {
            let mut sum = 0;
            let total = perft(&game, depth, &control, |_, leaves| sum += leaves);
            assert_eq!(total, Some(leaves));
            assert!(depth == 0 || sum == leaves);
        }
    }

    #[test]
    fn a_count_can_be_stopped_at_any_depth() {
        for depth in [5, 9, u32::MAX] {
            let control = Control::default();
            control.stop();
            assert_eq!(perft(&Game::default(), depth, &control, |_, _| {}), None);
        }
    }
}
