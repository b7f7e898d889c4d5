//! The tree: nodes, edges and priors in an [`Arena`], a [`Table`] that maps positions to nodes, and
//! eviction as the game advances.
//!
//! With transpositions, the tree is a graph: several edges may lead to one node, even back to an
//! ancestor, but no descent visits a position twice.
//!
//! | part | contents |
//! |---|---|
//! | `arena`, `prior`, `packed` | memory: words, priors and moves in few bits |
//! | `node`, `header`, `block`, `edge`, `edges`, `table` | positions, the memory they own, the moves between them, and their locations |
//! | `value`, `move_order` | the values of nodes and edges, and the order of preference among edges |
//! | `depth` | the depth of the tree |
//! | `evict`, `reclaim` | eviction, and the memory that it frees |

pub(crate) mod arena;
pub(crate) mod block;
pub(crate) mod correct;
pub(crate) mod depth;
pub(crate) mod edge;
pub(crate) mod edges;
pub(crate) mod evict;
pub(crate) mod header;
pub(crate) mod move_order;
pub(crate) mod node;
pub(crate) mod packed;
pub(crate) mod prior;
pub(crate) mod reclaim;
pub(crate) mod table;
pub(crate) mod value;

use super::sync::{AtomicBool, AtomicU32, Mutex, fence};
use arena::{Arena, Index, Span};
use block::priors;
use header::{NodeHeader, Outcome, Stage};
use node::{NODE, Node, Statistics};
use prior::Rank;
use reclaim::Reclaim;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use table::Table;

/// Number of visits in flight through the root at which threads stop starting more. Each edge
/// stores its visits in flight in 16 bits; the other half of their range is reserved for visits
/// that all threads start at the same moment.
pub(crate) const MAX_IN_FLIGHT: u32 = 1 << 15;

/// Number of words reserved at the start, so that no index is 0.
const RESERVED: usize = NODE;

/// The table gets 1/`TABLE_SHARE` of the memory.
const TABLE_SHARE: usize = 8;

/// The memory for a node, an edge or priors has run out.
#[derive(Debug)]
pub(crate) struct Full;

/// A search tree.
pub(crate) struct Tree {
    pub(crate) arena: Arena,
    pub(crate) table: Table,
    root: Index,
    /// Visits in flight through the root.
    pub(crate) in_flight: AtomicU32,
    pub(crate) reclaim: Mutex<Reclaim>,
    /// Whether an allocation failed because no free block was long enough.
    pub(crate) starved: AtomicBool,
    evictions: AtomicU32,
}

impl Tree {
    /// Creates a tree of this many MiB with an unvisited root.
    pub(crate) fn new(mebibytes: usize) -> Tree {
        let table = (mebibytes / TABLE_SHARE).max(1);
        let mut tree = Tree {
            arena: Arena::new(mebibytes.saturating_sub(table).max(1)),
            table: Table::new(table),
            root: 0,
            in_flight: AtomicU32::new(0),
            reclaim: Mutex::default(),
            starved: AtomicBool::new(false),
            evictions: AtomicU32::new(0),
        };
        tree.clear();
        tree
    }

    /// Clears the tree.
    pub(crate) fn clear(&mut self) {
        self.arena.reset(RESERVED);
        self.table.clear();
        // A search that panicked has left visits in flight.
        self.in_flight = AtomicU32::new(0);
        self.reclaim = Mutex::default();
        self.starved = AtomicBool::new(false);
        self.root = self.fresh_root();
    }

    /// Returns a new root that no edge leads to.
    fn fresh_root(&mut self) -> Index {
        let mut span = Span::default();
        let root = self.add_node(&mut span, 0);
        self.release(span, Span::default());
        // Even the smallest memory has room for a page of nodes; if an old tree fills that
        // memory, the old root is reused.
        root.unwrap_or(self.root)
    }

    /// Returns the number of evictions, each of which removed the nodes not reachable from the
    /// root.
    pub(crate) fn evictions(&self) -> u32 {
        self.evictions.load(Relaxed)
    }

    pub(crate) fn note_eviction(&self) {
        self.evictions.fetch_add(1, Relaxed);
    }

