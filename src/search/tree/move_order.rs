//! The order in which a node's moves are preferred.
//!
//! A live report sorts moves while other threads change the tree. Every value is therefore read
//! once, and the order is that of the values read.

use super::Tree;
use super::arena::Index;
use super::edge::Edge;
use super::header::{NodeHeader, Outcome};
use super::node::{Node, Statistics};
use super::prior::{self, Rank};
use super::value::edge_value;
use std::cmp::{Ordering, Reverse};

/// A snapshot of an edge. Other threads keep changing the tree, so the values that are sorted,
/// selected and shown are read once.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot<'a> {
    pub(crate) edge: Edge<'a>,
    /// The node that the edge leads to; 0 if it has none.
    pub(crate) node: Index,
    /// The node's proven outcome.
    pub(crate) header: NodeHeader,
    /// The node's value for the side that plays the move, with the edge's visits.
    pub(crate) statistics: Statistics,
    order: MoveOrder,
}

impl<'a> Snapshot<'a> {
    pub(crate) fn of(tree: &Tree, edge: Edge<'a>) -> Snapshot<'a> {
        // Read the visits first: a thread that sees them counted also sees the node they led to.
        let edge_visits = edge.edge_visits();
        let index = edge.node();
        let (header, value) = match index {
            0 => (
                NodeHeader::default(),
                edge_value(&Statistics::default(), 1.0),
            ),
            _ => {
                let node = tree.node(index);
                let value = edge_value(&node.statistics(), edge_visits.drawn());
                (node.header(), value)
            }
        };
        let statistics = Statistics {
            visits: edge_visits.visits(),
            ..value
        };
        Snapshot {
            edge,
            node: index,
            header,
            statistics,
            order: MoveOrder::new(header, &statistics, edge.rank()),
        }
    }
}

/// A move's sort key in the order of preference, where greater is better. Proven wins come first
/// (shorter ones before longer ones, tablebase wins last), then moves by visits, value and prior,
/// then proven losses (tablebase losses first, then longer ones before shorter ones).
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoveOrder {
    class: u8,
    urgency: i32,
    visits: u32,
    q: f64,
    rank: Rank,
}

impl MoveOrder {
    fn new(header: NodeHeader, statistics: &Statistics, rank: Rank) -> MoveOrder {
        let plies = i32::from(header.plies());
        let (class, urgency) = match header.outcome() {
            Outcome::Loss => (2, -plies),
            Outcome::Win => (0, plies),
            Outcome::Unknown | Outcome::Draw => (1, 0),
        };
        MoveOrder {
            class,
            urgency,
            visits: if class == 1 { statistics.visits } else { 0 },
            // Adding 0 makes negative and positive zero equal.
            q: statistics.q + 0.0,
            rank,
        }
    }
}

impl Ord for MoveOrder {
    fn cmp(&self, other: &MoveOrder) -> Ordering {
        let whole = |order: &MoveOrder| (order.class, order.urgency, order.visits);
        whole(self)
            .cmp(&whole(other))
            .then(self.q.total_cmp(&other.q))
            .then(self.rank.cmp(&other.rank))
    }
}

impl PartialOrd for MoveOrder {
    fn partial_cmp(&self, other: &MoveOrder) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MoveOrder {
    fn eq(&self, other: &MoveOrder) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for MoveOrder {}

/// Returns the value of a move for the side that plays it, with the move's visits.
pub(crate) fn edge_statistics(tree: &Tree, edge: Edge<'_>) -> Statistics {
    Snapshot::of(tree, edge).statistics
}

/// Returns the current sort key of a move.
pub(crate) fn move_order(tree: &Tree, edge: Edge<'_>) -> MoveOrder {
    Snapshot::of(tree, edge).order
}

/// Returns the best edge, or `None` if none has been visited.
pub(crate) fn best_edge<'a>(tree: &'a Tree, node: Node<'_>) -> Option<Edge<'a>> {
    tree.edges(node.header())
        .filter(|edge| edge.visits() > 0)
        .max_by_key(|&edge| move_order(tree, edge))
}

/// Returns the visited or proven edges of a node in order of preference, best first.
pub(crate) fn visited<'a>(tree: &'a Tree, header: NodeHeader) -> Vec<Snapshot<'a>> {
    let mut visited: Vec<Snapshot<'a>> = tree
        .edges(header)
        .map(|edge| Snapshot::of(tree, edge))
        .filter(|of| of.statistics.visits > 0 || of.header.outcome() != Outcome::Unknown)
        .collect();
    visited.sort_by_key(|snapshot| Reverse(snapshot.order));
    visited
}

pub(crate) fn prior_of(edge: Edge<'_>) -> f32 {
    prior::table()[usize::from(edge.rank().code())]
}

#[cfg(test)]
mod tests {
    use super::super::arena::Span;
    use super::super::testing::{expanded, grow};
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    /// An order that changed during the sort would make it panic, or would show up as increasing
    /// visits.
    #[test]
    fn moves_are_in_order_while_other_threads_visit_them() {
        let tree = Tree::new(1);
        let mut span = Span::default();
        expanded(&tree, &mut span, tree.root(), 218);
        for _ in 0..200 {
            grow(&tree, &mut span, tree.root()).unwrap();
        }
        let header = tree.root().header();
        for edge in tree.edges(header) {
            edge.add_in_flight(1);
            edge.complete(1, 1, 0);
        }
        let over = AtomicBool::new(false);
        let visit = || {
            let mut number = 0;
            while !over.load(Relaxed) {
                number = (number + 73) % 200;
                let edge = tree.edges(header).nth(number).unwrap();
                edge.add_in_flight(number as u32);
                edge.complete(number as u32, number as u32, 0);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(visit);
            // Other threads' visits fall between two reads only by chance, so give it some time.
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(300) {
                let visited = visited(&tree, header);
                let visits = visited.iter().map(|of| of.statistics.visits);
                let falls = visits.clone().is_sorted_by(|a, b| a >= b);
                // Ensures that the other thread ends even if this one fails.
                over.store(!falls, Relaxed);
                assert!(falls, "{:?}", visits.collect::<Vec<_>>());
            }
            over.store(true, Relaxed);
        });
    }

    #[test]
    fn wins_come_first_and_losses_last() {
        let of = |outcome, plies, visits, q| {
            let header = NodeHeader::default().with_outcome(outcome, plies);
            let statistics = Statistics {
                visits,
                q,
                ..Statistics::default()
            };
            MoveOrder::new(header, &statistics, Rank::new(9, 9))
        };
        let order = [
            of(Outcome::Loss, 3, 1, 1.0),
            of(Outcome::Loss, 5, 9, 1.0),
            of(Outcome::Unknown, 0, 5, 0.2),
            of(Outcome::Draw, 0, 4, 0.3),
            of(Outcome::Unknown, 0, 4, 0.0),
            of(Outcome::Win, 6, 9, -1.0),
            of(Outcome::Win, 2, 9, -1.0),
        ];
        assert!(order.is_sorted_by(|better, worse| better > worse));
        let zeros = [0.0, -0.0].map(|q| of(Outcome::Unknown, 0, 1, q));
        assert_eq!(zeros[0], zeros[1]);
    }
}
