//! A node: four words of the arena.
//!
//! | word | bits | holds |
//! |---|---|---|
//! | 0 | 32, 32 | visits, mean value |
//! | 1 | 24, 24, 8, 8 | mean draw probability, mean moves left, prior's code, number of the move |
//! | 2 | 32, 8, 8, 8, 8 | children, their number, legal moves, state, plies to the end |
//! | 3 | 32, 16, 16 | priors, visits in flight, the move that leads here |
//!
//! Values are seen by the side that moved here, so that a player compares its
//! moves by the values of their nodes as they are. The exception is
//! [`Outcome`], which is for the side to move.

use super::arena::Index;
use super::prior::Rank;
use super::shape::{Outcome, Shape, Stage};
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
};

/// Words of a node.
pub(crate) const NODE: usize = 4;
/// Visits in flight through the root at which no thread starts more. Their
/// number has 16 bits; the other half is for what all threads start at once.
pub(crate) const MAX_IN_FLIGHT: u32 = 1 << 15;

const VALUE_UNIT: f64 = (1u64 << 30) as f64;
const DRAW_UNIT: f64 = ((1u64 << 24) - 1) as f64;
/// Moves left are counted to 512 plies.
const LENGTH_UNIT: f64 = (1u64 << 15) as f64;
const MASK24: u64 = (1 << 24) - 1;
const RANK: u64 = 0xffff << 48;

/// Means over the visits of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Statistics {
    pub(crate) visits: u32,
    /// W − L for the side that moved here.
    pub(crate) q: f64,
    /// Probability of a draw.
    pub(crate) d: f64,
    /// Plies to the end of the game.
    pub(crate) m: f64,
}

/// What a batch of visits adds to a node: sums, not means.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) visits: u32,
    pub(crate) q: f64,
    pub(crate) d: f64,
    pub(crate) m: f64,
}

/// A node in the arena.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a>(&'a [AtomicU64; NODE]);