    #[inline]
    pub(crate) fn node(&self, index: Index) -> Node<'_> {
        Node::new(self.arena.block(index))
    }

    pub(crate) fn root_index(&self) -> Index {
        self.root
    }

    pub(crate) fn root(&self) -> Node<'_> {
        self.node(self.root)
    }

    /// Returns the number of bytes in use, excluding memory lost in evictions.
    pub(crate) fn bytes(&self) -> usize {
        (self.arena.taken() - self.reclaim.lock().free_words()) * 8
    }

    /// Returns the share of the memory in use, in 0…1.
    pub(crate) fn fullness(&self) -> f32 {
        (self.bytes() as f64 / (self.arena.capacity() * 8) as f64) as f32
    }

    /// Returns the rank of the next move that will get an edge after the last one.
    pub(crate) fn next_rank(&self, header: NodeHeader, last: Rank) -> Option<Rank> {
        last.next(&self.arena, priors(header.block()), header.moves())
    }

    /// Returns the codes of the priors of all the node's moves, in generation order.
    pub(crate) fn prior_codes(&self, header: NodeHeader) -> Vec<u8> {
        let moves = usize::from(header.moves());
        let words = self
            .arena
            .slice(priors(header.block()), prior::words(moves));
        let bytes = words
            .iter()
            .flat_map(|word| word.load(Relaxed).to_le_bytes());
        bytes.take(moves).collect()
    }

    /// Gives a pending node its evaluation, and priors from these logits. If no memory is left for
    /// the priors, the node keeps the evaluation as its value but becomes [`Stage::New`] again, so
    /// its next visit evaluates it again.
    pub(crate) fn expand(
        &self,
        span: &mut Span,
        node: Node<'_>,
        own: &Statistics,
        logits: &[f32],
        temperature: f32,
        scratch: &mut Vec<f32>,
    ) {
        let moves = logits.len().min(prior::MAX_MOVES);
        node.set(own);
        match self.allocate(span, block::words(moves)) {
            Some(index) => {
                let logits = &logits[..moves];
                prior::write(&self.arena, priors(index), logits, temperature, scratch);
                block::Block::new(&self.arena, index).clear(own);
                node.expand(index, moves as u8);
                // The node may have been proven while it was being evaluated.
                if node.header().outcome() != Outcome::Unknown {
                    self.refresh(node);
                }
            }
            None => {
                node.update(|header| Some(header.with_stage(Stage::New)));
            }
        }
    }

    /// Creates a node.
    pub(crate) fn add_node(&self, span: &mut Span, key: u64) -> Result<Index, Full> {
        let index = match self.arena.cut_from(span, NODE) {
            Some(index) => index,
            None => self.find_node(span).ok_or(Full)?,
        };
        self.node(index).clear(key);
        Ok(index)
    }

    /// Returns a free node, or the first node of a new page.
    fn find_node(&self, span: &mut Span) -> Option<Index> {
        let mut reclaim = self.reclaim.lock();
        if let Some(index) = reclaim.take_node(&self.arena) {
            return Some(index);
        }
        let Some(page) = self.arena.cut_page() else {
            self.starved.store(true, Relaxed);
            return None;
        };
        reclaim.add_page(&self.arena, page.start());
        *span = page;
        self.arena.cut_from(span, NODE)
    }

    /// Frees a node to which no edge leads.
    pub(crate) fn give_node(&self, index: Index) {
        self.reclaim.lock().give_node(&self.arena, index);
    }

    /// Returns a thread's unused spans of nodes and blocks to the tree.
    pub(crate) fn release(&self, mut nodes: Span, blocks: Span) {
        while let Some(index) = self.arena.cut_from(&mut nodes, NODE) {
            self.give_node(index);
        }
        if let Some((index, length)) = blocks.rest() {
            self.give(index, length);
        }
    }

    pub(crate) fn allocate(&self, span: &mut Span, length: usize) -> Option<Index> {
        let found = self
            .arena
            .cut(span, length)
            .or_else(|| self.reclaim.lock().lists.take(&self.arena, length));
        if found.is_none() {
            self.starved.store(true, Relaxed);
        }
        found
    }

    pub(crate) fn give(&self, index: Index, length: usize) {
        self.reclaim.lock().lists.give(&self.arena, index, length);
    }

    /// Returns the node that `mv` leads to, if it exists.
    pub(crate) fn child(&self, node: Index, mv: u16) -> Option<Index> {
        let edge = self
            .edges(self.node(node).header())
            .find(|edge| edge.mv() == mv)?;
        (edge.node() != 0).then_some(edge.node())
    }

    /// Replaces this node with a new root, as far as memory allows; only the nodes below it are
    /// kept.
    pub(crate) fn renew_root(&mut self, node: Index) {
        self.root = node;
        self.root = self.fresh_root();
    }

    /// Makes a node the root and prepares it for a search: the node becomes either new or open to
    /// descents.
    pub(crate) fn settle_root(&mut self, node: Index) {
        self.root = node;
        let header = self.root().header();
        if header.moves() == 0 {
            self.root = self.fresh_root();
            return;
        }
        // A proof from outside the tree has no edges here that support it.
        if header.outcome() != Outcome::Unknown && self.proof(self.root()).is_none() {
            self.root()
                .update(|header| Some(header.with_outcome(Outcome::Unknown, 0)));
        }
        // A position that repeats an earlier one since the old root may not repeat any since the
        // new root.
        for edge in self.edges(header) {
            edge.forget_draws();
            if edge.node() != 0 {
                let reply = self.node(edge.node());
                self.edges(reply.header())
                    .for_each(|edge| edge.forget_draws());
                self.refresh(reply);
            }
        }
        self.refresh(self.root());
    }

    /// Returns the outcome that a node's edges prove and the number of plies to it, which saturates
    /// at [`OUT_OF_SIGHT`](header::OUT_OF_SIGHT). If two threads prove a move each, at least one of
    /// them sees both proofs.
    pub(crate) fn proof(&self, node: Node<'_>) -> Option<(Outcome, u8)> {
        fence(SeqCst);
        let header = node.header();
        let mut win: Option<u8> = None;
        let (mut drawn, mut longest) = (false, 0);
        let mut open = header.count() < u32::from(header.moves());
        for edge in self.edges(header) {
            let child = match edge.node() {
                0 => NodeHeader::default(),
                to => self.node(to).header(),
            };
            let plies = child.plies().saturating_add(1);
            match child.outcome() {
                Outcome::Loss => win = Some(win.map_or(plies, |best| best.min(plies))),
                Outcome::Draw => drawn = true,
                Outcome::Win => longest = longest.max(plies),
                Outcome::Unknown => open = true,
            }
        }
        match win {
            Some(plies) => Some((Outcome::Win, plies)),
            None if open => None,
            None if drawn => Some((Outcome::Draw, 0)),
            None => Some((Outcome::Loss, longest)),
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Gives a node this many moves and an evaluation that predicts one ply left.
    pub(crate) fn expanded(tree: &Tree, span: &mut Span, node: Node<'_>, moves: usize) {
        let logits: Vec<f32> = (0..moves).map(|number| number as f32 * 0.01).collect();
        let own = Statistics {
            visits: 1,
            m: 1.0,
            ..Statistics::default()
        };
        tree.expand(span, node, &own, &logits, 1.0, &mut Vec::new());
    }

    /// Adds one edge to a node.
    pub(crate) fn grow(tree: &Tree, span: &mut Span, node: Node<'_>) -> Result<Index, Full> {
        let header = node.header();
        let last = tree.last_edge(header).map(|edge| edge.rank());
        let last = last.filter(|&rank| tree.orders_the_rest(header, rank));
        let last = last.unwrap_or(Tree::first_rank(header));
        let rank = tree.next_rank(header, last).unwrap();
        let mv = u16::from(rank.number());
        tree.add_edge(span, (node, header), header.count(), mv, rank)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{expanded, grow};
    use super::*;

    /// Fills the memory with a tree of three moves per node; returns the number of nodes created.
    fn fill(tree: &Tree) -> usize {
        let (mut nodes, mut blocks) = (Span::default(), Span::default());
        let mut made = 0;
        let mut leaves = std::collections::VecDeque::from([tree.root_index()]);
        'filling: while let Some(leaf) = leaves.pop_front() {
            let leaf = tree.node(leaf);
            if leaf.header().stage() == Stage::New {
                expanded(tree, &mut blocks, leaf, 30);
            }
            for _ in 0..3 {
                if leaf.header().stage() != Stage::Expanded {
                    break 'filling;
                }
                let Ok(edge) = grow(tree, &mut blocks, leaf) else {
                    break 'filling;
                };
                let Ok(node) = tree.add_node(&mut nodes, made) else {
                    break 'filling;
                };
                tree.table.insert(made, node);
                tree.edge(edge).link(node);
                tree.edge(edge).add_in_flight(1);
                tree.edge(edge).complete(1, 1, 0);
                leaves.push_back(node);
                made += 1;
            }
        }
        tree.release(nodes, blocks);
        made as usize
    }

    #[test]
    fn proofs_outlast_pending_evaluations() {
        let tree = Tree::new(1);
        let (mut nodes, mut blocks) = (Span::default(), Span::default());
        let node = tree.node(tree.add_node(&mut nodes, 1).unwrap());
        node.prove(Outcome::Loss, 3);
        tree.refresh(node);
        let proven = node.statistics();
        assert_eq!(proven.q, 1.0);
        // Meanwhile another thread was evaluating the node.
        expanded(&tree, &mut blocks, node, 20);
        assert_eq!(node.statistics().q, 1.0);
        assert_eq!(node.header().outcome(), Outcome::Loss);
        tree.release(nodes, blocks);
    }

    #[test]
    fn memory_ends_gently_and_is_used_again_when_the_root_moves() {
        let mut tree = Tree::new(2);
        let first = fill(&tree);
        assert!(first > 8_000, "{first}");
        assert!(tree.fullness() > 0.9, "{}", tree.fullness());
        let header = tree.root().header();
        let mv = tree.edges(header).nth(1).unwrap().mv();
        assert!(tree.child(tree.root_index(), 999).is_none());
        let child = tree.child(tree.root_index(), mv).unwrap();
        let first_root = tree.root_index();
        tree.renew_root(child);
        assert_ne!(tree.root_index(), first_root, "it is another position");
        tree.settle_root(child);
        assert!(tree.is_low(), "a request has just failed");
        assert!(tree.evict(|| false));
        assert!(!tree.is_low());
        // Two thirds of the nodes were no longer reachable.
        assert!(tree.fullness() < 0.5, "{}", tree.fullness());
        let kept = tree.edges(tree.root().header()).count();
        assert_eq!(kept, 3);
        tree.clear();
        assert!(tree.fullness() < 0.05);
        assert!(fill(&tree) > first * 9 / 10);
    }

    #[test]
    fn an_eviction_is_left_where_there_is_a_hurry() {
        let tree = Tree::new(8);
        let nodes = fill(&tree);
        assert!(nodes > 1 << 14, "{nodes}");
        let (fullness, evictions) = (tree.fullness(), tree.evictions());
        assert!(!tree.evict(|| true));
        assert!(tree.is_low(), "it is still due");
        assert_eq!((tree.fullness(), tree.evictions()), (fullness, evictions));
        assert!(tree.evict(|| false));
        assert!(!tree.is_low() && tree.fullness() < fullness);
    }

    #[test]
    fn an_eviction_in_vain_is_followed_by_a_greater_one() {
        let tree = Tree::new(2);
        fill(&tree);
        let mut fullness = tree.fullness();
        while tree.fullness() > 0.05 {
            // This is the state when all free blocks are too short for a request.
            tree.starved.store(true, Relaxed);
            assert!(tree.evict(|| false));
            assert!(tree.fullness() < fullness, "{fullness}");
            fullness = tree.fullness();
        }
    }

    #[test]
    fn a_position_is_worth_what_its_evaluation_and_its_moves_are() {
        let tree = Tree::new(2);
        let (mut nodes, mut blocks) = (Span::default(), Span::default());
        let value = |q: f64| Statistics {
            visits: 1,
            q,
            d: 0.5,
            m: 10.0,
        };
        let logits = [0.0; 3];
        let mut scratch = Vec::new();
        let mut evaluate = |node, own: &Statistics| {
            tree.expand(&mut blocks, node, own, &logits, 1.0, &mut scratch);
        };
        let root = tree.root();
        evaluate(root, &value(0.2));
        let child = tree.add_node(&mut nodes, 5).unwrap();
        evaluate(tree.node(child), &value(0.8));
        let mut span = Span::default();
        for (visits, drawn, linked) in [(3, 0, true), (2, 2, false)] {
            let edge = tree.edge(grow(&tree, &mut span, root).unwrap());
            if linked {
                edge.link(child);
            }
            edge.add_in_flight(visits);
            edge.complete(visits, visits, drawn);
        }
        tree.refresh(root);
        let statistics = root.statistics();
        // One visit is the node's own, three went through the first move, and two ended in draws.
        assert_eq!(statistics.visits, 6);
        assert!((statistics.q - (0.2 - 3.0 * 0.8) / 6.0).abs() < 1e-6);
        assert!((statistics.d - (0.5 + 3.0 * 0.5 + 2.0) / 6.0).abs() < 1e-4);
        assert!((statistics.m - (10.0 + 3.0 * 11.0 + 2.0 * 1.0) / 6.0).abs() < 0.01);
    }
}
