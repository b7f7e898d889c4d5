//! A search thread: descends from the root, gathers a batch of leaves, expands
//! them and backs their values up.

mod branch;
mod proofs;
mod run;

use super::backup::Backup;
use super::picks::{LeafKind, Pick, Picks, Step};
use super::select::Candidate;
use crate::chess::{CLAIMABLE_RULE50, Game, mate_in_one};
use crate::encode::Encoder;
use crate::nn::{BackendError, Batch, Evaluations, Value};
use crate::search::mates::LeafMates;
use crate::search::numeric::{exp2, log2};
use crate::search::parameters::Parameters;
use crate::search::shared::Shared;
use crate::search::tree::arena::{Index, Span};
use crate::search::tree::edge::Edge;
use crate::search::tree::header::{NodeHeader, OUT_OF_SIGHT, Outcome, Stage};
use crate::search::tree::node::{Node, Statistics};
use crate::search::tree::packed::unpack_move;
use crate::search::tree::prior::Rank;
use crate::search::tree::value::weight;
use crate::search::tree::{Full, MAX_IN_FLIGHT, Tree};
use branch::{Branch, Selected};
use shakmaty::{Move, Position};
use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;

/// Deepest path, in plies: a node there backs up its present value.
const MAX_DEPTH: usize = 500;
/// Tells positions that tablebases cover from others with the same key.
const WDL_HOLDS: u64 = 0x9e37_79b9_7f4a_7c15;

/// One thread of a search.
pub(crate) struct SearchWorker<'a> {
    shared: &'a Shared<'a>,
    tree: &'a Tree,
    parameters: &'a Parameters,
    game: Game,
    encoder: &'a Encoder,
    /// Why the backend cannot be asked about a leaf.
    refusal: Option<BackendError>,
    /// Whether the backend tells how long games last.
    has_length: bool,
    nodes: Span,
    blocks: Span,
    path: Vec<Step>,
    candidates: Vec<Candidate>,
    /// Edges among them without visits.
    unvisited: Vec<usize>,
    ranks: Vec<Rank>,
    branches: Vec<Branch>,
    picks: Picks,
    backup: Backup,
    batch: Batch,
    evaluations: Evaluations,
    scratch: Vec<f32>,
    mates: Option<LeafMates>,
}

/// What a thread has gathered.
pub(crate) struct Gathered {
    /// Leaves in the batch.
    pub(crate) leaves: usize,
    /// Visits that did not collide: those of the leaves and those that ended at
    /// known values.
    pub(crate) visits: u32,
}

