//! Counting the leaves of the tree of legal moves: the usual proof that moves
//! are generated rightly.

use rayon::prelude::*;
use shakmaty::{Chess, Move, Position};

/// Depth up to which a subtree is counted on one thread: handing out smaller
/// ones costs more than it saves.
const SEQUENTIAL_DEPTH: u32 = 3;

/// Sequences of `depth` legal moves from `position`, counted on every core.
///
/// The last ply is counted without being played.
#[must_use]
pub fn perft(position: &Chess, depth: u32) -> u64 {
    if depth <= SEQUENTIAL_DEPTH {
        return shakmaty::perft(position, depth);
    }
    let moves = position.legal_moves();
    moves
        .par_iter()
        .map(|&mv| perft(&after(position, mv), depth - 1))
        .sum()
}

/// [`perft`] move by move, in the order of generation; a `depth` below 1 has
/// no moves.
#[must_use]
pub fn divide(position: &Chess, depth: u32) -> Vec<(Move, u64)> {
    let Some(below) = depth.checked_sub(1) else {
        return Vec::new();
    };
    let moves = position.legal_moves();
    moves
        .par_iter()
        .map(|&mv| (mv, perft(&after(position, mv), below)))
        .collect()
}

fn after(position: &Chess, mv: Move) -> Chess {
    let mut child = position.clone();
    child.play_unchecked(mv);
    child
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use shakmaty::CastlingMode;

    #[test]
    fn parallel_and_sequential_counts_agree_with_the_known_ones() {
        let kiwipete = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1";
        let game = Game::from_fen(kiwipete, CastlingMode::Standard).unwrap();
        for (depth, count) in [(0, 1), (1, 48), (2, 2039), (3, 97862), (4, 4_085_603)] {
            assert_eq!(perft(game.position(), depth), count);
        }
    }

    #[test]
    fn the_moves_add_up_to_the_whole() {
        let start = Chess::default();
        let moves = divide(&start, 4);
        assert_eq!(moves.len(), 20);
        assert_eq!(moves.iter().map(|(_, count)| count).sum::<u64>(), 197_281);
        assert!(divide(&start, 0).is_empty());
    }

    #[test]
    fn a_mated_side_has_no_moves() {
        let fen = "R5k1/5ppp/8/8/8/8/8/4K3 b - - 0 1";
        let mate = Game::from_fen(fen, CastlingMode::Standard).unwrap();
        assert_eq!(perft(mate.position(), 5), 0);
        assert!(divide(mate.position(), 5).is_empty());
    }
}
