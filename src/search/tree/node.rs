//! A node: a position, stored in four words of the arena.
//!
//! | word | bits | contents |
//! |---|---|---|
//! | 0 | 32, 32 | visits, value |
//! | 1 | 16, 16 | draw probability, moves left |
//! | 2 | 64 | key of the position |
//! | 3 | | the [`NodeHeader`] |
//!
//! Values are means over the subtree, for the side that moved here, so that a player can compare
//! moves directly by the values of their nodes. [`Outcome`] is the exception: it is for the side to
//! move. Values are recomputed from the edges (see [`super::value`]), so few bits suffice.

use super::arena::Index;
use super::header::{NodeHeader, Outcome, Stage};
use crate::search::sync::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Number of words in a node.
pub(crate) const NODE: usize = 4;

const Q_UNIT: f64 = (1u64 << 30) as f64;
const D_UNIT: f64 = 65_535.0;
/// Resolution of moves left, which are counted up to 512 plies.
const M_UNIT: f64 = 128.0;

/// The value of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Statistics {
    pub(crate) visits: u32,
    /// W − L for the side that moved here.
    pub(crate) q: f64,
    /// The probability of a draw.
    pub(crate) d: f64,
    /// The expected number of plies to the end of the game.
    pub(crate) m: f64,
}

/// A node in the arena.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a>(&'a [AtomicU64; NODE]);

impl<'a> Node<'a> {
    pub(crate) fn new(words: &'a [AtomicU64; NODE]) -> Node<'a> {
        Node(words)
    }

    /// Initialises the words as a node without visits.
    pub(crate) fn clear(self, key: u64) {
        self.0[0].store(0, Relaxed);
        self.0[1].store(0, Relaxed);
        self.0[2].store(key, Relaxed);
        self.0[3].store(NodeHeader::default().0, Release);
    }

    /// Marks the words as free.
    pub(crate) fn free(self) {
        let free = NodeHeader::default().with_stage(Stage::Free);
        self.0[3].store(free.0, Release);
    }

    pub(crate) fn key(self) -> u64 {
        self.0[2].load(Relaxed)
    }

    pub(crate) fn visits(self) -> u32 {
        self.0[0].load(Relaxed) as u32
    }

    /// Returns a consistent snapshot of visits and value.
    #[inline]
    pub(crate) fn visits_and_q(self) -> (u32, f32) {
        let word = self.0[0].load(Relaxed);
        (word as u32, unpack_q(word) as f32)
    }

    #[inline]
    pub(crate) fn statistics(self) -> Statistics {
        let (first, second) = (self.0[0].load(Relaxed), self.0[1].load(Relaxed));
        let part = |shift: u32| f64::from((second >> shift) as u16);
        Statistics {
            visits: first as u32,
            q: unpack_q(first),
            d: part(0) / D_UNIT,
            m: part(16) / M_UNIT,
        }
    }

    /// Replaces the node's value.
    #[inline]
    pub(crate) fn set(self, statistics: &Statistics) {
        let q = statistics.q.clamp(-1.0, 1.0) * Q_UNIT;
        // Rounds half away from zero, without calling the C library.
        let q = (q + 0.5f64.copysign(q)) as i32;
        let first = u64::from(statistics.visits) | u64::from(q as u32) << 32;
        self.0[0].store(first, Relaxed);
        // The cast saturates.
        let part =
            |value: f64, unit: f64, shift: u32| u64::from((value * unit + 0.5) as u16) << shift;
        let second = part(statistics.d, D_UNIT, 0) | part(statistics.m, M_UNIT, 16);
        self.0[1].store(second, Relaxed);
    }

    #[inline]
    pub(crate) fn header(self) -> NodeHeader {
        NodeHeader(self.0[3].load(Acquire))
    }

    /// Replaces the header with the result of `change`, or leaves it if that is `None`. Returns the
    /// header that was replaced.
    pub(crate) fn update(
        self,
        mut change: impl FnMut(NodeHeader) -> Option<NodeHeader>,
    ) -> Option<NodeHeader> {
        self.0[3]
            .fetch_update(AcqRel, Acquire, |word| {
                change(NodeHeader(word)).map(|NodeHeader(new)| new)
            })
            .ok()
            .map(NodeHeader)
    }

    /// Records a proof. Further search only shortens wins and losses, so a thread with an older
    /// result does not lengthen them again.
    pub(crate) fn prove(self, outcome: Outcome, plies: u8) {
        self.update(|header| {
            let known = header.outcome() == outcome && header.plies() <= plies;
            (!known).then_some(header.with_outcome(outcome, plies))
        });
    }

    /// Gives the node its block, with priors for its moves, and opens the node to descents. Only
    /// the thread that made it [`Stage::Pending`] may call this.
    pub(crate) fn expand(self, block: Index, moves: u8) {
        self.update(|header| {
            let header = header.with_block(block).with_moves(moves);
            Some(header.with_stage(Stage::Expanded))
        });
    }

    /// Removes the node's moves but keeps its value. Requires exclusive access.
    pub(crate) fn strip(self) {
        self.update(|header| {
            let header = header.with_block(0).with_count(0).with_moves(0);
            Some(header.without_corrected().with_stage(Stage::New))
        });
    }
}

fn unpack_q(word: u64) -> f64 {
    f64::from((word >> 32) as i32) * (1.0 / Q_UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_keep_what_they_are_worth() {
        let words = std::array::from_fn(|_| AtomicU64::new(u64::MAX));
        let node = Node::new(&words);
        node.clear(77);
        assert_eq!((node.key(), node.visits()), (77, 0));
        let statistics = Statistics {
            visits: 3_999_999_999,
            q: -0.123_456_789,
            d: 0.25,
            m: 80.25,
        };
        node.set(&statistics);
        let kept = node.statistics();
        assert_eq!((kept.visits, kept.m), (3_999_999_999, 80.25));
        assert!((kept.q - statistics.q).abs() < 1e-9);
        assert!((kept.d - 0.25).abs() < 1e-5);
        assert_eq!((node.key(), node.header().stage()), (77, Stage::New));
        node.set(&Statistics {
            q: 7.0,
            m: 1e9,
            ..statistics
        });
        assert_eq!(
            (node.statistics().q, node.statistics().m),
            (1.0, 65_535.0 / 128.0)
        );
    }
}
