//! An edge: a move from a node, two words of the arena.
//!
//! | word | bits | holds |
//! |---|---|---|
//! | 0 | 32, 32 | visits, the node it leads to |
//! | 1 | 16, 16, 16, 16 | the move, its rank, share of draws by history, visits in flight |
//!
//! Visits belong to edges, because several may lead to one node.

use super::arena::Index;
use super::prior::Rank;
use super::sync::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Words of an edge.
pub(crate) const EDGE: usize = 2;

const DRAWN_SHIFT: u32 = 32;
const IN_FLIGHT_SHIFT: u32 = 48;
const DRAWN_UNIT: f64 = 65_535.0;

/// An edge in the arena.
#[derive(Clone, Copy)]
pub(crate) struct Edge<'a>(&'a [AtomicU64; EDGE]);

impl<'a> Edge<'a> {
    pub(crate) fn new(words: &'a [AtomicU64; EDGE]) -> Edge<'a> {
        Edge(words)
    }

    /// Makes the words an edge without visits that leads nowhere yet.
    pub(crate) fn clear(self, mv: u16, rank: Rank) {
        self.0[0].store(0, Relaxed);
        let word = u64::from(mv) | u64::from(rank.bits()) << 16;
        self.0[1].store(word, Relaxed);
    }

    /// Visits, and the node it leads to; 0 if there is none yet.
    #[inline]
    pub(crate) fn visits_and_node(self) -> (u32, Index) {
        let word = self.0[0].load(Acquire);
        (word as u32, (word >> 32) as Index)
    }

    pub(crate) fn visits(self) -> u32 {
        self.visits_and_node().0
    }

    pub(crate) fn node(self) -> Index {
        self.visits_and_node().1
    }

    /// Lets it lead to `node`, unless another thread was first; where it leads
    /// then.
    pub(crate) fn link(self, node: Index) -> Index {
        let unlinked = |word: u64| (word >> 32 == 0).then_some(word | u64::from(node) << 32);
        match self.0[0].fetch_update(Release, Acquire, unlinked) {
            Ok(_) => node,
            Err(word) => (word >> 32) as Index,
        }
    }

    /// The move.
    pub(crate) fn mv(self) -> u16 {
        self.0[1].load(Relaxed) as u16
    }

    /// The move's place among its node's moves.
    #[inline]
    pub(crate) fn rank(self) -> Rank {
        Rank::from_bits((self.0[1].load(Relaxed) >> 16) as u16)
    }

    #[inline]
    pub(crate) fn in_flight(self) -> u32 {
        (self.0[1].load(Relaxed) >> IN_FLIGHT_SHIFT) as u32
    }

    /// Share of the visits, in 0…1, that ended on arrival because of the moves
    /// before: in a repetition, or by the 50-move rule.
    #[inline]
    pub(crate) fn drawn(self) -> f64 {
        let share = (self.0[1].load(Relaxed) >> DRAWN_SHIFT) & 0xffff;
        share as f64 / DRAWN_UNIT
    }

    /// Puts visits in flight; the caller keeps to
    /// [`MAX_IN_FLIGHT`](super::tree::MAX_IN_FLIGHT) at the root.
    pub(crate) fn start(self, visits: u32) {
        self.0[1].fetch_add(u64::from(visits) << IN_FLIGHT_SHIFT, Relaxed);
    }

    /// Takes visits out of flight.
    pub(crate) fn land(self, visits: u32) {
        self.0[1].fetch_sub(u64::from(visits) << IN_FLIGHT_SHIFT, Relaxed);
    }

    /// Adds visits, `drawn` of which ended by history.
    pub(crate) fn add(self, visits: u32, drawn: u32) {
        let before = self.0[0].fetch_add(visits.into(), Relaxed) as u32;
        if drawn > 0 || self.drawn() > 0.0 {
            let total = f64::from(before) + f64::from(visits);
            let share = (self.drawn() * f64::from(before) + f64::from(drawn)) / total.max(1.0);
            self.set_drawn(share);
        }
    }

    /// Forgets draws by history, and visits if all were such. Nothing else may
    /// be looking at it.
    pub(crate) fn forget_draws(self) {
        if self.node() == 0 {
            self.0[0].store(0, Relaxed);
        }
        self.set_drawn(0.0);
    }

    fn set_drawn(self, share: f64) {
        let code = (share.clamp(0.0, 1.0) * DRAWN_UNIT + 0.5) as u64;
        let _ = self.0[1].fetch_update(Relaxed, Relaxed, |word| {
            Some(word & !(0xffff << DRAWN_SHIFT) | code << DRAWN_SHIFT)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_kept_apart() {
        let words = [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)];
        let edge = Edge::new(&words);
        edge.clear(0xabcd, Rank::new(200, 31));
        assert_eq!((edge.visits_and_node(), edge.in_flight()), ((0, 0), 0));
        edge.start(40_000);
        assert_eq!((edge.link(77), edge.link(78)), (77, 77));
        edge.add(3, 0);
        assert_eq!(edge.drawn(), 0.0);
        edge.add(1, 1);
        assert!((edge.drawn() - 0.25).abs() < 1e-4);
        edge.add(4, 0);
        assert!((edge.drawn() - 0.125).abs() < 1e-4);
        edge.land(39_999);
        assert_eq!((edge.visits_and_node(), edge.in_flight()), ((8, 77), 1));
        assert_eq!((edge.mv(), edge.rank()), (0xabcd, Rank::new(200, 31)));
        edge.forget_draws();
        assert_eq!((edge.visits(), edge.drawn()), (8, 0.0));
    }
}
