//! Backup: what visits found out, added to every edge and node they went
//! through.
//!
//! Picks come in the order of the tree, so that neighbours share most of their
//! paths. Each node is written once for all neighbouring visits through it.

use super::picks::{Arrival, Pick, Picks, Step};
use super::shape::Outcome;
use super::shared::{Shared, Tally};
use super::tree::Tree;
use std::sync::atomic::Ordering::Relaxed;

/// What is to be added to one step of the current path.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// Visits to be counted.
    visits: u32,
    /// Those of them that history drew.
    drawn: u32,
    /// Visits that are no longer in flight.
    landing: u32,
    /// Whether something below the node, or its evaluation, is new.
    changed: bool,
    /// Whether something was proven below, or a shorter way to it.
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
        if picks.list[first..].iter().all(|pick| pick.arrival.waits()) {
            return;
        }
        self.run(tree, picks, first, false, shared);
        let mut kept = first;
        for number in first..picks.list.len() {
            if picks.list[number].arrival.waits() {
                picks.list[kept] = picks.list[number];
                kept += 1;
            }
        }
        picks.list.truncate(kept);
    }

    /// Backs up all picks; their leaves have been evaluated.
    pub(crate) fn all(&mut self, tree: &Tree, picks: &Picks, shared: &Shared<'_>) {
        self.run(tree, picks, 0, true, shared);
    }

    fn run(
        &mut self,
        tree: &Tree,
        picks: &Picks,
        first: usize,
        evaluated: bool,
        shared: &Shared<'_>,
    ) {
        let mut path: &[Step] = &[];
        for pick in &picks.list[first..] {
            if !evaluated && pick.arrival.waits() {
                continue;
            }
            let next = picks.path(pick);
            let common = path.iter().zip(next).take_while(|(a, b)| a == b).count();
            self.unwind(tree, path, common);
            path = next;
            if self.pending.len() < path.len() {
                self.pending.resize_with(path.len(), Pending::default);
            }
            self.arrive(path.len() - 1, pick);
            match pick.arrival {
                Arrival::Collision => {}
                Arrival::Standing => self.tally.pass(pick.visits),
                _ => self.tally.arrive(pick.visits, path.len() as u32 - 1),
            }
        }
        self.unwind(tree, path, 0);
        shared.progress.add(std::mem::take(&mut self.tally));
    }

    fn arrive(&mut self, depth: usize, pick: &Pick) {
        let pending = &mut self.pending[depth];
        pending.landing += pick.visits;
        match pick.arrival {
            Arrival::Collision => return,
            Arrival::Leaf { .. } | Arrival::Standing => {}
            Arrival::Known { news } => {
                pending.changed |= news;
                pending.news |= news;
            }
            Arrival::Drawn => pending.drawn += pick.visits,
        }
        pending.visits += pick.visits;
    }

    /// Writes the steps of `path` from its end to depth `down_to`, handing on to
    /// each what the one below received.
    fn unwind(&mut self, tree: &Tree, path: &[Step], down_to: usize) {
        for depth in (down_to..path.len()).rev() {
            let pending = std::mem::take(&mut self.pending[depth]);
            let Step { edge, node } = path[depth];
            let mut proven = false;
            if node != 0 {
                let node = tree.node(node);
                if pending.news {
                    let shape = node.shape();
                    let known = (shape.outcome(), shape.plies());
                    // A leaf whose outcome is known was proven on the way down.
                    proven = known.0 != Outcome::Unknown && shape.moves() == 0;
                    if !proven && let Some(proof) = tree.proof(node) {
                        node.prove(proof.0, proof.1);
                        proven = proof != known;
                    }
                }
                if pending.changed {
                    tree.refresh(node);
                }
            }
            if depth == 0 {
                tree.in_flight().fetch_sub(pending.landing, Relaxed);
                continue;
            }
            let edge = tree.edge(edge);
            edge.land(pending.landing, pending.visits, pending.drawn);
            let parent = &mut self.pending[depth - 1];
            parent.landing += pending.landing;
            parent.visits += pending.visits;
            parent.changed |= pending.visits > 0;
            parent.news |= proven;
        }
    }
}
