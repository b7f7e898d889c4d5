//! Distributes the visits that have reached a node among its moves.

use super::SearchWorker;
use crate::search::descent::select::{
    Candidate, exploration, first_play_urgency, share_out, visit_lines,
};
use crate::search::descent::unvisited::Unvisited;
use crate::search::descent::utility::Utility;
use crate::search::environment::Environment;
use crate::search::root::gumbel::Gumbel;
use crate::search::root::gumbel::contenders;
use crate::search::tree::arena::Index;
use crate::search::tree::edge::Edge;
use crate::search::tree::header::{NodeHeader, Outcome};
use crate::search::tree::node::Node;
use crate::search::tree::prior;
use crate::search::tree::value::edge_value;
use crate::search::tree::{Full, Tree};

/// Visits travelling along an edge.
#[derive(Clone, Copy)]
pub(super) struct Branch {
    pub(super) edge: Index,
    pub(super) visits: u32,
}

/// The result of selection for visits that have reached a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selected {
    /// The visits continue along the branches on the stack.
    Branches,
    /// No visit continues, because the children prove the node. (A visit that reached a child on
    /// another path updated only that path.)
    Proven,
    /// No visit continues, because there is no memory for another edge, or because another thread
    /// has corrected the priors meanwhile.
    Full,
}

impl<'a, E: Environment> SearchWorker<'a, E> {
    /// Distributes the visits and pushes a branch onto the stack for each move that receives any.
    pub(super) fn select(&mut self, node: Node<'a>, visits: u32) -> Selected {
        match &self.shared.root.gumbel {
            _ if self.path.len() > 1 => self.select_by_puct::<false>(node, visits),
            None => self.select_by_puct::<true>(node, visits),
            Some(gumbel) => self.select_by_gumbel(gumbel, node, visits),
        }
    }

    /// Distributes the visits by PUCT, at the root or at any other node.
    fn select_by_puct<const ROOT: bool>(&mut self, node: Node<'a>, visits: u32) -> Selected {
        let header = node.header();
        let table = prior::table();
        let own = node.statistics();
        let scale = exploration(self.parameters, own.visits);
        let own_turn = self.path.len() % 2 == 1;
        let utility = Utility::new(self.parameters, own_turn);
        let mut visited_policy = 0.0;
        let (mut losing, mut winning) = (0, 0);
        let mut last = Tree::first_rank(header);
        self.candidates.clear();
        self.unvisited.clear();
        for (number, index) in self.tree.edge_indices(header).enumerate() {
            let edge = self.tree.edge(index);
            let edge_visits = edge.edge_visits();
            let rank = edge.rank();
            if self.tree.orders_the_rest(header, rank) {
                last = rank;
            }
            let prior = table[usize::from(rank.code())];
            let mut candidate = Candidate::new(index, prior, edge_visits.started());
            let child = match edge.node() {
                0 => None,
                to => Some(self.tree.node(to)),
            };
            // A move proven to win or to lose needs no visits, not even its first.
            let outcome = child.map_or(Outcome::Unknown, |child| child.header().outcome());
            let open = match outcome {
                Outcome::Loss if !ROOT => return Selected::Proven,
                Outcome::Loss => {
                    winning += 1;
                    false
                }
                Outcome::Win => {
                    losing += 1;
                    false
                }
                Outcome::Unknown | Outcome::Draw => true,
            };
            if open && edge_visits.visits() == 0 {
                self.unvisited.push(number);
            } else {
                visited_policy += prior;
                candidate.q = match child {
                    None => utility.of(&edge_value(&own, 1.0)),
                    Some(child) if utility.is_plain() => {
                        child.visits_and_q().1 * (1.0 - edge_visits.drawn() as f32)
                    }
                    Some(child) => {
                        utility.of(&edge_value(&child.statistics(), edge_visits.drawn()))
                    }
                };
                if open {
                    candidate.rate(scale);
                }
            }
            self.candidates.push(candidate);
        }
        if !ROOT && losing == header.moves() {
            return Selected::Proven;
        }
        let root_visits = own.visits;
        let own = utility.of_node(&own);
        let fpu = first_play_urgency(self.parameters, own, visited_policy);
        for &number in &self.unvisited {
            let candidate = &mut self.candidates[number];
            candidate.q = fpu;
            candidate.rate(scale);
        }
        let many = ROOT && self.shared.lines > 1;
        let lines = many.then(|| self.lines(header, winning, root_visits));
        let tried = self.candidates.len();
        let mut untried = Unvisited::new(self.tree, header, last, &mut self.ranks);
        let mut visits = visits;
        if let Some(lines) = lines {
            visits -= visit_lines(
                &mut self.candidates,
                &mut untried,
                fpu,
                scale,
                lines,
                visits,
            );
        }
        share_out(&mut self.candidates, &mut untried, fpu, scale, visits);
        for candidate in &self.candidates[..tried] {
            if candidate.given > 0 {
                self.branches.push(Branch {
                    edge: candidate.edge,
                    visits: candidate.given,
                });
            }
        }
        // Untried moves are in order of prior, so if the first one gets no visit, none does.
        let fresh = self.candidates.get(tried);
        if fresh.is_none_or(|candidate| candidate.given == 0)
            || self.add_edges((node, header), tried)
        {
            Selected::Branches
        } else {
            Selected::Full
        }
    }