impl<'a> SearchWorker<'a> {
    pub(crate) fn new(shared: &'a Shared<'a>) -> SearchWorker<'a> {
        SearchWorker {
            shared,
            tree: shared.tree,
            parameters: shared.parameters,
            game: shared.game.clone(),
            encoder: &shared.backend.properties().encoder,
            refusal: None,
            has_length: shared.backend.properties().has_moves_left,
            nodes: Span::default(),
            blocks: Span::default(),
            path: Vec::with_capacity(64),
            candidates: Vec::with_capacity(256),
            unvisited: Vec::with_capacity(256),
            ranks: Vec::with_capacity(256),
            branches: Vec::with_capacity(256),
            picks: Picks::default(),
            backup: Backup::default(),
            batch: Batch::default(),
            evaluations: Evaluations::default(),
            scratch: Vec::with_capacity(256),
            mates: shared.mates.map(|_| LeafMates::new()),
        }
    }

    /// Fills the batch with up to `want` leaves. Visits that end at known
    /// values are backed up at once.
    pub(crate) fn gather(&mut self, want: usize) -> Gathered {
        self.picks.clear();
        self.batch.clear();
        let root = self.tree.root();
        let mut collisions = collision_allowance(self.parameters, root.visits(), want);
        let mut at_once = self.parameters.out_of_order.max(0.0) * want as f32;
        let mut visits = 0;
        while self.batch.len() < want && collisions > 0 && at_once >= 0.0 {
            // All visits of a descent might collide, as Lc0 reckons too: in a
            // small tree they are sent one by one.
            let room = collisions.min((want - self.batch.len()) as u32);
            let granted = self.shared.grant(room);
            if granted == 0 {
                break;
            }
            let in_flight = self.tree.in_flight();
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
            leaves: self.batch.len(),
            visits,
        }
    }

    /// Evaluates the batch.
    pub(crate) fn evaluate(&mut self) -> Result<(), BackendError> {
        if let Some(refusal) = self.refusal.take() {
            return Err(refusal);
        }
        if self.batch.is_empty() {
            return Ok(());
        }
        self.shared
            .backend
            .evaluate(&self.batch, &mut self.evaluations)
    }

    /// Opens the evaluated leaves and backs everything up.
    pub(crate) fn finish(&mut self) {
        for pick in &self.picks.list {
            if let LeafKind::Unevaluated { slot } = pick.leaf {
                let value = self.evaluations.value(slot);
                let value = self.shared.rescale(value, pick.length - 1);
                let logits = match pick.length {
                    1 => self.shared.root.logits(self.evaluations.logits(slot)),
                    _ => Cow::Borrowed(self.evaluations.logits(slot)),
                };
                self.tree.expand(
                    &mut self.blocks,
                    self.tree.node(self.picks.leaf_node(pick)),
                    &own(self.parameters, value),
                    &logits,
                    self.parameters.policy_temperature,
                    &mut self.scratch,
                );
            }
        }
        self.backup.all(self.tree, &self.picks, self.shared);
    }

    /// Undoes what [`SearchWorker::gather`] did: the evaluation failed.
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

    /// Gives back what memory is left over.
    pub(crate) fn release_memory(self) {
        self.tree.release(self.nodes, self.blocks);
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

    /// Takes `visits`, already in flight on their way to this node, on to leaves.
    /// The game stands at the node's position.
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

    /// Sees what kind of leaf this is. Not inlined: the list of moves would
    /// weigh on every level of the recursion.
    #[inline(never)]
    fn classify(&mut self, node: Node<'a>, visits: u32) {
        let claim = |header: NodeHeader| {
            (header.stage() == Stage::New).then_some(header.with_stage(Stage::Pending))
        };
        if node.update(claim).is_none() {
            return self.add_pick(visits, LeafKind::Collision);
        }
        if self.path.len() == 1 {
            let shared = self.shared;
            return self.leaf(node, &shared.root_moves, visits);
        }
        let position = self.game.position();
        let moves = position.legal_moves();
        let (outcome, plies) = match (moves.is_empty(), position.is_check()) {
            (true, true) => (Outcome::Loss, 0),
            (true, false) => (Outcome::Draw, 0),
            (false, _) if position.is_insufficient_material() => (Outcome::Draw, 0),
            // A network may think nothing of the move that mates.
            (false, _) if mate_in_one(position, &moves).is_some() => (Outcome::Win, 1),
            (false, _) => match self.parameters.tablebase.probe(position) {
                None => return self.leaf(node, &moves, visits),
                Some(verdict) => {
                    self.shared.progress.hit_tablebase(1);
                    (verdict.into(), OUT_OF_SIGHT)
                }
            },
        };
        node.prove(outcome, plies);
        node.update(|header| Some(header.with_stage(Stage::New)));
        self.add_pick(visits, LeafKind::Terminal { newly_proven: true });
    }

    /// One visit evaluates the leaf, the others come for nothing.
    fn leaf(&mut self, node: Node<'a>, moves: &[Move], visits: u32) {
        let slot = self.batch.len();
        if let Err(refusal) = self.batch.push(&self.game, moves, self.encoder) {
            node.update(|header| Some(header.with_stage(Stage::New)));
            self.refusal = Some(refusal);
            return self.add_pick(visits, LeafKind::Collision);
        }
        self.add_pick(1, LeafKind::Unevaluated { slot });
        if visits > 1 {
            self.add_pick(visits - 1, LeafKind::Collision);
        }
    }

    /// Whether the moves before, and not the position, make this a draw, at a
    /// depth of so many plies.
    fn is_drawn_by_history(&self, depth: usize) -> bool {
        let ply = self.game.current();
        // Whoever could bring a position about twice can do it again.
        let twice = self.parameters.two_fold_draws
            && ply.repetitions > 0
            && usize::from(ply.cycle) <= depth;
        twice
            || ply.repetitions >= 2
            || self.game.rule50() >= CLAIMABLE_RULE50 && !self.game.position().is_checkmate()
    }

    /// The key of the position as a node.
    fn key(&self) -> u64 {
        let key = self.encoder.key(&self.game);
        // What WDL tables say holds just after a capture or pawn move only.
        let wdl_holds =
            self.game.rule50() == 0 && self.parameters.tablebase.covers(self.game.position());
        match wdl_holds {
            true => key ^ WDL_HOLDS,
            false => key,
        }
    }

    fn extend(&mut self, node: Node<'a>, visits: u32) {
        // Most leaves are never visited again: that this one is makes it worth a look.
        if node.header().count() == 0 && self.path.len() > 1 && self.is_mate_by_checks(node) {
            return self.add_pick(visits, LeafKind::Terminal { newly_proven: true });
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
            // This node's present value is backed up.
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

    /// Takes visits along an edge.
    fn follow(&mut self, index: Index, visits: u32) {
        let edge = self.tree.edge(index);
        let started = edge.add_in_flight(visits).started();
        let mv = unpack_move(edge.mv(), self.game.position().board());
        self.game.play(mv);
        let drawn = self.is_drawn_by_history(self.path.len());
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
                // Other ways have brought more visits here than this one: as many
                // as it lags behind need not go further.
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
        self.game.undo();
    }

    /// The node of the position on the board, to which the edge leads.
    fn child_of(&mut self, edge: Edge<'_>) -> Result<Index, Full> {
        let known = edge.node();
        if known != 0 {
            return Ok(known);
        }
        let tree = self.tree;
        let shared = self.parameters.transpositions;
        let key = self.key();
        let found = shared
            .then(|| {
                tree.table()
                    .find(key, |index| tree.node(index).key() == key)
            })
            .flatten();
        let node = match found {
            Some(node) => node,
            None => tree.add_node(&mut self.nodes, key)?,
        };
        let linked = edge.link(node);
        if found.is_none() {
            if linked != node {
                // Another thread was first.
                tree.give_node(node);
            } else if shared {
                tree.table().insert(key, node);
            }
        }
        Ok(linked)
    }
}

/// A leaf's evaluation as its node keeps it: for the side that moved there.
fn own(parameters: &Parameters, value: Value) -> Statistics {
    let error = value.error.max(0.0).sqrt();
    Statistics {
        visits: 1,
        q: f64::from(-value.q),
        d: f64::from(value.d),
        m: f64::from(value.moves_left),
        weight: weight(parameters, error).into(),
        spread: 0.0,
    }
}

/// Visits that may come for nothing while a batch is gathered. Lc0's curve: few
/// while the tree is small and every visit should know of those before, many
/// when it is large; and never so many that gathering crawls.
fn collision_allowance(parameters: &Parameters, visits: u32, want: usize) -> u32 {
    const START: f32 = 28.0;
    const END: f32 = 145_000.0;
    const POWER: f32 = 1.25;
    let grown = ((visits as f32 - START) / (END - START)).clamp(0.0, 1.0);
    let most = parameters.max_collisions.max(1) as f32;
    let allowed = 1.0 + (most - 1.0) * exp2(POWER * log2(grown.max(1e-9)));
    (allowed as u32).min(8 * want as u32).max(1)
}
