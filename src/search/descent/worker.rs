//! A search thread: descends from the root, gathers a batch of leaves, expands them and backs up
//! their values.

mod branch;
mod proofs;
mod run;

use super::backup::Backup;
use super::picks::{LeafKind, Pick, Picks, Step};
use super::select::Candidate;
use crate::backend::{BackendError, Value};
use crate::search::environment::Environment;
use crate::search::numeric::{exp2, log2};
use crate::search::parameters::Parameters;
use crate::search::shared::Shared;
use crate::search::tree::arena::{Index, Span};
use crate::search::tree::edge::Edge;
use crate::search::tree::header::{NodeHeader, Outcome, Stage};
use crate::search::tree::node::{Node, Statistics};
use crate::search::tree::prior::Rank;
use crate::search::tree::{Full, MAX_IN_FLIGHT, Tree};
use branch::{Branch, Selected};
use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum length of a path in plies. A node at this depth backs up its current value.
const MAX_DEPTH: usize = 500;

/// One thread of a search.
pub(crate) struct SearchWorker<'a, E> {
    shared: &'a Shared<'a>,
    tree: &'a Tree,
    parameters: &'a Parameters,
    environment: E,
    /// The error if the backend cannot evaluate a leaf.
    refusal: Option<BackendError>,
    nodes: Span,
    blocks: Span,
    path: Vec<Step>,
    candidates: Vec<Candidate>,
    /// The candidates' edges that have no visits.
    unvisited: Vec<usize>,
    ranks: Vec<Rank>,
    branches: Vec<Branch>,
    picks: Picks,
    backup: Backup,
    scratch: Vec<f32>,
    logits: Vec<f32>,
    /// The number of visits from which a node's priors are corrected.
    correction_visits: u32,
}

/// A summary of the batch that a thread has gathered.
pub(crate) struct Gathered {
    /// The number of leaves in the batch.
    pub(crate) leaves: usize,
    /// The number of visits that did not collide: those that reached the leaves and those that
    /// ended at known values.
    pub(crate) visits: u32,
}

