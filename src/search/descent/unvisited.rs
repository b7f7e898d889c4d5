//! The moves of a node that have no edges yet, in the form that selection reads.

use super::select::Untried;
use crate::search::tree::Tree;
use crate::search::tree::header::NodeHeader;
use crate::search::tree::prior::{Rank, table};

/// Iterates over the moves of a node that have no edges yet.
pub(crate) struct Unvisited<'a> {
    tree: &'a Tree,
    header: NodeHeader,
    last: Rank,
    exhausted: bool,
    ranks: &'a mut Vec<Rank>,
}

impl<'a> Unvisited<'a> {
    /// Returns the moves after the one of rank `last`; `ranks` collects the ranks of the requested
    /// moves.
    pub(crate) fn new(
        tree: &'a Tree,
        header: NodeHeader,
        last: Rank,
        ranks: &'a mut Vec<Rank>,
    ) -> Unvisited<'a> {
        ranks.clear();
        Unvisited {
            tree,
            header,
            last,
            exhausted: false,
            ranks,
        }
    }
}

impl Untried for Unvisited<'_> {
    fn bound(&self) -> f32 {
        if self.exhausted {
            f32::NEG_INFINITY
        } else {
            table()[usize::from(self.last.code())]
        }
    }

    fn next(&mut self) -> Option<f32> {
        let next = self.tree.next_rank(self.header, self.last);
        let Some(rank) = next else {
            self.exhausted = true;
            return None;
        };
        self.last = rank;
        self.ranks.push(rank);
        Some(table()[usize::from(rank.code())])
    }
}