    /// Returns the number of lines that still need visits, given the number of winning moves, and
    /// the visits of each line.
    fn lines(&self, header: NodeHeader, winning: usize, root_visits: u32) -> (usize, u32) {
        // An illegal move cannot be a line.
        let moves = self.shared.root_moves.len();
        let is_imagined = |edge: &Edge<'_>| usize::from(edge.rank().number()) >= moves;
        let imagined = self.tree.edges(header).filter(is_imagined).count();
        let lines = (self.shared.lines + imagined).saturating_sub(winning);
        (lines, self.shared.visits_of_line(root_visits))
    }

    /// Distributes the visits like [`SearchWorker::select`], but by Gumbel selection at the root.
    fn select_by_gumbel(&mut self, gumbel: &Gumbel, node: Node<'a>, visits: u32) -> Selected {
        if node.header().count() < u32::from(node.header().moves()) {
            for number in 0..usize::from(node.header().moves()) {
                if self.root_edge(number).is_err() {
                    return Selected::Full;
                }
            }
        }
        let header = node.header();
        let own = -self.tree.block(header).own().q as f32;
        let mut contenders = contenders(self.tree, node);
        let first = self.branches.len();
        let edges = self.tree.edge_indices(header);
        self.branches
            .extend(edges.map(|edge| Branch { edge, visits: 0 }));
        for _ in 0..visits {
            let Some(next) = gumbel.next(&contenders, own) else {
                break;
            };
            contenders[next].started += 1;
            self.branches[first + next].visits += 1;
        }
        let mut kept = first;
        for number in first..self.branches.len() {
            if self.branches[number].visits > 0 {
                self.branches[kept] = self.branches[number];
                kept += 1;
            }
        }
        self.branches.truncate(kept);
        Selected::Branches
    }

    /// Creates edges for the untried moves that were given visits; returns false if memory runs
    /// out, or if the priors have been corrected since the node had this header.
    fn add_edges(&mut self, node: (Node<'_>, NodeHeader), tried: usize) -> bool {
        let moves = self.environment.moves(self.here());
        for (&rank, number) in self.ranks.iter().zip(tried..) {
            let visits = self.candidates[number].given;
            if visits == 0 {
                break;
            }
            let mv = E::packed(&moves, rank.number().into());
            let number = number as u32;
            match self.tree.add_edge(&mut self.blocks, node, number, mv, rank) {
                Ok(edge) => self.branches.push(Branch { edge, visits }),
                Err(Full) => return false,
            }
        }
        true
    }
}