impl<'a, E: Environment> SearchWorker<'a, E> {
    pub(crate) fn new(shared: &'a Shared<'a>, environment: E) -> SearchWorker<'a, E> {
        SearchWorker {
            shared,
            tree: shared.tree,
            parameters: shared.parameters,
            environment,
            refusal: None,
            nodes: Span::default(),
            blocks: Span::default(),
            path: Vec::with_capacity(64),
            candidates: Vec::with_capacity(256),
            unvisited: Vec::with_capacity(256),
            ranks: Vec::with_capacity(256),
            branches: Vec::with_capacity(256),
            picks: Picks::default(),
            backup: Backup::default(),
            scratch: Vec::with_capacity(256),
            logits: Vec::with_capacity(256),
            correction_visits: shared.correction_visits(),
        }
    }

    /// Fills the batch with up to `want` leaves. Visits that end at known values are backed up
    /// immediately.
    pub(crate) fn gather(&mut self, want: usize) -> Gathered {
        self.picks.clear();
        self.environment.clear();
        let root = self.tree.root();
        let mut collisions = collision_allowance(self.parameters, root.visits(), want);
        let mut at_once = self.parameters.out_of_order.max(0.0) * want as f32;
        let mut visits = 0;
        while self.environment.gathered() < want && collisions > 0 && at_once >= 0.0 {
            // Assume, like Lc0, that all visits of a descent might collide. In a small tree they
            // are therefore sent one by one.
            let room = collisions.min((want - self.environment.gathered()) as u32);
            let granted = self.shared.grant(room);
            if granted == 0 {
                break;
            }
            let in_flight = &self.tree.in_flight;
            if in_flight.load(Relaxed) + granted > MAX_IN_FLIGHT {
                self.shared.refund(granted);
                break;
            }
            let first = self.picks.list.len();
            in_flight.fetch_add(granted, Relaxed);
            self.path.clear();
            let node = self.tree.root_index();
            self.path.push(Step { edge: 0, node });
            self.descend(node, granted);
            let mut collided = 0;
            for pick in &self.picks.list[first..] {
                match pick.leaf {
                    LeafKind::Collision => collided += pick.visits,
                    LeafKind::Unevaluated { .. } => {}
                    _ => at_once -= pick.visits as f32,
                }
            }
            visits += granted - collided;
            self.shared.refund(collided);
            collisions = collisions.saturating_sub(collided);
            self.backup
                .without_batch(self.tree, &mut self.picks, first, self.shared);
        }
        Gathered {
            leaves: self.environment.gathered(),
            visits,
        }
    }

    /// Evaluates the batch.
    pub(crate) fn evaluate(&mut self) -> Result<(), BackendError> {
        if let Some(refusal) = self.refusal.take() {
            return Err(refusal);
        }
        match self.environment.gathered() {
            0 => Ok(()),
            _ => self.environment.evaluate(),
        }
    }

    /// Expands the evaluated leaves and backs up all results.
    pub(crate) fn finish(&mut self) {
        for pick in &self.picks.list {
            if let LeafKind::Unevaluated { slot } = pick.leaf {
                let value = self.environment.value(slot);
                let value = self.shared.rescale(value, pick.length - 1);
                let logits = match pick.length {
                    1 => self.shared.root.logits(self.environment.logits(slot)),
                    _ => Cow::Borrowed(self.environment.logits(slot)),
                };
                self.tree.expand(
                    &mut self.blocks,
                    self.tree.node(self.picks.leaf_node(pick)),
                    &statistics_from(value),
                    &logits,
                    self.parameters.policy_temperature,
                    &mut self.scratch,
                );
            }
        }
        self.backup.all(self.tree, &self.picks, self.shared);
    }

    /// Undoes [`SearchWorker::gather`] after a failed evaluation.
    pub(crate) fn abandon(&mut self) {
        for pick in &mut self.picks.list {
            if let LeafKind::Unevaluated { .. } = pick.leaf {
                let leaf = self.picks.paths[pick.start + pick.length - 1].node;
                let leaf = self.tree.node(leaf);
                leaf.update(|header| Some(header.with_stage(Stage::New)));
                pick.leaf = LeafKind::Collision;
            }
        }
        self.backup.all(self.tree, &self.picks, self.shared);
    }

    /// Gives unused memory back to the tree.
    pub(crate) fn release_memory(self) {
        self.tree.release(self.nodes, self.blocks);
    }

    /// Returns the current node of the path.
    fn here(&self) -> Index {
        self.path[self.path.len() - 1].node
    }

    fn add_pick(&mut self, visits: u32, leaf: LeafKind) {
        let start = self.picks.paths.len();
        self.picks.paths.extend_from_slice(&self.path);
        self.picks.list.push(Pick {
            start,
            length: self.path.len(),
            visits,
            leaf,
        });
    }

    /// Sends `visits`, which are already in flight to this node, down to leaves. The environment
    /// must be at the node's position.
    fn descend(&mut self, index: Index, visits: u32) {
        let node = self.tree.node(index);
        let header = node.header();
        if self.path.len() > 1 && header.outcome() != Outcome::Unknown {
            let Step { edge, .. } = self.path[self.path.len() - 1];
            let newly_proven = self.tree.edge(edge).visits() == 0;
            return self.add_pick(visits, LeafKind::Terminal { newly_proven });
        }
        match header.stage() {
            Stage::Expanded => self.extend(node, visits),
            Stage::New => self.classify(node, visits),
            Stage::Pending | Stage::Free => self.add_pick(visits, LeafKind::Collision),
        }
    }

    /// Classifies a leaf. It is not inlined, because the move list would take stack space at every
    /// level of the recursion.
    #[inline(never)]
    fn classify(&mut self, node: Node<'a>, visits: u32) {
        let claim = |header: NodeHeader| {
            (header.stage() == Stage::New).then_some(header.with_stage(Stage::Pending))
        };
        if node.update(claim).is_none() {
            return self.add_pick(visits, LeafKind::Collision);
        }
        let moves = self.environment.moves(self.here());
        let Some((outcome, plies)) = self.environment.outcome(&moves) else {
            return self.leaf(node, &moves, visits);
        };
        node.prove(outcome, plies);
        node.update(|header| Some(header.with_stage(Stage::New)));
        self.add_pick(visits, LeafKind::Terminal { newly_proven: true });
    }

    /// Handles a leaf: one visit evaluates it, and the others collide.
    fn leaf(&mut self, node: Node<'a>, moves: &E::Moves, visits: u32) {
        match self.environment.push(self.here(), moves) {
            Ok(slot) => self.add_pick(1, LeafKind::Unevaluated { slot }),
            Err(refusal) => {
                node.update(|header| Some(header.with_stage(Stage::New)));
                self.refusal = Some(refusal);
                return self.add_pick(visits, LeafKind::Collision);
            }
        }
        if visits > 1 {
            self.add_pick(visits - 1, LeafKind::Collision);
        }
    }

    fn extend(&mut self, node: Node<'a>, visits: u32) {
        // Most leaves are never visited again, so a revisited leaf is worth a mate search.
        if node.header().count() == 0 && self.path.len() > 1 && self.is_mate_by_checks(node) {
            return self.add_pick(visits, LeafKind::Terminal { newly_proven: true });
        }
        if node.visits() >= self.correction_visits && !node.header().is_corrected() {
            self.correct(node);
        }
        let first = self.branches.len();
        let selected = match self.path.len() > MAX_DEPTH {
            true => Selected::Full,
            false => self.select(node, visits),
        };
        match selected {
            Selected::Branches => {}
            // Backup finds the proof.
            Selected::Proven => {
                return self.add_pick(visits, LeafKind::Terminal { newly_proven: true });
            }
            // The node's current value is backed up.
            Selected::Full => {
                self.branches.truncate(first);
                return self.add_pick(visits, LeafKind::Revisit);
            }
        }
        let last = self.branches.len();
        for number in first..last {
            let Branch { edge, visits } = self.branches[number];
            self.follow(edge, visits);
        }
        self.branches.truncate(first);
    }

    /// Corrects the priors of a node. Its move list would take stack space at every level of the
    /// recursion.
    #[inline(never)]
    fn correct(&mut self, node: Node<'a>) {
        let moves = self.environment.moves(self.here());
        let temperature = self.parameters.policy_temperature;
        let mut logits = std::mem::take(&mut self.logits);
        self.tree.logits(node.header(), temperature, &mut logits);
        if self.environment.correct(&moves, &mut logits) {
            self.tree
                .correct(node, &logits, temperature, &mut self.scratch);
        }
        self.logits = logits;
    }

    /// Sends visits along an edge.
    fn follow(&mut self, index: Index, visits: u32) {
        let edge = self.tree.edge(index);
        let started = edge.add_in_flight(visits).started();
        self.environment.play(self.here(), edge.mv());
        let drawn = self.environment.is_drawn_by_history();
        let node = match drawn {
            true => Ok(0),
            false => self.child_of(edge),
        };
        self.path.push(Step {
            edge: index,
            node: *node.as_ref().unwrap_or(&0),
        });
        match node {
            Ok(0) => self.add_pick(visits, LeafKind::HistoryDraw),
            Ok(node) => {
                // Other paths have brought more visits to this node than this edge has. As many
                // visits as that difference need not descend further.
                let ahead = self.tree.node(node).visits().saturating_sub(started);
                let caught_up = match self.parameters.transpositions {
                    true => ahead.min(visits),
                    false => 0,
                };
                if caught_up > 0 {
                    self.add_pick(caught_up, LeafKind::Revisit);
                }
                if visits > caught_up {
                    self.descend(node, visits - caught_up);
                }
            }
            Err(Full) => self.add_pick(visits, LeafKind::Collision),
        }
        self.path.pop();
        self.environment.undo();
    }

    /// Returns the node of the environment's position, to which the edge leads.
    fn child_of(&mut self, edge: Edge<'_>) -> Result<Index, Full> {
        let known = edge.node();
        if known != 0 {
            return Ok(known);
        }
        let tree = self.tree;
        let shared = self.parameters.transpositions;
        let key = self.environment.key();
        let found = shared
            .then(|| tree.table.find(key, |index| tree.node(index).key() == key))
            .flatten();
        let node = match found {
            Some(node) => node,
            None => tree.add_node(&mut self.nodes, key)?,
        };
        let linked = edge.link(node);
        if found.is_none() {
            if linked != node {
                // Another thread linked the edge first.
                tree.give_node(node);
            } else if shared {
                tree.table.insert(key, node);
            }
        }
        Ok(linked)
    }
}

/// Returns a leaf's evaluation in the form that its node stores, for the side that moved there.
fn statistics_from(value: Value) -> Statistics {
    Statistics {
        visits: 1,
        q: f64::from(-value.q),
        d: f64::from(value.d),
        m: f64::from(value.moves_left),
    }
}

/// Returns the number of collisions allowed while gathering a batch. The curve is Lc0's: few while
/// the tree is small and every visit should see the results of earlier ones, many when it is large,
/// but never enough to make gathering slow.
fn collision_allowance(parameters: &Parameters, visits: u32, want: usize) -> u32 {
    const START: f32 = 28.0;
    const END: f32 = 145_000.0;
    const POWER: f32 = 1.25;
    let grown = ((visits as f32 - START) / (END - START)).clamp(0.0, 1.0);
    let most = parameters.max_collisions.max(1) as f32;
    let allowed = 1.0 + (most - 1.0) * exp2(POWER * log2(grown.max(1e-9)));
    (allowed as u32).min(8 * want as u32).max(1)
}
