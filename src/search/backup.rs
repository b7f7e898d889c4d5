//! Backup: what visits found out, added to every node they went through.
//!
//! Picks come in the order of the tree, so that neighbours share most of their
//! paths. Each node is written once for all neighbouring visits through it.

use super::arena::Index;
use super::node::{Statistics, Sums};
use super::picks::{Arrival, Pick, Picks, mirrored};
use super::shape::Outcome;
use super::shared::{Shared, Tally};
use super::tree::{ROOT, Tree};
use crate::nn::Evaluations;

/// What is to be added to one node of the current path.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    sums: Sums,
    landing: u32,
    /// The value of all visits of this node, if it is now known better.
    settled: Option<Statistics>,
    /// Whether something was proven below.
    news: bool,
}

/// Working memory.
#[derive(Default)]
pub(crate) struct Backup {
    pending: Vec<Pending>,
    tally: Tally,
}

impl Backup {
    /// Backs up the picks from `first` on whose value is known, and takes them
    /// off the list.
    pub(crate) fn known(
        &mut self,
        tree: &Tree,
        picks: &mut Picks,
        first: usize,
        shared: &Shared<'_>,
    ) {
        let waits = |pick: &Pick| matches!(pick.arrival, Arrival::Leaf { .. } | Arrival::Collision);
        if picks.list[first..].iter().all(waits) {
            return;
        }
        self.run(tree, picks, first, None, shared);
        let mut kept = first;
        for number in first..picks.list.len() {
            if waits(&picks.list[number]) {
                picks.list[kept] = picks.list[number];
                kept += 1;
            }
        }
        picks.list.truncate(kept);
    }

    /// Backs up all picks.
    pub(crate) fn all(
        &mut self,
        tree: &Tree,
        picks: &Picks,
        evaluations: &Evaluations,
        shared: &Shared<'_>,
    ) {
        self.run(tree, picks, 0, Some(evaluations), shared);
    }

    /// Without evaluations, leaves and collisions are passed over.
    fn run(
        &mut self,
        tree: &Tree,
        picks: &Picks,
        first: usize,
        evaluations: Option<&Evaluations>,
        shared: &Shared<'_>,
    ) {
        let mut path: &[Index] = &[];
        for pick in &picks.list[first..] {
            if evaluations.is_none()
                && matches!(pick.arrival, Arrival::Leaf { .. } | Arrival::Collision)
            {
                continue;
            }
            let next = picks.path(pick);
            let common = path.iter().zip(next).take_while(|(a, b)| a == b).count();
            self.unwind(tree, path, common);
            path = next;
            if self.pending.len() < path.len() {
                self.pending.resize_with(path.len(), Pending::default);
            }
            self.arrive(tree, path, pick, evaluations);
            if !matches!(pick.arrival, Arrival::Collision) {
                self.tally.add(pick.visits, path.len() as u32 - 1);
            }
        }
        self.unwind(tree, path, 0);
        shared.progress.add(std::mem::take(&mut self.tally));
    }

    fn arrive(
        &mut self,
        tree: &Tree,
        path: &[Index],
        pick: &Pick,
        evaluations: Option<&Evaluations>,
    ) {
        let Some((pending, &leaf)) = self.pending.get_mut(path.len() - 1).zip(path.last()) else {
            return;
        };
        pending.landing += pick.visits;
        let value = match (pick.arrival, evaluations) {
            (Arrival::Leaf { slot, again }, Some(evaluations)) => {
                let value = mirrored(evaluations.value(slot));
                if again {
                    pending.settled = Some(value);
                }
                value
            }
            (Arrival::Known { news }, _) => {
                let shape = tree.node(leaf).shape();
                let value = known(shape.outcome(), shape.plies());
                if news {
                    pending.settled = Some(value);
                    pending.news = true;
                }
                value
            }
            (Arrival::Valued(value), _) => value,
            (Arrival::Collision | Arrival::Leaf { .. }, _) => return,
        };
        let visits = f64::from(pick.visits);
        pending.sums.visits += pick.visits;
        pending.sums.q += visits * value.q;
        pending.sums.d += visits * value.d;
        pending.sums.m += visits * value.m;
    }

    /// Writes the nodes of `path` from its end to depth `down_to`, handing on
    /// to each parent what its child received.
    fn unwind(&mut self, tree: &Tree, path: &[Index], down_to: usize) {
        for depth in (down_to..path.len()).rev() {
            let mut pending = std::mem::take(&mut self.pending[depth]);
            let node = tree.node(path[depth]);
            let shape = node.shape();
            let mut proven = pending.news && pending.settled.is_some();
            if shape.outcome() != Outcome::Unknown {
                // Visits that were under way when the proof came change nothing.
                pending.settled = Some(known(shape.outcome(), shape.plies()));
            }
            if pending.news
                && !proven
                && let Some((outcome, plies)) = tree.proof(node)
            {
                node.prove(outcome, plies);
                pending.settled = Some(known(outcome, plies));
                proven = shape.outcome() == Outcome::Unknown;
            }
            let mut flow = pending.sums;
            if pending.sums.visits > 0 {
                flow = node.add(pending.sums, pending.settled);
            }
            node.land(pending.landing);
            if path[depth] == ROOT {
                continue;
            }
            let parent = &mut self.pending[depth - 1];
            parent.landing += pending.landing;
            parent.news |= proven;
            let visits = f64::from(flow.visits);
            parent.sums.visits += flow.visits;
            parent.sums.q -= flow.q;
            parent.sums.d += flow.d;
            parent.sums.m += flow.m + visits;
        }
    }
}

/// What a proven position is worth to the side that moved there.
fn known(outcome: Outcome, plies: u8) -> Statistics {
    Statistics {
        visits: 0,
        q: outcome.value(),
        d: f64::from(u8::from(outcome == Outcome::Draw)),
        m: f64::from(plies),
    }
}
