//! The tree: nodes and priors in an [`Arena`], and what becomes of them when
//! the game moves on or the memory ends.

use super::arena::{Arena, Index, Span};
use super::evict::{Contents, Reclaim};
use super::node::{NODE, Node};
use super::prior::{self, Rank};
use super::shape::{Outcome, Shape, Stage};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The root's place.
pub(crate) const ROOT: Index = 0;

/// The memory for a node or its priors has run out.
#[derive(Debug)]
pub(crate) struct Full;

/// A search tree.
pub(crate) struct Tree {
    arena: Arena,
    reclaim: Mutex<Reclaim>,
    /// Whether a block was asked for and not found.
    starved: AtomicBool,
}

impl Tree {
    /// A tree in so many MiB, with a root that has not been visited.
    pub(crate) fn new(mebibytes: usize) -> Tree {
        let mut tree = Tree {
            arena: Arena::new(mebibytes),
            reclaim: Mutex::default(),
            starved: AtomicBool::new(false),
        };
        tree.clear();
        tree
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.arena.reset(NODE);
        *self.reclaim.get_mut() = Reclaim::default();
        self.root().clear(0, Rank::TOP);
    }

    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    pub(crate) fn reclaim(&self) -> &Mutex<Reclaim> {
        &self.reclaim
    }

    pub(crate) fn starved(&self) -> &AtomicBool {
        &self.starved
    }

    #[inline]
    pub(crate) fn node(&self, index: Index) -> Node<'_> {
        Node::new(self.arena.block(index))
    }

    pub(crate) fn root(&self) -> Node<'_> {
        self.node(ROOT)
    }

    /// Bytes in use, what waits to be reclaimed included.
    pub(crate) fn bytes(&self) -> usize {
        (self.arena.taken() - self.reclaim.lock().lists.words()) * 8
    }

    /// Share of the memory in use, in 0…1.
    pub(crate) fn fullness(&self) -> f32 {
        (self.bytes() as f64 / (self.arena.capacity() * 8) as f64) as f32
    }

    /// The rank of the move to become a child after the last one.
    pub(crate) fn next_rank(&self, node: Node<'_>, shape: Shape, last: Rank) -> Option<Rank> {
        last.next(&self.arena, node.priors(), shape.moves())
    }

    /// The codes of the priors of all moves of a node, in the order in which
    /// the moves are generated.
    pub(crate) fn prior_codes(&self, node: Node<'_>, shape: Shape) -> Vec<u8> {
        let moves = usize::from(shape.moves());
        let words = self.arena.slice(node.priors(), prior::words(moves));
        let bytes = words
            .iter()
            .flat_map(|word| word.load(Relaxed).to_le_bytes());
        bytes.take(moves).collect()
    }

    /// Gives a pending node the priors of these logits. Without memory for them
    /// it becomes new again: its next visit evaluates it again.
    pub(crate) fn expand(
        &self,
        span: &mut Span,
        node: Node<'_>,
        logits: &[f32],
        temperature: f32,
        scratch: &mut Vec<f32>,
    ) {
        let moves = logits.len().min(prior::MAX_MOVES);
        match self.allocate(span, prior::words(moves)) {
            Some(priors) => {
                prior::write(&self.arena, priors, &logits[..moves], temperature, scratch);
                node.expand(priors, moves as u8);
            }
            None => {
                node.reshape(|shape| Some(shape.with_stage(Stage::New)));
            }
        }
    }

    /// Ends a thread's use of its span.
    pub(crate) fn retire(&self, span: Span) {
        if let Some((index, length)) = span.rest() {
            self.give(index, length);
        }
    }

    pub(crate) fn allocate(&self, span: &mut Span, length: usize) -> Option<Index> {
        if let Some(index) = self.arena.cut(span, length) {
            return Some(index);
        }
        let mut reclaim = self.reclaim.lock();
        loop {
            if let Some(index) = reclaim.lists.take(&self.arena, length) {
                return Some(index);
            }
            if !self.reclaim_one(&mut reclaim) {
                self.starved.store(true, Relaxed);
                return None;
            }
        }
    }

    pub(crate) fn give(&self, index: Index, length: usize) {
        self.reclaim.lock().lists.give(&self.arena, index, length);
    }

    /// Makes the child that `mv` leads to the root and forgets the rest; false,
    /// and nothing changed, if there is no such child.
    pub(crate) fn advance(&mut self, mv: u16) -> bool {
        let root = self.root();
        let shape = root.shape();
        let Some(child) = self.children(shape).find(|child| child.mv() == mv) else {
            return false;
        };
        let priors = root.priors();
        root.copy_from(child);
        // What the new root owns is no longer the old child's.
        child.strip();
        self.reclaim.lock().garbage.push(Contents { shape, priors });
        true
    }

    /// Readies the root for a search: it must be open to descents or new.
    pub(crate) fn settle_root(&mut self) {
        let root = self.root();
        if root.shape().moves() == 0 {
            let rank = root.rank();
            root.clear(root.mv(), rank);
        }
    }

    /// What the children prove of a node: the outcome and the plies to it.
    pub(crate) fn proof(&self, node: Node<'_>) -> Option<(Outcome, u8)> {
        let shape = node.proven_shape();
        let mut win: Option<u8> = None;
        let (mut drawn, mut longest) = (false, 0);
        let mut open = shape.count() < u32::from(shape.moves());
        for child in self.children(shape) {
            let child = child.proven_shape();
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

    /// Gives a node so many moves.
    pub(crate) fn expanded(tree: &Tree, span: &mut Span, index: Index, moves: usize) {
        let logits: Vec<f32> = (0..moves).map(|number| number as f32 * 0.01).collect();
        tree.expand(span, tree.node(index), &logits, 1.0, &mut Vec::new());
    }

    /// Gives a node one more child.
    pub(crate) fn grow(tree: &Tree, span: &mut Span, index: Index) -> Result<Index, Full> {
        let node = tree.node(index);
        let shape = node.shape();
        let last = match shape.count() {
            0 => Rank::TOP,
            count => tree.node(tree.child(shape, count - 1)).rank(),
        };
        let rank = tree.next_rank(node, shape, last).unwrap();
        let mv = u16::from(rank.number());
        tree.add_child(span, node, shape.count(), mv, rank)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{expanded, grow};
    use super::*;

    #[test]
    fn memory_ends_gently_and_is_used_again_when_the_root_moves() {
        let mut tree = Tree::new(1);
        let mut span = Span::default();
        let mut fill = |tree: &Tree| {
            let mut grown = 0;
            let mut leaves = vec![ROOT];
            while let Some(leaf) = leaves.pop() {
                if tree.node(leaf).shape().stage() == Stage::New {
                    expanded(tree, &mut span, leaf, 30);
                }
                for _ in 0..3 {
                    match tree.node(leaf).shape().stage() {
                        Stage::Expanded => match grow(tree, &mut span, leaf) {
                            Ok(child) => leaves.insert(0, child),
                            Err(Full) => return grown,
                        },
                        _ => return grown,
                    }
                    grown += 1;
                }
            }
            unreachable!("every leaf gets children");
        };
        let first = fill(&tree);
        assert!(first > 8_000, "{first}");
        assert!(tree.fullness() > 0.98);
        let mv = tree.node(tree.child(tree.root().shape(), 1)).mv();
        assert!(!tree.advance(999));
        assert!(tree.advance(mv));
        assert!(tree.is_low(), "a request has just failed");
        tree.evict();
        assert!(!tree.is_low());
        let more = fill(&tree);
        assert!(more > first / 2, "{more}");
        tree.clear();
        assert!(tree.fullness() < 0.01);
    }
}
