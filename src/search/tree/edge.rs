//! An edge: a move from a node, stored in two words of the arena.
//!
//! | word | bits | contents |
//! |---|---|---|
//! | 0 | 32, 16, 16 | visits, visits in flight, share of draws by history |
//! | 1 | 32, 16, 16 | the node that it leads to, the move, the move's rank |
//!
//! Visits are counted on edges because several edges may lead to the same node. Everything that a
//! visit changes is in one word, so a visit needs one write on the way down and one on the way
//! back.

use super::arena::Index;
use super::prior::Rank;
use crate::search::sync::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Number of words in an edge.
pub(crate) const EDGE: usize = 2;

const IN_FLIGHT_SHIFT: u32 = 32;
const DRAWN_SHIFT: u32 = 48;
const DRAWN_UNIT: f64 = 65_535.0;
const MOVE_SHIFT: u32 = 32;
const RANK_SHIFT: u32 = 48;

/// An edge in the arena.
#[derive(Clone, Copy)]
pub(crate) struct Edge<'a>(&'a [AtomicU64; EDGE]);

/// A snapshot of an edge's visits.
#[derive(Clone, Copy)]
pub(crate) struct EdgeVisits(u64);

impl EdgeVisits {
    /// Returns the number of completed visits.
    #[inline]
    pub(crate) fn visits(self) -> u32 {
        self.0 as u32
    }

    /// Returns the number of visits in flight.
    #[inline]
    pub(crate) fn in_flight(self) -> u32 {
        u32::from((self.0 >> IN_FLIGHT_SHIFT) as u16)
    }

    /// Returns the number of visits, completed and in flight.
    #[inline]
    pub(crate) fn started(self) -> u32 {
        self.visits() + self.in_flight()
    }

    /// Returns the share (0…1) of completed visits that the preceding moves turned into draws: by
    /// repetition or by the 50-move rule.
    #[inline]
    pub(crate) fn drawn(self) -> f64 {
        (self.0 >> DRAWN_SHIFT) as f64 / DRAWN_UNIT
    }

    fn with_drawn(self, share: f64) -> EdgeVisits {
        let code = (share.clamp(0.0, 1.0) * DRAWN_UNIT + 0.5) as u64;
        EdgeVisits(self.0 & !(0xffff << DRAWN_SHIFT) | code << DRAWN_SHIFT)
    }
}

impl<'a> Edge<'a> {
    pub(crate) fn new(words: &'a [AtomicU64; EDGE]) -> Edge<'a> {
        Edge(words)
    }

    /// Initialises the words as an edge with no visits and no node.
    pub(crate) fn clear(self, mv: u16, rank: Rank) {
        self.0[0].store(0, Relaxed);
        let word = u64::from(mv) << MOVE_SHIFT | u64::from(rank.bits()) << RANK_SHIFT;
        self.0[1].store(word, Relaxed);
    }

    #[inline]
    pub(crate) fn edge_visits(self) -> EdgeVisits {
        EdgeVisits(self.0[0].load(Acquire))
    }

    /// Returns the number of completed visits.
    pub(crate) fn visits(self) -> u32 {
        self.edge_visits().visits()
    }

    /// Returns the node that the edge leads to, or 0 if it has none yet.
    #[inline]
    pub(crate) fn node(self) -> Index {
        self.0[1].load(Acquire) as Index
    }

    /// Links the edge to `node`, unless another thread has already linked it; returns the node to
    /// which the edge then leads.
    pub(crate) fn link(self, node: Index) -> Index {
        let unlinked = |word: u64| (word as Index == 0).then_some(word | u64::from(node));
        match self.0[1].fetch_update(Release, Acquire, unlinked) {
            Ok(_) => node,
            Err(word) => word as Index,
        }
    }

    /// Returns the move.
    pub(crate) fn mv(self) -> u16 {
        (self.0[1].load(Relaxed) >> MOVE_SHIFT) as u16
    }

    /// Returns the move's rank among its node's moves.
    #[inline]
    pub(crate) fn rank(self) -> Rank {
        Rank::from_bits((self.0[1].load(Relaxed) >> RANK_SHIFT) as u16)
    }

    /// Replaces the move's rank.
    pub(crate) fn set_rank(self, rank: Rank) {
        let rank = u64::from(rank.bits()) << RANK_SHIFT;
        let ranked = |word: u64| Some(word & !(0xffff << RANK_SHIFT) | rank);
        let _ = self.0[1].fetch_update(Release, Acquire, ranked);
    }

    /// Adds visits in flight and returns the previous state. At the root, the caller must respect
    /// [`MAX_IN_FLIGHT`](super::MAX_IN_FLIGHT).
    pub(crate) fn add_in_flight(self, visits: u32) -> EdgeVisits {
        EdgeVisits(self.0[0].fetch_add(u64::from(visits) << IN_FLIGHT_SHIFT, Relaxed))
    }

    /// Ends `completed` visits in flight and counts `visits` of them, including `drawn` draws by
    /// history. A thread that sees the counted visits also sees the node they led to.
    pub(crate) fn complete(self, completed: u32, visits: u32, drawn: u32) {
        let change = u64::from(visits).wrapping_sub(u64::from(completed) << IN_FLIGHT_SHIFT);
        let before = EdgeVisits(self.0[0].fetch_add(change, Release));
        if visits > 0 && (drawn > 0 || before.drawn() > 0.0) {
            let total = f64::from(before.visits()) + f64::from(visits);
            let draws = before.drawn() * f64::from(before.visits()) + f64::from(drawn);
            let _ = self.0[0].fetch_update(Release, Relaxed, |word| {
                Some(EdgeVisits(word).with_drawn(draws / total).0)
            });
        }
    }

    /// Removes the draws by history, and all visits if every one was such a draw. Requires
    /// exclusive access.
    pub(crate) fn forget_draws(self) {
        let edge_visits = match self.node() {
            0 => EdgeVisits(0),
            _ => self.edge_visits().with_drawn(0.0),
        };
        self.0[0].store(edge_visits.0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_kept_apart() {
        let words = [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)];
        let edge = Edge::new(&words);
        let parts = || {
            let edge_visits = edge.edge_visits();
            (
                edge_visits.visits(),
                edge_visits.in_flight(),
                edge_visits.drawn(),
            )
        };
        edge.clear(0xabcd, Rank::new(200, 31));
        assert_eq!((edge.node(), parts()), (0, (0, 0, 0.0)));
        assert_eq!(edge.add_in_flight(40_000).started(), 0);
        assert_eq!(edge.add_in_flight(3).started(), 40_000);
        assert_eq!((edge.link(77), edge.link(78)), (77, 77));
        edge.complete(5, 3, 0);
        assert_eq!(parts(), (3, 39_998, 0.0));
        edge.complete(1, 1, 1);
        assert!((edge.edge_visits().drawn() - 0.25).abs() < 1e-4);
        edge.complete(4, 4, 0);
        assert!((edge.edge_visits().drawn() - 0.125).abs() < 1e-4);
        edge.complete(39_992, 0, 0);
        assert_eq!((edge.edge_visits().started(), edge.node()), (9, 77));
        assert_eq!((edge.mv(), edge.rank()), (0xabcd, Rank::new(200, 31)));
        edge.forget_draws();
        assert_eq!(parts(), (8, 1, 0.0));
    }
}
