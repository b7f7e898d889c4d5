//! Backup: adds the results of visits to every edge and node on their paths.
//!
//! Picks are in tree order, so neighbouring picks share most of their paths. Each node is written
//! once for all neighbouring visits that pass through it.

use super::picks::{LeafKind, Pick, Picks, Step};
use crate::search::shared::{Shared, Tally};
use crate::search::tree::Tree;
use crate::search::tree::header::Outcome;
use std::sync::atomic::Ordering::Relaxed;

/// Updates to one step of the current path.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    /// Visits to be counted.
    visits: u32,
    /// The number of these visits that were drawn by history.
    drawn: u32,
    /// Visits that are no longer in flight.
    completed: u32,
    /// Whether the node's evaluation, or anything below it, is new.
    changed: bool,
    /// Whether an outcome, or a shorter path to a proven outcome, was found below the node.
    newly_proven: bool,
}

/// Working memory for backups.
#[derive(Default)]
pub(crate) struct Backup {
    pending: Vec<Pending>,
    tally: Tally,
}

impl Backup {
    /// Backs up the picks from number `first` on that need no evaluation, and removes them from the
    /// list.
    pub(crate) fn without_batch(
        &mut self,
        tree: &Tree,
        picks: &mut Picks,
        first: usize,
        shared: &Shared<'_>,
    ) {
        if picks.list[first..]
            .iter()
            .all(|pick| pick.leaf.awaits_batch())
        {
            return;
        }
        self.run(tree, picks, first, false, shared);
        let mut kept = first;
        for number in first..picks.list.len() {
            if picks.list[number].leaf.awaits_batch() {
                picks.list[kept] = picks.list[number];
                kept += 1;
            }
        }
        picks.list.truncate(kept);
    }

    /// Backs up all picks, whose leaves have been evaluated.
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
            if !evaluated && pick.leaf.awaits_batch() {
                continue;
            }
            let next = picks.path(pick);
            let common = path.iter().zip(next).take_while(|(a, b)| a == b).count();
            self.unwind(tree, path, common);
            path = next;
            if self.pending.len() < path.len() {
                self.pending.resize_with(path.len(), Pending::default);
            }
            self.add_leaf(path.len() - 1, pick);
            if let LeafKind::Unevaluated { .. } | LeafKind::Terminal { newly_proven: true } =
                pick.leaf
            {
                self.tally.discover();
            }
            match pick.leaf {
                LeafKind::Collision => {}
                LeafKind::Revisit => self.tally.pass(pick.visits),
                _ => self.tally.count_leaf(pick.visits, path.len() as u32 - 1),
            }
        }
        self.unwind(tree, path, 0);
        shared.progress.add(std::mem::take(&mut self.tally));
    }

    fn add_leaf(&mut self, depth: usize, pick: &Pick) {
        let pending = &mut self.pending[depth];
        pending.completed += pick.visits;
        match pick.leaf {
            LeafKind::Collision => return,
            LeafKind::Unevaluated { .. } | LeafKind::Revisit => {}
            LeafKind::Terminal { newly_proven } => {
                pending.changed |= newly_proven;
                pending.newly_proven |= newly_proven;
            }
            LeafKind::HistoryDraw => pending.drawn += pick.visits,
        }
        pending.visits += pick.visits;
    }

    /// Writes the steps of `path` from its end up to depth `down_to`, adding to each step the
    /// updates of the step below.
    fn unwind(&mut self, tree: &Tree, path: &[Step], down_to: usize) {
        for depth in (down_to..path.len()).rev() {
            let pending = std::mem::take(&mut self.pending[depth]);
            let Step { edge, node } = path[depth];
            let mut proven = false;
            if node != 0 {
                let node = tree.node(node);
                if pending.newly_proven {
                    let header = node.header();
                    let known = (header.outcome(), header.plies());
                    // A leaf without moves was recognised, along with its outcome, during the
                    // descent.
                    let proof = match header.moves() {
                        0 => None,
                        _ => tree.proof(node),
                    };
                    match proof {
                        Some(proof) => {
                            node.prove(proof.0, proof.1);
                            proven = proof != known;
                        }
                        // A proof from a search outside the tree cannot be derived again from the
                        // children.
                        None => proven = known.0 != Outcome::Unknown,
                    }
                }
                if pending.changed {
                    tree.refresh(node);
                }
            }
            if depth == 0 {
                tree.in_flight.fetch_sub(pending.completed, Relaxed);
                continue;
            }
            let edge = tree.edge(edge);
            edge.complete(pending.completed, pending.visits, pending.drawn);
            let parent = &mut self.pending[depth - 1];
            parent.completed += pending.completed;
            parent.visits += pending.visits;
            parent.changed |= pending.visits > 0;
            parent.newly_proven |= proven;
        }
    }
}
