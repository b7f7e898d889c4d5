//! The edges of a node.
//!
//! Edges are stored in chunks of two and four, so that they never move, little space is wasted, and
//! other nodes can reuse freed chunks. The node's block points to the first two edges. The third
//! edge adds a directory with eight entries: a chunk of two, five chunks of four, and a
//! second-level directory (a directory of directories) for the 25th edge and later ones.

use super::arena::{Index, Span};
use super::block::{self, Block};
use super::edge::{EDGE, Edge};
use super::header::NodeHeader;
use super::node::Node;
use super::prior::Rank;
use super::{Full, Tree};
use crate::search::sync::spin_loop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Number of edges that need no directory.
const DIRECT: u32 = 2;
/// Number of edges that the first directory covers directly.
const NEAR: u32 = 24;
/// Index in the first directory of the entry for the directory of directories.
const FAR_SLOT: u32 = 7;
/// Number of edges that each second-level directory covers.
const FAR: u32 = 32;
/// Number of words in a directory.
const DIRECTORY: usize = 4;
/// Number of words in a chunk of two edges.
const PAIR: usize = 2 * EDGE;
/// Number of words in a chunk of four edges.
const QUAD: usize = 4 * EDGE;

impl Tree {
    pub(crate) fn block(&self, header: NodeHeader) -> Block<'_> {
        Block::new(&self.arena, header.block())
    }

    #[inline]
    pub(crate) fn edge(&self, index: Index) -> Edge<'_> {
        Edge::new(self.arena.block(index))
    }

    /// Returns the index of a node's edge `number`, in order of rank.
    #[inline]
    fn edge_index(&self, header: NodeHeader, number: u32) -> Index {
        let (pair, directory) = self.block(header).edge_pointers();
        let (chunk, place) = if number < DIRECT {
            (pair, number)
        } else if number < 4 {
            (self.slot(directory, 1), number - DIRECT)
        } else if number < NEAR {
            (self.slot(directory, number / 4 + 1), number % 4)
        } else {
            let number = number - NEAR;
            let far = self.slot(self.slot(directory, FAR_SLOT), number / FAR);
            (self.slot(far, number % FAR / 4), number % 4)
        };
        chunk + place * EDGE as Index
    }

    /// Returns the node's edges, highest prior first.
    #[inline]
    pub(crate) fn edge_indices(&self, header: NodeHeader) -> impl Iterator<Item = Index> {
        let mut index = 0;
        (0..header.count()).map(move |number| {
            let begins_a_chunk = number % 4 == 0 || number == DIRECT;
            index = match begins_a_chunk {
                true => self.edge_index(header, number),
                false => index + EDGE as Index,
            };
            index
        })
    }

    /// Returns the node's edges, highest prior first.
    #[inline]
    pub(crate) fn edges(&self, header: NodeHeader) -> impl Iterator<Item = Edge<'_>> {
        self.edge_indices(header).map(|index| self.edge(index))
    }

    /// Returns the edge with the lowest prior, if any.
    #[cfg(test)]
    pub(crate) fn last_edge(&self, header: NodeHeader) -> Option<Edge<'_>> {
        let last = header.count().checked_sub(1)?;
        Some(self.edge(self.edge_index(header, last)))
    }

    fn slot(&self, directory: Index, slot: u32) -> Index {
        let word = self.arena.word(directory + slot / 2).load(Acquire);
        (word >> (32 * (slot % 2))) as Index
    }

    fn set_slot(&self, directory: Index, slot: u32, index: Index) {
        let word = self.arena.word(directory + slot / 2);
        let shift = 32 * (slot % 2);
        let kept = word.load(Relaxed) & !(0xffff_ffff << shift);
        word.store(kept | u64::from(index) << shift, Release);
    }

    /// Adds edge `number`, for the node's move with this rank in its policy, unless another thread
    /// has already done so. `seen` is the header from which the move was chosen.
    ///
    /// # Errors
    /// [`Full`] if there is no memory, or if the priors have been corrected since.
    pub(crate) fn add_edge(
        &self,
        span: &mut Span,
        (node, seen): (Node<'_>, NodeHeader),
        number: u32,
        mv: u16,
        rank: Rank,
    ) -> Result<Index, Full> {
        let header = loop {
            let header = node.header();
            if header.is_corrected() != seen.is_corrected() {
                return Err(Full);
            }
            if header.count() > number {
                return Ok(self.edge_index(header, number));
            }
            let free = |header: NodeHeader| {
                let is_free = !header.locked() && header.is_corrected() == seen.is_corrected();
                is_free.then_some(header.lock())
            };
            if let Some(before) = node.update(free) {
                if before.count() == number {
                    break before;
                }
                node.update(|header| Some(header.unlock()));
            }
            spin_loop();
        };
        let room = self.make_room(span, header);
        if room.is_some() {
            let edge = self.edge(self.edge_index(header, number));
            edge.clear(mv, rank);
        }
        let count = number + u32::from(room.is_some());
        node.update(|header| Some(header.with_count(count).unlock()));
        match room {
            Some(()) => Ok(self.edge_index(header, number)),
            None => Err(Full),
        }
    }

    /// Allocates memory for one more edge. The caller must have locked the node.
    fn make_room(&self, span: &mut Span, header: NodeHeader) -> Option<()> {
        let block = self.block(header);
        let (pair, directory) = block.edge_pointers();
        match header.count() {
            0 => block.set_edge_pointers(self.allocate(span, PAIR)?, 0),
            DIRECT => {
                let [directory, chunk] = self.allocate_all(span, [DIRECTORY, PAIR])?;
                self.set_slot(directory, 1, chunk);
                block.set_edge_pointers(pair, directory);
            }
            NEAR => {
                let [above, below, chunk] =
                    self.allocate_all(span, [DIRECTORY, DIRECTORY, QUAD])?;
                self.set_slot(below, 0, chunk);
                self.set_slot(above, 0, below);
                self.set_slot(directory, FAR_SLOT, above);
            }
            count @ 4..NEAR if count % 4 == 0 => {
                self.set_slot(directory, count / 4 + 1, self.allocate(span, QUAD)?);
            }
            count if count > NEAR && (count - NEAR).is_multiple_of(4) => {
                let (far, number) = ((count - NEAR) / FAR, (count - NEAR) % FAR);
                let above = self.slot(directory, FAR_SLOT);
                if number == 0 {
                    let [below, chunk] = self.allocate_all(span, [DIRECTORY, QUAD])?;
                    self.set_slot(below, 0, chunk);
                    self.set_slot(above, far, below);
                } else {
                    let chunk = self.allocate(span, QUAD)?;
                    self.set_slot(self.slot(above, far), number / 4, chunk);
                }
            }
            _ => {}
        }
        Some(())
    }

    /// Allocates either all of these blocks or none.
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

    /// Calls `give` with the index and length of the node's block and of every chunk and directory
    /// of its edges.
    pub(crate) fn contents(&self, header: NodeHeader, mut give: impl FnMut(Index, usize)) {
        let count = header.count();
        if header.moves() == 0 {
            return;
        }
        let (pair, directory) = self.block(header).edge_pointers();
        // `give` overwrites the blocks, so those that contain pointers to others go last.
        for first in (4..count).step_by(4) {
            give(self.edge_index(header, first), QUAD);
        }
        if count > NEAR {
            let above = self.slot(directory, FAR_SLOT);
            for far in 0..=(count - 1 - NEAR) / FAR {
                give(self.slot(above, far), DIRECTORY);
            }
            give(above, DIRECTORY);
        }
        if count > DIRECT {
            give(self.slot(directory, 1), PAIR);
            give(directory, DIRECTORY);
        }
        if count > 0 {
            give(pair, PAIR);
        }
        give(header.block(), block::words(header.moves().into()));
    }

    /// Returns the number of words in the blocks that [`Tree::contents`] lists.
    pub(crate) fn content_words(&self, header: NodeHeader) -> usize {
        if header.moves() == 0 {
            return 0;
        }
        let count = header.count();
        let quads = count.saturating_sub(4).div_ceil(4) as usize;
        let far = count.saturating_sub(NEAR).div_ceil(FAR) as usize;
        let directories = usize::from(count > DIRECT) + usize::from(count > NEAR) + far;
        let pairs = usize::from(count > 0) + usize::from(count > DIRECT);
        quads * QUAD + directories * DIRECTORY + pairs * PAIR + block::words(header.moves().into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expanded, grow};
    use super::*;

    #[test]
    fn edges_stay_where_they_are_while_more_come() {
        let tree = Tree::new(1);
        let mut span = Span::default();
        expanded(&tree, &mut span, tree.root(), 218);
        let indices: Vec<_> = (0..218)
            .map(|_| grow(&tree, &mut span, tree.root()).unwrap())
            .collect();
        let header = tree.root().header();
        assert_eq!(header.count(), 218);
        assert!(tree.edge_indices(header).eq(indices));
        let ranks: Vec<_> = tree.edges(header).map(Edge::rank).collect();
        assert!(ranks.windows(2).all(|pair| pair[0] > pair[1]));
    }

    #[test]
    fn all_memory_of_the_edges_comes_back() {
        for count in [0, 1, 2, 3, 4, 5, 8, 9, 24, 25, 28, 29, 56, 57, 100, 218] {
            let tree = Tree::new(1);
            let mut span = Span::default();
            expanded(&tree, &mut span, tree.root(), 218);
            for _ in 0..count {
                grow(&tree, &mut span, tree.root()).unwrap();
            }
            let header = tree.root().header();
            let mut blocks = Vec::new();
            tree.contents(header, |index, length| blocks.push((index, length)));
            blocks.sort_unstable();
            assert!(
                blocks
                    .windows(2)
                    .all(|pair| pair[0].0 + pair[0].1 as u32 == pair[1].0)
            );
            let words: usize = blocks.iter().map(|block| block.1).sum();
            assert_eq!(words, tree.content_words(header), "{count}");
            assert!(
                words <= block::words(218) + 2 * EDGE * count + 2 * QUAD,
                "{count} {words}"
            );
        }
    }
}
