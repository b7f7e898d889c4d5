//! Adds mates that were proven outside the tree.

use super::SearchWorker;
use crate::search::descent::picks::{LeafKind, Step};
use crate::search::environment::Environment;
use crate::search::mates::MateSearch;
use crate::search::tree::arena::Index;
use crate::search::tree::header::{Outcome, Stage};
use crate::search::tree::node::Node;
use crate::search::tree::packed::pack_move;
use crate::search::tree::{Full, Tree};
use std::sync::atomic::Ordering::Relaxed;

impl<E: Environment> SearchWorker<'_, E> {
    /// Searches for mates at the root while time allows, unless another thread is doing so, and
    /// adds the results to the tree.
    pub(super) fn look_for_mates(&mut self) {
        let shared = self.shared;
        // Take this lock before that of the mate search, in the same order as everywhere else,
        // because a report takes both.
        let _inside = shared.gate.read();
        let Some(mut mates) = shared.mates.and_then(|mates| mates.try_lock()) else {
            return;
        };
        let left = shared.time_left();
        let time = left.map(|_| shared.elapsed());
        if !shared.stopped() {
            let visits = shared.progress.visits();
            let halt = || shared.is_urgent() || shared.control.stopped();
            mates.advance(visits, time, left, &halt);
        }
        self.enter_proofs(&mut mates);
    }

    /// Adds new proofs to the tree. A win is added with a visit along the move, but a loss is only
    /// recorded as an outcome: if thirty moves allow a mate, visiting each of them would take
    /// visits away from the few moves that do not.
    fn enter_proofs(&mut self, mates: &mut MateSearch) {
        if self.tree.root().header().stage() != Stage::Expanded {
            return;
        }
        while let Some(proof) = mates.next_proof() {
            let moves = &self.shared.root_moves;
            let number = moves.iter().position(|&mv| mv == proof.mv());
            let entered =
                number.is_none_or(|number| self.enter_proof(number, proof.outcome, proof.plies()));
            if !entered {
                return;
            }
            mates.enter();
        }
    }

    /// Adds a proof to the tree; returns whether it has been added.
    fn enter_proof(&mut self, number: usize, outcome: Outcome, plies: u8) -> bool {
        let Ok(index) = self.root_edge(number) else {
            return false;
        };
        let is_visited = outcome == Outcome::Loss;
        if is_visited && self.shared.grant(1) == 0 {
            return false;
        }
        let edge = self.tree.edge(index);
        let root = self.tree.root_index();
        self.environment
            .play(root, pack_move(self.shared.root_moves[number]));
        let drawn = self.environment.is_drawn_by_history();
        let node = match drawn {
            true => Err(Full),
            false => self.child_of(edge),
        };
        self.environment.undo();
        let Ok(node) = node else {
            self.shared.refund(is_visited.into());
            return drawn;
        };
        self.tree.node(node).prove(outcome, plies);
        if !is_visited {
            self.enter_loss(node);
            return true;
        }
        self.tree.in_flight.fetch_add(1, Relaxed);
        edge.add_in_flight(1);
        let root = Step {
            edge: 0,
            node: root,
        };
        let first = self.picks.list.len();
        self.path.clear();
        self.path.extend([root, Step { edge: index, node }]);
        self.add_pick(1, LeafKind::Terminal { newly_proven: true });
        self.backup
            .without_batch(self.tree, &mut self.picks, first, self.shared);
        true
    }

    /// Records at the root that a move to this node is proven to lose.
    fn enter_loss(&self, node: Index) {
        let tree = self.tree;
        tree.refresh(tree.node(node));
        let root = tree.root();
        if let Some((outcome, plies)) = tree.proof(root) {
            root.prove(outcome, plies);
        }
        tree.refresh(root);
    }

    /// Searches for a mate by checks at this node, and marks the node if one is proven.
    pub(super) fn is_mate_by_checks(&mut self, node: Node<'_>) -> bool {
        let plies = self.environment.mate_by_checks();
        if let Some(plies) = plies {
            node.prove(Outcome::Win, plies);
        }
        plies.is_some()
    }

    /// Returns the edge of a root move, creating it and the edges of moves with greater priors if
    /// necessary.
    pub(super) fn root_edge(&mut self, number: usize) -> Result<Index, Full> {
        let root = self.tree.root();
        let header = root.header();
        let mut last = Tree::first_rank(header);
        let mut count = 0;
        for index in self.tree.edge_indices(header) {
            let rank = self.tree.edge(index).rank();
            if usize::from(rank.number()) == number {
                return Ok(index);
            }
            if self.tree.orders_the_rest(header, rank) {
                last = rank;
            }
            count += 1;
        }
        let moves = self.environment.moves(self.tree.root_index());
        loop {
            let rank = self.tree.next_rank(header, last).ok_or(Full)?;
            let mv = E::packed(&moves, rank.number().into());
            // If another thread was first, this returns its edge.
            let index = self
                .tree
                .add_edge(&mut self.blocks, (root, header), count, mv, rank)?;
            last = rank;
            if usize::from(last.number()) == number {
                return Ok(index);
            }
            count += 1;
        }
    }
}
