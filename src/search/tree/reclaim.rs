//! Memory that eviction has freed.

use super::arena::{Arena, FreeLists, Index};
use super::node::{NODE, Node};
use crate::search::sync::PAGE;
use std::sync::atomic::Ordering::Relaxed;

/// Reusable memory, and the locations of the nodes.
#[derive(Default)]
pub(crate) struct Reclaim {
    pub(crate) lists: FreeLists,
    /// Pages of nodes.
    pub(crate) pages: Vec<Index>,
    /// The first free node; each free node links to the next.
    free: Index,
    /// The number of free nodes.
    pub(crate) free_nodes: usize,
    last: Option<Eviction>,
}

/// The result of an eviction.
#[derive(Clone, Copy)]
struct Eviction {
    /// Nodes with at most this many visits lost their subtrees.
    visits: u32,
    /// The number of free words afterwards.
    free_words: usize,
}

impl Reclaim {
    /// Returns the number of words available for reuse.
    pub(crate) fn free_words(&self) -> usize {
        self.lists.words() + self.free_nodes * NODE
    }

    /// Returns the number of visits at which the next eviction, needed because an allocation
    /// failed, starts to strip nodes. If hardly any memory was taken since the last eviction, the
    /// blocks freed then were too short, and freeing blocks of the same kind again would not help.
    pub(crate) fn least_visits(&self) -> u32 {
        let in_vain = |last: &Eviction| self.free_words() > last.free_words / 2;
        let last = self.last.filter(in_vain);
        last.map_or(0, |last| last.visits.saturating_mul(2).max(1))
    }

    /// Records an eviction that has just ended.
    pub(crate) fn note(&mut self, visits: u32) {
        let free_words = self.free_words();
        self.last = Some(Eviction { visits, free_words });
    }

    /// Adds a page of free nodes.
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

/// Returns the nodes of a page.
pub(crate) fn nodes_of(page: Index) -> impl Iterator<Item = Index> {
    (page..page + PAGE as Index).step_by(NODE)
}
