//! The value of a node: the mean of its own evaluation and its children's values, weighted by the
//! visits of the edges.
//!
//! Backup recomputes this value from the children instead of accumulating it. A new value that one
//! path finds for a transposition therefore reaches every other path immediately, as in KataGo's
//! Monte-Carlo graph search ("Monte-Carlo Graph Search from First Principles", Wu 2023; Czech et
//! al. 2021).

use super::Tree;
use super::header::{OUT_OF_SIGHT, Outcome, Stage};
use super::node::{Node, Statistics};

/// The statistics of a draw, for either side.
const DRAWN: Statistics = Statistics {
    visits: 0,
    q: 0.0,
    d: 1.0,
    m: 0.0,
};

/// Returns the value of a proven position for the side that moved there. A distance of
/// [`OUT_OF_SIGHT`] counts as 0 plies.
pub(crate) fn proven_value(outcome: Outcome, plies: u8) -> Statistics {
    Statistics {
        visits: 1,
        q: outcome.value(),
        d: f64::from(u8::from(outcome == Outcome::Draw)),
        m: match plies {
            OUT_OF_SIGHT => 0.0,
            plies => plies.into(),
        },
    }
}

/// Returns the value of an edge: the value of its node, mixed with a draw in proportion to the
/// visits drawn by history.
pub(crate) fn edge_value(node: &Statistics, drawn: f64) -> Statistics {
    if drawn == 0.0 {
        return *node;
    }
    let kept = 1.0 - drawn;
    let mean = |of_node: f64, of_draw: f64| of_node * kept + of_draw * drawn;
    Statistics {
        visits: node.visits,
        q: mean(node.q, DRAWN.q),
        d: mean(node.d, DRAWN.d),
        m: mean(node.m, DRAWN.m),
    }
}

/// Sums weighted by visits.
#[derive(Default)]
struct Sums {
    visits: u32,
    q: f64,
    d: f64,
    m: f64,
}

impl Sums {
    #[inline]
    fn add(&mut self, visits: u32, part: &Statistics, q: f64, m: f64) {
        self.visits = self.visits.saturating_add(visits);
        let weight = f64::from(visits);
        self.q += weight * q;
        self.d += weight * part.d;
        self.m += weight * m;
    }
}

impl Tree {
    /// Computes the value of an expanded or proven node.
    pub(crate) fn refresh(&self, node: Node<'_>) {
        let header = node.header();
        let mut sums = Sums::default();
        if header.stage() == Stage::Expanded {
            let own = self.block(header).own();
            sums.add(1, &own, own.q, own.m);
            for edge in self.edges(header) {
                let edge_visits = edge.edge_visits();
                if edge_visits.visits() == 0 {
                    continue;
                }
                let child = match edge.node() {
                    0 => DRAWN,
                    to => edge_value(&self.node(to).statistics(), edge_visits.drawn()),
                };
                sums.add(edge_visits.visits(), &child, -child.q, child.m + 1.0);
            }
        }
        let visits = sums.visits.max(1);
        if header.outcome() != Outcome::Unknown {
            node.set(&Statistics {
                visits,
                ..proven_value(header.outcome(), header.plies())
            });
        } else if sums.visits > 0 {
            let weight = f64::from(visits);
            node.set(&Statistics {
                visits,
                q: sums.q / weight,
                d: sums.d / weight,
                m: sums.m / weight,
            });
        }
    }
}
