//! The block of an expanded node.
//!
//! | word | bits | contents |
//! |---|---|---|
//! | 0 | 32, 32 | the first two edges, the directory of the others (see [`super::edges`]) |
//! | 1 | 24, 16, 12, 12 | the position's own evaluation: value, draw probability, moves left, weight |
//! | from 2 | 8 each | the moves' priors (see [`super::prior`]) |

use super::arena::{Arena, Index, MAX_BLOCK};
use super::node::Statistics;
use super::prior;
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Number of words before the priors.
const HEADER: usize = 2;
const _: () = assert!(HEADER + prior::MAX_MOVES / 8 == MAX_BLOCK);

const Q_UNIT: f64 = ((1u64 << 23) - 1) as f64;
const D_UNIT: f64 = 65_535.0;
const M_UNIT: f64 = 8.0;
const MASK12: u64 = (1 << 12) - 1;

/// Returns the number of words in the block of a node with this many moves.
pub(crate) fn words(moves: usize) -> usize {
    HEADER + prior::words(moves)
}

/// Returns the index at which the priors start.
pub(crate) fn priors(block: Index) -> Index {
    block + HEADER as Index
}

/// A block in the arena.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    arena: &'a Arena,
    index: Index,
}

impl<'a> Block<'a> {
    pub(crate) fn new(arena: &'a Arena, index: Index) -> Block<'a> {
        Block { arena, index }
    }

    /// Initialises the block for a node without edges that has this evaluation.
    pub(crate) fn clear(self, own: &Statistics) {
        self.arena.word(self.index).store(0, Relaxed);
        let q = (own.q.clamp(-1.0, 1.0) + 1.0) * Q_UNIT + 0.5;
        let word = q as u64
            | ((own.d * D_UNIT + 0.5) as u16 as u64) << 24
            | ((own.m * M_UNIT + 0.5) as u64).min(MASK12) << 40;
        self.arena.word(self.index + 1).store(word, Relaxed);
    }

    /// Returns the position's own evaluation as the statistics of one visit.
    #[inline]
    pub(crate) fn own(self) -> Statistics {
        let word = self.arena.word(self.index + 1).load(Relaxed);
        Statistics {
            visits: 1,
            q: (word & 0xff_ffff) as f64 / Q_UNIT - 1.0,
            d: f64::from((word >> 24) as u16) / D_UNIT,
            m: (word >> 40 & MASK12) as f64 / M_UNIT,
        }
    }

    /// Returns the first two edges and the directory of the others.
    #[inline]
    pub(crate) fn edge_pointers(self) -> (Index, Index) {
        let word = self.arena.word(self.index).load(Acquire);
        (word as Index, (word >> 32) as Index)
    }

    /// Sets both pointers. Only the thread that has locked the node may call this.
    pub(crate) fn set_edge_pointers(self, pair: Index, directory: Index) {
        let word = u64::from(pair) | u64::from(directory) << 32;
        self.arena.word(self.index).store(word, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluations_are_kept_as_exactly_as_networks_make_them() {
        let mut arena = Arena::new(1);
        arena.reset(16);
        let block = Block::new(&arena, 4);
        for q in [-1.0, -0.7, 0.0, 1e-6, 0.333, 1.0] {
            let own = Statistics {
                visits: 1,
                q,
                d: 0.2,
                m: 77.5,
            };
            block.clear(&own);
            block.set_edge_pointers(7, 9);
            let kept = block.own();
            assert!(
                (kept.q - q).abs() < 1e-7 && (kept.d - 0.2).abs() < 1e-5,
                "{kept:?}"
            );
            assert_eq!((kept.m, block.edge_pointers()), (77.5, (7, 9)));
        }
    }
}
