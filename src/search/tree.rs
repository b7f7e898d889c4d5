//! The tree: nodes and priors in an [`Arena`], and what becomes of them when
//! the game moves on or the memory ends.

use super::arena::{Arena, FreeLists, Index, Span};
use super::node::{NODE, Node, Outcome, Shape, Stage};
use super::prior::{self, Rank};
use parking_lot::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The root's place.
pub(crate) const ROOT: Index = 0;

/// Children lie in chunks of 2, 2, 4, 8, …, 128, so that a node has at most
/// about twice the memory its children need and none of them ever moves. Up to
/// two children the node points to the chunk itself, from then on to a
/// directory of eight chunks.
const FIRST_CHUNK: u32 = 2;
const DIRECTORY: usize = 4;

/// A subtree with more visits than this is not evicted whole.
const EVICTED_VISITS: u32 = 256;
/// Evict when less than this share of the memory is left, …
const RESERVE_SHARE: usize = 64;
/// … or less than so many words: a longer pause would be felt.
const MAX_RESERVE: usize = 1 << 17;

/// The memory for a node or its priors has run out.
#[derive(Debug)]
pub(crate) struct Full;

/// What a node owns beyond itself.
#[derive(Clone, Copy)]
struct Contents {
    shape: Shape,
    priors: Index,
}

/// Memory to be used again.
#[derive(Default)]
struct Reclaim {
    lists: FreeLists,
    /// Owners of subtrees nobody can reach any more. They are taken apart when
    /// their memory is needed, so that moving the root costs nothing.
    garbage: Vec<Contents>,
}

/// A search tree.
pub(crate) struct Tree {
    arena: Arena,
    reclaim: Mutex<Reclaim>,
}

