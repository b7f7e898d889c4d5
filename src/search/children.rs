//! Where the children of a node lie.
//!
//! In chunks of two and four nodes, so that none ever moves, little is wasted,
//! and memory given back fits the next node: no block is longer than
//! [`MAX_BLOCK`](super::arena::MAX_BLOCK). The first two children are in a chunk
//! of their own, to which the node points. With the third child comes a
//! directory of eight places: two chunks of two, five of four, and a directory
//! of directories for the 25th child and those after.

use super::arena::{Index, Span};
use super::node::{NODE, Node};
use super::prior::{Rank, table};
use super::select::Untried;
use super::shape::Shape;
use super::tree::{Full, Tree};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Children without a directory.
const DIRECT: u32 = 2;
/// Children that the first directory itself leads to.
const NEAR: u32 = 24;
/// Place of the directory of directories in the first one.
const FAR_SLOT: u32 = 7;
/// Children that each directory below that leads to.
const FAR: u32 = 32;
/// Words of a directory.
const DIRECTORY: usize = 4;
/// Words of a chunk of two.
const PAIR: usize = 2 * NODE;
/// Words of a chunk of four.
const QUAD: usize = 4 * NODE;

impl Tree {
    /// Child `number` of a node of this shape, in the order of their ranks.
    #[inline]
    pub(crate) fn child(&self, shape: Shape, number: u32) -> Index {
        let top = shape.children();
        let (chunk, place) = if shape.count() <= DIRECT {
            (top, number)
        } else if number < 4 {
            (self.slot(top, number / 2), number % 2)
        } else if number < NEAR {
            (self.slot(top, number / 4 + 1), number % 4)
        } else {
            let number = number - NEAR;
            let far = self.slot(self.slot(top, FAR_SLOT), number / FAR);
            (self.slot(far, number % FAR / 4), number % 4)
        };
        chunk + place * NODE as Index
    }

    /// The node's children, the greatest prior first.
    #[inline]
    pub(crate) fn children(&self, shape: Shape) -> impl Iterator<Item = Node<'_>> {
        (0..shape.count()).map(move |number| self.node(self.child(shape, number)))
    }

    fn slot(&self, directory: Index, slot: u32) -> Index {
        let word = self.arena().word(directory + slot / 2).load(Acquire);
        (word >> (32 * (slot % 2))) as Index
    }

    fn set_slot(&self, directory: Index, slot: u32, index: Index) {
        let word = self.arena().word(directory + slot / 2);
        let shift = 32 * (slot % 2);
        let kept = word.load(Relaxed) & !(0xffff_ffff << shift);
        word.store(kept | u64::from(index) << shift, Release);
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
        let (top, count) = (shape.children(), shape.count());
        match count {
            0 => self.allocate(span, PAIR),
            2 => {
                let [directory, chunk] = self.allocate_all(span, [DIRECTORY, PAIR])?;
                self.set_slot(directory, 0, top);
                self.set_slot(directory, 1, chunk);
                Some(directory)
            }
            NEAR => {
                let [above, below, chunk] =
                    self.allocate_all(span, [DIRECTORY, DIRECTORY, QUAD])?;
                self.set_slot(below, 0, chunk);
                self.set_slot(above, 0, below);
                self.set_slot(top, FAR_SLOT, above);
                Some(top)
            }
            4..NEAR if count % 4 == 0 => {
                self.set_slot(top, count / 4 + 1, self.allocate(span, QUAD)?);
                Some(top)
            }
            _ if count > NEAR && (count - NEAR).is_multiple_of(4) => {
                let (far, number) = ((count - NEAR) / FAR, (count - NEAR) % FAR);
                let above = self.slot(top, FAR_SLOT);
                if number == 0 {
                    let [below, chunk] = self.allocate_all(span, [DIRECTORY, QUAD])?;
                    self.set_slot(below, 0, chunk);
                    self.set_slot(above, far, below);
                } else {
                    let chunk = self.allocate(span, QUAD)?;
                    self.set_slot(self.slot(above, far), number / 4, chunk);
                }
                Some(top)
            }
            _ => Some(top),
        }
    }

    /// All of these blocks or none.
    fn allocate_all<const N: usize>(
        &self,
        span: &mut Span,
        lengths: [usize; N],
    ) -> Option<[Index; N]> {
        let mut blocks = [0; N];
        for number in 0..N {
            match self.allocate(span, lengths[number]) {
                Some(block) => blocks[number] = block,
                None => {
                    for (&block, length) in blocks[..number].iter().zip(lengths) {
                        self.give(block, length);
                    }
                    return None;
                }
            }
        }
        Some(blocks)
    }

    /// Calls `give` with every block that holds the children of a node of this
    /// shape, and its length.
    pub(crate) fn blocks_of(&self, shape: Shape, mut give: impl FnMut(Index, usize)) {
        let (top, count) = (shape.children(), shape.count());
        if count == 0 {
            return;
        }
        // The blocks hold the way to one another, so the leading ones go last.
        for first in (4..count).step_by(4).chain((2..count.min(3)).step_by(2)) {
            let length = if first < 4 { PAIR } else { QUAD };
            give(self.child(shape, first), length);
        }
        give(self.child(shape, 0), PAIR);
        if count > NEAR {
            let above = self.slot(top, FAR_SLOT);
            for far in 0..=(count - 1 - NEAR) / FAR {
                give(self.slot(above, far), DIRECTORY);
            }
            give(above, DIRECTORY);
        }
        if count > DIRECT {
            give(top, DIRECTORY);
        }
    }
}

/// The moves of a node that are no children yet.
pub(crate) struct Unvisited<'a> {
    tree: &'a Tree,
    node: Node<'a>,
    shape: Shape,
    last: Rank,
    exhausted: bool,
    ranks: &'a mut Vec<Rank>,
}

impl<'a> Unvisited<'a> {
    /// Those after the move of rank `last`; `ranks` becomes a list of the ones
    /// asked for.
    pub(crate) fn new(
        tree: &'a Tree,
        node: Node<'a>,
        shape: Shape,
        last: Rank,
        ranks: &'a mut Vec<Rank>,
    ) -> Unvisited<'a> {
        ranks.clear();
        Unvisited {
            tree,
            node,
            shape,
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
        let next = self.tree.next_rank(self.node, self.shape, self.last);
        let Some(rank) = next else {
            self.exhausted = true;
            return None;
        };
        self.last = rank;
        self.ranks.push(rank);
        Some(table()[usize::from(rank.code())])
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{
        ROOT,
        testing::{expanded, grow},
    };
    use super::*;

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
    fn all_memory_of_the_children_comes_back() {
        for count in [0, 1, 2, 3, 4, 5, 8, 9, 24, 25, 56, 57, 100, 218] {
            let tree = Tree::new(1);
            let mut span = Span::default();
            expanded(&tree, &mut span, ROOT, 218);
            for _ in 0..count {
                grow(&tree, &mut span, ROOT).unwrap();
            }
            let shape = tree.root().shape();
            let mut blocks = Vec::new();
            tree.blocks_of(shape, |index, length| blocks.push((index, length)));
            blocks.sort_unstable();
            assert!(
                blocks
                    .windows(2)
                    .all(|pair| pair[0].0 + pair[0].1 as u32 == pair[1].0)
            );
            let words: usize = blocks.iter().map(|block| block.1).sum();
            assert!(
                words >= count * NODE && words <= 2 * NODE * count + QUAD,
                "{count} {words}"
            );
        }
    }
}
