//! What a node is worth: its own evaluation and the worth of the nodes that its
//! edges lead to, each as often as the edge was visited.
//!
//! It is worked out anew whenever a visit has come by, never added up, so that
//! what is learnt of a position on one way to it counts on every other. The
//! method is that of Monte-Carlo graph search as KataGo has it ("Monte-Carlo
//! Graph Search from First Principles", Wu 2023; Czech et al. 2021).

use super::Parameters;
use super::node::{Node, Statistics};
use super::shape::{OUT_OF_SIGHT, Outcome, Stage};
use super::tree::Tree;

/// A draw, for either side.
const DRAWN: Statistics = Statistics {
    visits: 0,
    q: 0.0,
    d: 1.0,
    m: 0.0,
    weight: 1.0,
    spread: 0.0,
};

/// Most that an evaluation can weigh (KataGo: uncertaintyMaxWeight).
const MAX_WEIGHT: f32 = 8.0;

/// How much an evaluation counts that is expected to be off by so much.
pub(crate) fn weight(parameters: &Parameters, error: f32) -> f32 {
    let coefficient = parameters.uncertainty_coefficient;
    match coefficient > 0.0 {
        true => coefficient / (error + coefficient / MAX_WEIGHT),
        false => 1.0,
    }
}

/// What a proven position is worth to the side that moved there. Where the end is
/// out of sight the game is as good as over.
pub(crate) fn known(outcome: Outcome, plies: u8) -> Statistics {
    Statistics {
        visits: 1,
        q: outcome.value(),
        d: f64::from(u8::from(outcome == Outcome::Draw)),
        m: match plies {
            OUT_OF_SIGHT => 0.0,
            plies => plies.into(),
        },
        ..DRAWN
    }
}

/// What a move is worth to the player: that of the node it leads to, and a draw
/// where the moves before made it one.
pub(crate) fn blend(node: &Statistics, drawn: f64) -> Statistics {
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
        weight: mean(node.weight, DRAWN.weight),
        spread: node.spread * kept,
    }
}

/// Sums over visits.
#[derive(Default)]
struct Sums {
    visits: u32,
    weight: f64,
    q: f64,
    squares: f64,
    d: f64,
    m: f64,
}

impl Sums {
    #[inline]
    fn add(&mut self, visits: u32, part: &Statistics, q: f64, m: f64) {
        self.visits = self.visits.saturating_add(visits);
        let weight = f64::from(visits) * part.weight;
        self.weight += weight;
        self.q += weight * q;
        self.squares += weight * (q * q + part.spread * part.spread);
        self.d += weight * part.d;
        self.m += weight * m;
    }
}

impl Tree {
    /// Works out what an expanded or proven node is worth.
    pub(crate) fn refresh(&self, node: Node<'_>) {
        let shape = node.shape();
        let mut sums = Sums::default();
        if shape.stage() == Stage::Expanded {
            let own = self.block(shape).own();
            sums.add(1, &own, own.q, own.m);
            for edge in self.edges(shape) {
                let traffic = edge.traffic();
                if traffic.visits() == 0 {
                    continue;
                }
                let child = match edge.node() {
                    0 => Statistics {
                        weight: self.certain_weight(),
                        ..DRAWN
                    },
                    to => blend(&self.node(to).statistics(), traffic.drawn()),
                };
                sums.add(traffic.visits(), &child, -child.q, child.m + 1.0);
            }
        }
        let visits = sums.visits.max(1);
        if shape.outcome() != Outcome::Unknown {
            node.set(&Statistics {
                visits,
                weight: self.certain_weight(),
                ..known(shape.outcome(), shape.plies())
            });
        } else if sums.weight > 0.0 {
            let q = sums.q / sums.weight;
            let variance = sums.squares / sums.weight - q * q;
            node.set(&Statistics {
                visits,
                q,
                d: sums.d / sums.weight,
                m: sums.m / sums.weight,
                weight: sums.weight / f64::from(visits),
                spread: variance.max(0.0).sqrt(),
            });
        }
    }
}