impl Tree {
    /// A tree in so many MiB, with a root that has not been visited.
    pub(crate) fn new(mebibytes: usize) -> Tree {
        let mut tree = Tree {
            arena: Arena::new(mebibytes),
            reclaim: Mutex::default(),
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

    /// Child `number` of a node of this shape, in the order of their ranks.
    #[inline]
    pub(crate) fn child(&self, shape: Shape, number: u32) -> Index {
        let (chunk, first) = if shape.count() <= FIRST_CHUNK {
            (shape.children(), 0)
        } else {
            let slot = if number < FIRST_CHUNK {
                0
            } else {
                number.ilog2()
            };
            let first = if slot == 0 { 0 } else { 1 << slot };
            (self.chunk(shape.children(), slot), first)
        };
        chunk + (number - first) * NODE as Index
    }

    /// The node's children, the greatest prior first.
    pub(crate) fn children(&self, shape: Shape) -> impl Iterator<Item = Node<'_>> {
        (0..shape.count()).map(move |number| self.node(self.child(shape, number)))
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

    /// Makes the move of this rank child `number` of the node, unless another
    /// thread has already done so.
    pub(crate) fn add_child(
        &self,
        span: &mut Span,
        parent: Node<'_>,
        number: u32,
        mv: u16,
        rank: Rank,
    ) -> Result<Index, Full> {
        let shape = loop {
            let shape = parent.shape();
            if shape.count() > number {
                return Ok(self.child(shape, number));
            }
            let free = |shape: Shape| (!shape.locked()).then_some(shape.lock());
            if let Some(before) = parent.reshape(free) {
                if before.count() == number {
                    break before;
                }
                parent.reshape(|shape| Some(shape.unlock()));
            }
            std::hint::spin_loop();
        };
        let children = self.room_for(span, shape);
        let count = number + u32::from(children.is_some());
        let children = children.unwrap_or(shape.children());
        let grown = shape.with_children(children, count);
        if count > number {
            self.node(self.child(grown, number)).clear(mv, rank);
        }
        parent.reshape(|shape| Some(shape.with_children(children, count).unlock()));
        if count > number {
            Ok(self.child(grown, number))
        } else {
            Err(Full)
        }
    }

    /// Memory for one more child; where the children are then. The node is
    /// locked.
    fn room_for(&self, span: &mut Span, shape: Shape) -> Option<Index> {
        let count = shape.count();
        if count == 0 {
            return self.allocate(span, FIRST_CHUNK as usize * NODE);
        }
        if count < FIRST_CHUNK || !count.is_power_of_two() {
            return Some(shape.children());
        }
        let chunk = self.allocate(span, count as usize * NODE)?;
        let directory = if count == FIRST_CHUNK {
            let Some(directory) = self.allocate(span, DIRECTORY) else {
                self.give(chunk, count as usize * NODE);
                return None;
            };
            self.set_chunk(directory, 0, shape.children());
            directory
        } else {
            shape.children()
        };
        self.set_chunk(directory, count.ilog2(), chunk);
        Some(directory)
    }

    fn chunk(&self, directory: Index, slot: u32) -> Index {
        let word = self.arena.word(directory + slot / 2).load(Acquire);
        (word >> (32 * (slot % 2))) as Index
    }

    fn set_chunk(&self, directory: Index, slot: u32, chunk: Index) {
        let word = self.arena.word(directory + slot / 2);
        let shift = 32 * (slot % 2);
        let kept = word.load(Relaxed) & !(0xffff_ffff << shift);
        word.store(kept | u64::from(chunk) << shift, Release);
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
        // No legal position has more than 218 moves; invented ones may.
        let moves = logits.len().min(254);
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

    fn allocate(&self, span: &mut Span, length: usize) -> Option<Index> {
        if let Some(index) = self.arena.cut(span, length) {
            return Some(index);
        }
        let mut reclaim = self.reclaim.lock();
        loop {
            if let Some(index) = reclaim.lists.take(&self.arena, length) {
                return Some(index);
            }
            if !self.reclaim_one(&mut reclaim) {
                return None;
            }
        }
    }

    fn give(&self, index: Index, length: usize) {
        self.reclaim.lock().lists.give(&self.arena, index, length);
    }

    /// Takes one unreachable node apart; false if there is none.
    fn reclaim_one(&self, reclaim: &mut Reclaim) -> bool {
        let Some(Contents { shape, priors }) = reclaim.garbage.pop() else {
            return false;
        };
        let lists = &mut reclaim.lists;
        for child in self.children(shape) {
            let shape = child.shape();
            if shape.moves() > 0 {
                let priors = child.priors();
                reclaim.garbage.push(Contents { shape, priors });
            }
        }
        lists.give(&self.arena, priors, prior::words(shape.moves().into()));
        let count = shape.count();
        if count > FIRST_CHUNK {
            for slot in 0..=(count - 1).ilog2() {
                let children = if slot == 0 { FIRST_CHUNK } else { 1 << slot };
                let chunk = self.chunk(shape.children(), slot);
                lists.give(&self.arena, chunk, children as usize * NODE);
            }
            lists.give(&self.arena, shape.children(), DIRECTORY);
        } else if count > 0 {
            lists.give(&self.arena, shape.children(), FIRST_CHUNK as usize * NODE);
        }
        true
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

    /// Whether eviction is due.
    pub(crate) fn is_low(&self) -> bool {
        let capacity = self.arena.capacity();
        let reserve = (capacity / RESERVE_SHARE).min(MAX_RESERVE);
        if self.arena.taken() + reserve < capacity {
            return false;
        }
        let reclaim = self.reclaim.lock();
        reclaim.garbage.is_empty() && reclaim.lists.words() < reserve / 2
    }

    /// Forgets least-visited subtrees until twice the reserve is free. Their
    /// roots keep their statistics and are evaluated again when a visit comes
    /// by. No thread may be in the tree; nodes with visits in flight stay.
    pub(crate) fn evict(&self) {
        let goal = 2 * (self.arena.capacity() / RESERVE_SHARE).min(MAX_RESERVE);
        let mut reclaim = self.reclaim.lock();
        while reclaim.lists.words() < goal {
            if self.reclaim_one(&mut reclaim) {
                continue;
            }
            let Some(victim) = self.victim() else { break };
            let (shape, priors) = (victim.shape(), victim.priors());
            victim.strip();
            reclaim.garbage.push(Contents { shape, priors });
        }
    }

    /// From the root on always to the least-visited child that owns anything,
    /// down to a subtree small enough to go.
    fn victim(&self) -> Option<Node<'_>> {
        let mut victim = None;
        let mut node = self.root();
        loop {
            let owner = |child: &Node<'_>| child.shape().moves() > 0 && child.in_flight() == 0;
            let least = self
                .children(node.shape())
                .filter(owner)
                .min_by_key(|child| child.visits());
            let Some(child) = least else { return victim };
            victim = Some(child);
            if child.visits() <= EVICTED_VISITS {
                return victim;
            }
            node = child;
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
mod tests {
    use super::*;

    fn expanded(tree: &Tree, span: &mut Span, index: Index, moves: usize) {
        let logits: Vec<f32> = (0..moves).map(|number| number as f32 * 0.01).collect();
        tree.expand(span, tree.node(index), &logits, 1.0, &mut Vec::new());
    }

    fn grow(tree: &Tree, span: &mut Span, index: Index) -> Result<Index, Full> {
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

    #[test]
    fn children_stay_where_they_are_while_more_come() {
        let tree = Tree::new(1);
        let mut span = Span::default();
        expanded(&tree, &mut span, ROOT, 218);
        let indices: Vec<_> = (0..218)
            .map(|_| grow(&tree, &mut span, ROOT).unwrap())
            .collect();
        let shape = tree.root().shape();
        assert_eq!(shape.count(), 218);
        for (number, &index) in indices.iter().enumerate() {
            assert_eq!(tree.child(shape, number as u32), index);
        }
        let ranks: Vec<_> = tree.children(shape).map(Node::rank).collect();
        assert!(ranks.windows(2).all(|pair| pair[0] > pair[1]));
    }

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
        let more = fill(&tree);
        assert!(more > first / 2, "{more}");
        tree.clear();
        assert!(tree.fullness() < 0.01);
    }
}
