//! Eviction of nodes that are unreachable or less needed than others.
//!
//! When memory runs low, the search pauses and nodes that are no longer reachable from the root are
//! freed. If that is not enough, the least-visited nodes lose their subtrees; they keep their
//! values and are evaluated again at their next visit.

use super::Tree;
use super::arena::Index;
use super::header::{NodeHeader, Stage};
use super::node::NODE;
use super::reclaim::nodes_of;
use crate::search::sync::PAGE;
use std::sync::atomic::Ordering::Relaxed;

/// Eviction is due when the free memory is less than 1/`RESERVE_SHARE` of the total …
const RESERVE_SHARE: usize = 64;
/// … or, in a large tree, less than this many words.
const MAX_RESERVE: usize = 1 << 17;
/// An eviction frees at least 1/`FREED_SHARE` of the memory.
const FREED_SHARE: usize = 8;
/// Number of nodes visited between checks of whether the search should end.
const PATIENCE: usize = 1 << 14;

/// The nodes that remain if those with few visits lose their subtrees.
struct Survey {
    /// One bit per reachable node.
    reached: Vec<u64>,
    nodes: usize,
    /// Number of words that these nodes own.
    words: usize,
}

impl Survey {
    /// Marks a node as reached; returns false if it was already marked.
    fn reach(&mut self, index: Index) -> bool {
        let number = index as usize / NODE;
        let (word, bit) = (&mut self.reached[number / 64], 1 << (number % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    fn reaches(&self, index: Index) -> bool {
        let number = index as usize / NODE;
        self.reached[number / 64] & 1 << (number % 64) != 0
    }
}

impl Tree {
    /// Returns whether eviction is due.
    pub(crate) fn is_low(&self) -> bool {
        if self.starved.load(Relaxed) {
            return true;
        }
        let capacity = self.arena.capacity();
        let reserve = (capacity / RESERVE_SHARE).min(MAX_RESERVE);
        if self.arena.taken() + reserve < capacity {
            return false;
        }
        let reclaim = self.reclaim.lock();
        reclaim.lists.words() < reserve / 2 || reclaim.free_nodes * NODE < reserve / 4
    }

    /// Frees memory. No other thread may access the tree. Nodes with visits in flight are kept.
    /// Returns false, leaving the tree unchanged, if `hurry` interrupts the eviction.
    pub(crate) fn evict(&self, hurry: impl Fn() -> bool) -> bool {
        let mut reclaim = self.reclaim.lock();
        let node_words = reclaim.pages.len() * PAGE;
        let block_words = self.arena.capacity().saturating_sub(node_words);
        let enough = |survey: &Survey| {
            survey.nodes * NODE <= node_words - node_words / FREED_SHARE
                && survey.words <= block_words - block_words / FREED_SHARE
        };
        let most = self.root().visits();
        let mut visits = match self.starved.load(Relaxed) {
            true => reclaim.least_visits(),
            false => 0,
        };
        let survey = loop {
            let Some(survey) = self.survey(visits, &hurry) else {
                return false;
            };
            if enough(&survey) || visits > most {
                break survey;
            }
            visits = visits.saturating_mul(2).max(1);
        };
        for page in std::mem::take(&mut reclaim.pages) {
            for index in nodes_of(page) {
                let node = self.node(index);
                let header = node.header();
                if header.stage() == Stage::Free {
                    continue;
                }
                let kept = survey.reaches(index);
                if kept && !self.is_expendable(index, header, visits) {
                    continue;
                }
                let lists = &mut reclaim.lists;
                self.contents(header, |index, length| {
                    lists.give(&self.arena, index, length);
                });
                if kept {
                    node.strip();
                } else {
                    self.table.remove(node.key(), index);
                    reclaim.give_node(&self.arena, index);
                }
            }
            reclaim.pages.push(page);
        }
        reclaim.lists.merge(&self.arena);
        reclaim.note(visits);
        self.starved.store(false, Relaxed);
        self.note_eviction();
        true
    }

    /// Walks from the root to every node that remains if nodes with up to `visits` visits lose
    /// their subtrees. Returns `None` if the walk was interrupted.
    fn survey(&self, visits: u32, hurry: &impl Fn() -> bool) -> Option<Survey> {
        let mut survey = Survey {
            reached: vec![0; self.arena.taken() / NODE / 64 + 1],
            nodes: 0,
            words: 0,
        };
        let mut stack = vec![self.root_index()];
        survey.reach(self.root_index());
        while let Some(index) = stack.pop() {
            survey.nodes += 1;
            if survey.nodes.is_multiple_of(PATIENCE) && hurry() {
                return None;
            }
            let header = self.node(index).header();
            if self.is_expendable(index, header, visits) {
                continue;
            }
            survey.words += self.content_words(header);
            for edge in self.edges(header) {
                let to = edge.node();
                if to != 0 && survey.reach(to) {
                    stack.push(to);
                }
            }
        }
        Some(survey)
    }

    /// Returns whether a node loses its subtree when nodes with up to `visits` visits lose theirs.
    fn is_expendable(&self, index: Index, header: NodeHeader, visits: u32) -> bool {
        visits > 0
            && index != self.root_index()
            && header.stage() == Stage::Expanded
            && self.node(index).visits() <= visits
            && self
                .edges(header)
                .all(|edge| edge.edge_visits().in_flight() == 0)
    }
}
