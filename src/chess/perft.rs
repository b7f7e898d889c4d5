//! Counts the leaves of the tree of legal moves, which is the usual test of move generation.

use super::after;
use rayon::prelude::*;
use shakmaty::{Chess, Move, Position};

/// Subtrees up to this depth are counted on one thread without checking for a stop, which takes a
/// few milliseconds. Distributing smaller subtrees costs more time than it saves.
const SEQUENTIAL_DEPTH: u32 = 3;

/// Maximum depth. No perft has ever been completed at a third of this depth, and the stack is large
/// enough for it.
const DEEPEST: u32 = 50;

/// Counts the sequences of `depth` legal moves from `position`, on all cores. Passes each first
/// move, in the order of generation, and its count to `each` as soon as the count is known. Returns
/// `None` if `stopped` returns true.
pub fn divide(
    position: &Chess,
    depth: u32,
    stopped: &(impl Fn() -> bool + Sync),
    mut each: impl FnMut(Move, u64),
) -> Option<u64> {
    let Some(below) = depth.min(DEEPEST).checked_sub(1) else {
        return Some(1);
    };
    let mut total = 0;
    for mv in position.legal_moves() {
        let leaves = count(&after(position, mv), below, stopped)?;
        each(mv, leaves);
        total += leaves;
    }
    Some(total)
}

/// Counts sequences of legal moves. The moves of the last ply are counted without being played.
fn count(position: &Chess, depth: u32, stopped: &(impl Fn() -> bool + Sync)) -> Option<u64> {
    if depth <= SEQUENTIAL_DEPTH {
        return (!stopped()).then(|| shakmaty::perft(position, depth));
    }
    let moves = position.legal_moves();
    moves
        .par_iter()
        .map(|&mv| count(&after(position, mv), depth - 1, stopped))
        .try_reduce(|| 0, |left, right| Some(left + right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use shakmaty::CastlingMode;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn parallel_and_sequential_counts_agree_with_the_known_ones() {
        let kiwipete = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1";
        let game = Game::from_fen(kiwipete, CastlingMode::Standard).unwrap();
        for (depth, count) in [(0, 1), (1, 48), (2, 2039), (3, 97862), (4, 4_085_603)] {
            let all = divide(game.position(), depth, &|| false, |_, _| {});
            assert_eq!(all, Some(count));
        }
    }

    #[test]
    fn the_moves_add_up_to_the_whole() {
        let start = Chess::default();
        for (depth, leaves) in [(1, 20), (2, 400), (3, 8902), (5, 4_865_609)] {
            let mut moves = Vec::new();
            let total = divide(&start, depth, &|| false, |mv, leaves| {
                moves.push((mv, leaves));
            });
            assert_eq!(total, Some(leaves));
            assert_eq!(moves.iter().map(|(_, leaves)| leaves).sum::<u64>(), leaves);
            assert!(moves.iter().map(|&(mv, _)| mv).eq(start.legal_moves()));
        }
        let none = |_, _| panic!("there is no move to divide by");
        assert_eq!(divide(&start, 0, &|| false, none), Some(1));
    }

    #[test]
    fn a_mated_side_has_no_moves() {
        let fen = "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1";
        let mate = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        let none = |_, _| panic!("there is no move to divide by");
        assert_eq!(divide(mate.position(), 5, &|| false, none), Some(0));
    }

    #[test]
    fn a_count_can_be_stopped_at_any_depth() {
        let start = Chess::default();
        for depth in [5, 9, u32::MAX] {
            assert_eq!(divide(&start, depth, &|| true, |_, _| {}), None);
        }
        let stop = AtomicBool::new(false);
        let mut known = 0;
        let total = divide(&start, 5, &|| stop.load(Ordering::Relaxed), |_, _| {
            known += 1;
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!((total, known), (None, 1));
    }
}
