//! Memory that nobody needs any more, or not as much as others do.

use super::arena::{FreeLists, Index};
use super::node::Node;
use super::prior;
use super::shape::Shape;
use super::tree::Tree;
use std::sync::atomic::Ordering::Relaxed;

/// A subtree with more visits than this is not evicted whole.
const EVICTED_VISITS: u32 = 256;
/// Evict when less than this share of the memory is left, …
const RESERVE_SHARE: usize = 64;
/// … or less than so many words: a longer pause would be felt.
const MAX_RESERVE: usize = 1 << 17;

/// What a node owns beyond itself.
#[derive(Clone, Copy)]
pub(crate) struct Contents {
    pub(crate) shape: Shape,
    pub(crate) priors: Index,
}

/// Memory to be used again.
#[derive(Default)]
pub(crate) struct Reclaim {
    pub(crate) lists: FreeLists,
    /// Owners of subtrees nobody can reach any more. They are taken apart when
    /// their memory is needed, so that moving the root costs nothing.
    pub(crate) garbage: Vec<Contents>,
}

impl Tree {
    /// Takes one unreachable node apart; false if there is none.
    pub(crate) fn reclaim_one(&self, reclaim: &mut Reclaim) -> bool {
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
        lists.give(self.arena(), priors, prior::words(shape.moves().into()));
        self.blocks_of(shape, |index, length| {
            lists.give(self.arena(), index, length)
        });
        true
    }

    /// Whether eviction is due.
    pub(crate) fn is_low(&self) -> bool {
        if self.starved().load(Relaxed) {
            return true;
        }
        let capacity = self.arena().capacity();
        let reserve = (capacity / RESERVE_SHARE).min(MAX_RESERVE);
        if self.arena().taken() + reserve < capacity {
            return false;
        }
        let reclaim = self.reclaim().lock();
        reclaim.garbage.is_empty() && reclaim.lists.words() < reserve / 2
    }

    /// Forgets least-visited subtrees until there is some memory more. Their
    /// roots keep their statistics and are evaluated again when a visit comes
    /// by. No thread may be in the tree; nodes with visits in flight stay.
    pub(crate) fn evict(&self) {
        let reserve = (self.arena().capacity() / RESERVE_SHARE).min(MAX_RESERVE);
        let mut reclaim = self.reclaim().lock();
        let goal = reclaim.lists.words() + reserve;
        while reclaim.lists.words() < goal {
            if self.reclaim_one(&mut reclaim) {
                continue;
            }
            let Some(victim) = self.victim() else { break };
            let (shape, priors) = (victim.shape(), victim.priors());
            victim.strip();
            reclaim.garbage.push(Contents { shape, priors });
        }
        reclaim.lists.merge(self.arena());
        self.starved().store(false, Relaxed);
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
}
