//! Memory that eviction has freed.

use super::arena::{Arena, FreeLists, Index};
use super::node::{NODE, Node};
use crate::search::sync::PAGE;
use std::sync::atomic::Ordering::Relaxed;

/// Memory to be used again, and where the nodes are.
#[derive(Default)]
pub(crate) struct Reclaim {
    pub(crate) lists: FreeLists,
    /// Pages of nodes.
    pub(crate) pages: Vec<Index>,
    /// The first of the free nodes; each leads to the next.
    free: Index,
    free_nodes: usize,
    last: Option<Eviction>,
}

/// The result of an eviction.
#[derive(Clone, Copy)]
struct Eviction {
    /// Nodes with up to this many visits lost their subtrees.
    visits: u32,
    /// Words that were free afterwards.
    free_words: usize,
}

impl Reclaim {
    /// Words that wait to be used.
    pub(crate) fn free_words(&self) -> usize {
        self.lists.words() + self.free_nodes * NODE
    }

    /// Free nodes.
    pub(crate) fn free_nodes(&self) -> usize {
        self.free_nodes
    }

    /// The visits from which an eviction begins to strip nodes when a request has
    /// just failed. If hardly anything was taken since the last eviction, that one
    /// left pieces which are too short: to free the same again would help nobody.
    pub(crate) fn least_visits(&self) -> u32 {
        let in_vain = |last: &Eviction| self.free_words() > last.free_words / 2;
        let last = self.last.filter(in_vain);
        last.map_or(0, |last| last.visits.saturating_mul(2).max(1))
    }

    /// Takes note of an eviction that has just ended.
    pub(crate) fn note(&mut self, visits: u32) {
        let free_words = self.free_words();
        self.last = Some(Eviction { visits, free_words });
    }

    /// Takes note of a page of nodes that are all free.
    pub(crate) fn add_page(&mut self, arena: &Arena, page: Index) {
        for index in nodes_of(page) {
            Node::new(arena.block(index)).free();
        }
        self.pages.push(page);
    }

    pub(crate) fn take_node(&mut self, arena: &Arena) -> Option<Index> {
        let index = self.free;
        (index != 0).then(|| {
            self.free = arena.word(index).load(Relaxed) as Index;
            self.free_nodes -= 1;
            index
        })
    }

    pub(crate) fn give_node(&mut self, arena: &Arena, index: Index) {
        Node::new(arena.block(index)).free();
        arena.word(index).store(self.free.into(), Relaxed);
        self.free = index;
        self.free_nodes += 1;
    }
}

/// The nodes of a page.
pub(crate) fn nodes_of(page: Index) -> impl Iterator<Item = Index> {
    (page..page + PAGE as Index).step_by(NODE)
}