impl<'a> Node<'a> {
    pub(crate) fn new(words: &'a [AtomicU64; NODE]) -> Node<'a> {
        Node(words)
    }

    /// Makes the words a node without visits, reached by `mv`, which is `rank`
    /// among its parent's moves.
    pub(crate) fn clear(self, mv: u16, rank: Rank) {
        self.0[0].store(0, Relaxed);
        let rank = u64::from(rank.code()) << 48 | u64::from(rank.number()) << 56;
        self.0[1].store(rank, Relaxed);
        self.0[2].store(0, Relaxed);
        self.0[3].store(u64::from(mv) << 48, Relaxed);
    }

    /// Copies everything from another node.
    pub(crate) fn copy_from(self, other: Node<'_>) {
        for (to, from) in self.0.iter().zip(other.0) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }

    pub(crate) fn visits(self) -> u32 {
        self.0[0].load(Relaxed) as u32
    }

    /// Visits and mean value, of one moment.
    #[inline]
    pub(crate) fn visits_and_q(self) -> (u32, f32) {
        let word = self.0[0].load(Relaxed);
        (word as u32, unpack_q(word) as f32)
    }

    pub(crate) fn statistics(self) -> Statistics {
        let (first, second) = (self.0[0].load(Relaxed), self.0[1].load(Relaxed));
        Statistics {
            visits: first as u32,
            q: unpack_q(first),
            d: (second & MASK24) as f64 / DRAW_UNIT,
            m: (second >> 24 & MASK24) as f64 / LENGTH_UNIT,
        }
    }

    /// The move's place among its parent's moves.
    #[inline]
    pub(crate) fn rank(self) -> Rank {
        let word = self.0[1].load(Relaxed);
        Rank::new((word >> 48) as u8, (word >> 56) as u8)
    }

    /// Where the priors of the moves are.
    pub(crate) fn priors(self) -> Index {
        self.0[3].load(Relaxed) as Index
    }

    #[inline]
    pub(crate) fn in_flight(self) -> u32 {
        (self.0[3].load(Relaxed) >> 32) as u32 & 0xffff
    }

    /// The move that leads here.
    pub(crate) fn mv(self) -> u16 {
        (self.0[3].load(Relaxed) >> 48) as u16
    }

    /// Puts visits in flight; the caller keeps to [`MAX_IN_FLIGHT`] at the root.
    pub(crate) fn start(self, visits: u32) {
        self.0[3].fetch_add(u64::from(visits) << 32, Relaxed);
    }

    /// Takes visits out of flight.
    pub(crate) fn land(self, visits: u32) {
        self.0[3].fetch_sub(u64::from(visits) << 32, Relaxed);
    }

    #[inline]
    pub(crate) fn shape(self) -> Shape {
        Shape(self.0[2].load(Acquire))
    }

    /// Replaces the shape by what `change` makes of it; `None` leaves it.
    /// Returns what it was when it was replaced.
    pub(crate) fn reshape(self, mut change: impl FnMut(Shape) -> Option<Shape>) -> Option<Shape> {
        self.0[2]
            .fetch_update(AcqRel, Acquire, |word| {
                change(Shape(word)).map(|Shape(new)| new)
            })
            .ok()
            .map(Shape)
    }

    /// Records a proof. Sequentially consistent, so that of two threads that
    /// prove two children at once at least one sees both.
    pub(crate) fn prove(self, outcome: Outcome, plies: u8) {
        let _ = self.0[2].fetch_update(SeqCst, SeqCst, |word| {
            Some(Shape(word).with_outcome(outcome, plies).0)
        });
    }

    /// The shape, ordered after the caller's own [`Node::prove`].
    pub(crate) fn proven_shape(self) -> Shape {
        Shape(self.0[2].load(SeqCst))
    }

    /// Gives the moves priors and opens the node to descents. Only the thread
    /// that made it [`Stage::Pending`] may.
    pub(crate) fn expand(self, priors: Index, moves: u8) {
        let _ = self.0[3].fetch_update(Relaxed, Relaxed, |word| {
            Some(word & !0xffff_ffff | u64::from(priors))
        });
        self.reshape(|shape| Some(shape.with_moves(moves).with_stage(Stage::Expanded)));
    }

    /// Makes a node without moves or children of this one. Nothing else may be
    /// looking at it.
    pub(crate) fn strip(self) {
        let _ = self.0[3].fetch_update(Relaxed, Relaxed, |word| Some(word & !0xffff_ffff));
        self.reshape(|shape| {
            Some(
                shape
                    .with_children(0, 0)
                    .with_moves(0)
                    .with_stage(Stage::New),
            )
        });
    }

    /// Adds visits to the means. With `settled`, the value of all visits, old
    /// and new, becomes that. Returns what the parent must add to its sums,
    /// still in this node's view.
    pub(crate) fn add(self, sums: Sums, settled: Option<Statistics>) -> Sums {
        let mut flow = sums;
        let mut visits = 0;
        let _ = self.0[0].fetch_update(Relaxed, Relaxed, |word| {
            let (before, old) = (word as u32, unpack_q(word));
            visits = before.saturating_add(sums.visits);
            let total = f64::from(visits);
            let q = match settled {
                Some(settled) => {
                    flow.q = settled.q * total - old * f64::from(before);
                    settled.q
                }
                None => mean(old, sums.q, sums.visits, visits),
            };
            let q = (q.clamp(-1.0, 1.0) * VALUE_UNIT).round() as i32;
            Some(u64::from(visits) | u64::from(q as u32) << 32)
        });
        let _ = self.0[1].fetch_update(Relaxed, Relaxed, |word| {
            let old_d = (word & MASK24) as f64 / DRAW_UNIT;
            let old_m = (word >> 24 & MASK24) as f64 / LENGTH_UNIT;
            let (d, m) = match settled {
                Some(settled) => {
                    let (total, before) = (f64::from(visits), f64::from(visits - sums.visits));
                    flow.d = settled.d * total - old_d * before;
                    flow.m = settled.m * total - old_m * before;
                    (settled.d, settled.m)
                }
                None => (
                    mean(old_d, sums.d, sums.visits, visits),
                    mean(old_m, sums.m, sums.visits, visits),
                ),
            };
            let d = (d.clamp(0.0, 1.0) * DRAW_UNIT + 0.5) as u64;
            let m = ((m.max(0.0) * LENGTH_UNIT + 0.5) as u64).min(MASK24);
            Some(word & RANK | m << 24 | d)
        });
        flow
    }
}

/// The mean of all `total` visits, of which `new` add up to `sum`.
fn mean(old: f64, sum: f64, new: u32, total: u32) -> f64 {
    old + (sum - old * f64::from(new)) / f64::from(total.max(1))
}

fn unpack_q(word: u64) -> f64 {
    f64::from((word >> 32) as i32) / VALUE_UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> [AtomicU64; NODE] {
        std::array::from_fn(|_| AtomicU64::new(0))
    }

    #[test]
    fn means_stay_exact_over_many_visits() {
        let words = words();
        let node = Node::new(&words);
        node.clear(77, Rank::new(200, 31));
        node.start(3);
        for visit in 0..100_000 {
            let q = if visit % 4 == 0 { 0.9 } else { -0.7 };
            let sums = Sums {
                visits: 1,
                q,
                d: 0.1,
                m: 80.0,
            };
            node.add(sums, None);
        }
        let statistics = node.statistics();
        assert_eq!(statistics.visits, 100_000);
        assert!((statistics.q + 0.3).abs() < 1e-5);
        assert!((statistics.d - 0.1).abs() < 1e-4);
        assert!((statistics.m - 80.0).abs() < 1e-2);
        assert_eq!((node.mv(), node.in_flight()), (77, 3));
        assert_eq!(node.rank(), Rank::new(200, 31));
    }

    #[test]
    fn settling_tells_the_parent_the_difference() {
        let words = words();
        let node = Node::new(&words);
        let sums = Sums {
            visits: 4,
            q: 2.0,
            d: 0.4,
            m: 40.0,
        };
        node.add(sums, None);
        let settled = Statistics {
            q: 1.0,
            ..Statistics::default()
        };
        let one = Sums {
            visits: 1,
            q: 1.0,
            ..Sums::default()
        };
        let flow = node.add(one, Some(settled));
        assert_eq!(node.statistics().q, 1.0);
        assert!((flow.q - 3.0).abs() < 1e-8);
        assert!((flow.d + 0.4).abs() < 1e-5);
        assert!((flow.m + 40.0).abs() < 1e-3);
    }
}
