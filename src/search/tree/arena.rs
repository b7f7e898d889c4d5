//! The tree's memory: one slab of 64-bit words, addressed by `u32`.
//!
//! The whole tree is stored in the slab, whose size bounds the tree. The system commits its pages
//! as they are first touched. Each thread cuts blocks from its own span. Freed blocks are kept in
//! lists by length and are reused once no fresh memory is left.

use crate::search::sync::{AtomicU64, AtomicUsize, PAGE, zeroed_words};
use std::sync::atomic::Ordering::Relaxed;

/// Position of a word in the [`Arena`]. Nothing is stored at 0, which means "none".
pub(crate) type Index = u32;

/// Length of the longest block in words, which is the most that a node owns in one piece.
pub(crate) const MAX_BLOCK: usize = 33;

/// The slab.
pub(crate) struct Arena {
    words: Box<[AtomicU64]>,
    next: AtomicUsize,
}

/// A span of fresh memory that belongs to one thread.
#[derive(Default)]
pub(crate) struct Span {
    next: usize,
    end: usize,
}

impl Span {
    /// Returns the start of the remaining span.
    pub(crate) fn start(&self) -> Index {
        self.next as Index
    }

    /// Returns the remaining part of the span, if any.
    pub(crate) fn rest(self) -> Option<(Index, usize)> {
        let length = self.end - self.next;
        (length > 0).then_some((self.next as Index, length))
    }
}

impl Arena {
    /// Returns a slab of `mebibytes`, or a smaller one if the 32-bit indices or the process's
    /// address space do not suffice.
    pub(crate) fn new(mebibytes: usize) -> Arena {
        let length = mebibytes.max(1).saturating_mul(1 << 17);
        Arena {
            words: zeroed_words(length.min(u32::MAX as usize)),
            next: AtomicUsize::new(0),
        }
    }

    /// Returns the capacity in words.
    pub(crate) fn capacity(&self) -> usize {
        self.words.len()
    }

    /// Returns the number of words allocated since the last [`Arena::reset`].
    pub(crate) fn taken(&self) -> usize {
        self.next.load(Relaxed).min(self.capacity())
    }

    /// Frees everything after the first `reserved` words.
    pub(crate) fn reset(&mut self, reserved: usize) {
        self.next = AtomicUsize::new(reserved);
    }

    pub(crate) fn word(&self, index: Index) -> &AtomicU64 {
        &self.words[index as usize]
    }

    pub(crate) fn block<const N: usize>(&self, index: Index) -> &[AtomicU64; N] {
        let start = index as usize;
        self.words[start..start + N]
            .first_chunk()
            .expect("the slice has this length")
    }

    pub(crate) fn slice(&self, index: Index, length: usize) -> &[AtomicU64] {
        &self.words[index as usize..index as usize + length]
    }

    /// Returns a block of fresh memory, or `None` if it has run out.
    pub(crate) fn cut(&self, span: &mut Span, length: usize) -> Option<Index> {
        if let Some(index) = self.cut_from(span, length) {
            return Some(index);
        }
        *span = self.cut_page()?;
        self.cut_from(span, length)
    }

    /// Returns a block cut from what remains of the span.
    pub(crate) fn cut_from(&self, span: &mut Span, length: usize) -> Option<Index> {
        (span.end - span.next >= length).then(|| {
            let start = span.next;
            span.next += length;
            start as Index
        })
    }

    /// Returns a page of fresh memory, whose first word is at a multiple of a node's length.
    pub(crate) fn cut_page(&self) -> Option<Span> {
        let next = self.next.fetch_add(PAGE, Relaxed);
        let end = next + PAGE;
        // The counter stays past the end, which marks the fresh memory as used up.
        (end <= self.capacity()).then_some(Span { next, end })
    }
}

/// Freed blocks, in intrusive lists by length.
pub(crate) struct FreeLists {
    /// The first block of each length, starting at 1.
    heads: [Index; MAX_BLOCK],
    words: usize,
}

impl Default for FreeLists {
    fn default() -> FreeLists {
        FreeLists {
            heads: [0; MAX_BLOCK],
            words: 0,
        }
    }
}

impl FreeLists {
    /// Returns the number of words in the lists.
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// Frees a block, cutting a long one into pieces.
    pub(crate) fn give(&mut self, arena: &Arena, mut index: Index, mut length: usize) {
        self.words += length;
        while length > 0 {
            let piece = length.min(MAX_BLOCK);
            let head = &mut self.heads[piece - 1];
            arena.word(index).store((*head).into(), Relaxed);
            *head = index;
            index += piece as Index;
            length -= piece;
        }
    }

    /// Merges adjacent blocks.
    pub(crate) fn merge(&mut self, arena: &Arena) {
        let mut blocks = Vec::new();
        for (head, length) in self.heads.into_iter().zip(1..) {
            let mut index = head;
            while index != 0 {
                blocks.push((index, length));
                index = arena.word(index).load(Relaxed) as Index;
            }
        }
        blocks.sort_unstable();
        *self = FreeLists::default();
        let mut merged: Option<(Index, usize)> = None;
        for (index, length) in blocks {
            merged = match merged {
                Some((first, so_far)) if first + so_far as Index == index => {
                    Some((first, so_far + length))
                }
                before => {
                    if let Some((first, length)) = before {
                        self.give(arena, first, length);
                    }
                    Some((index, length))
                }
            };
        }
        if let Some((first, length)) = merged {
            self.give(arena, first, length);
        }
    }

    /// Takes a block of this length, or cuts one off the shortest longer block.
    pub(crate) fn take(&mut self, arena: &Arena, length: usize) -> Option<Index> {
        let found = (length..=MAX_BLOCK).find(|&length| self.heads[length - 1] != 0)?;
        let index = self.heads[found - 1];
        self.heads[found - 1] = arena.word(index).load(Relaxed) as Index;
        self.words -= found;
        self.give(arena, index + length as Index, found - length);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_whole_or_in_parts() {
        let mut arena = Arena::new(1);
        arena.reset(4);
        let mut span = Span::default();
        let mut blocks = Vec::new();
        while let Some(index) = arena.cut(&mut span, 30) {
            blocks.push(index);
        }
        assert!(blocks.len() * 31 > arena.capacity() - 2 * PAGE);
        let mut free = FreeLists::default();
        assert_eq!(free.take(&arena, 1), None);
        free.give(&arena, blocks[0], 300);
        let mut taken = Vec::new();
        while let Some(index) = free.take(&arena, 7) {
            taken.push(index);
        }
        taken.sort_unstable();
        taken.dedup();
        assert!(taken.len() >= 36, "{}", taken.len());
        for pair in taken.windows(2) {
            assert!(pair[0] + 7 <= pair[1]);
        }
        assert!(taken[0] >= blocks[0] && taken[taken.len() - 1] + 7 <= blocks[0] + 300);
        assert_eq!(free.words(), 300 - 7 * taken.len());
        // Neighbours merge into long blocks again, in whichever order they were freed.
        taken.reverse();
        for &index in &taken {
            free.give(&arena, index, 7);
        }
        free.merge(&arena);
        assert_eq!(free.words(), 300);
        for _ in 0..300 / MAX_BLOCK {
            assert!(free.take(&arena, MAX_BLOCK).is_some());
        }
    }
}
