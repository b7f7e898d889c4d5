//! The leaves of descents, which selection passes to backup.

use crate::search::tree::arena::Index;

/// The kind of leaf at which a descent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafKind {
    /// The leaf has not been evaluated yet; `slot` is its index in the batch.
    Unevaluated { slot: usize },
    /// The leaf's value is proven; `newly_proven` if this visit proved it.
    Terminal { newly_proven: bool },
    /// A draw caused by the preceding moves. The draw is counted on the edge, and the path's last
    /// step has no node.
    HistoryDraw,
    /// Other paths have visited the node more often than this edge has, or the depth limit is
    /// reached, so the visit backs up the node's current value.
    Revisit,
    /// The leaf is already being evaluated for another visit, so this visit is undone.
    Collision,
}

impl LeafKind {
    /// Returns whether the visits wait for the batch.
    pub(crate) fn awaits_batch(self) -> bool {
        matches!(self, LeafKind::Unevaluated { .. } | LeafKind::Collision)
    }
}

/// One step of a path: an edge and the node it leads to. The root's edge is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) edge: Index,
    pub(crate) node: Index,
}

/// Visits that took the same path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    /// The path's first index in [`Picks::paths`].
    pub(crate) start: usize,
    pub(crate) length: usize,
    pub(crate) visits: u32,
    pub(crate) leaf: LeafKind,
}

/// The picks of a batch, in tree order.
#[derive(Default)]
pub(crate) struct Picks {
    pub(crate) list: Vec<Pick>,
    pub(crate) paths: Vec<Step>,
}

impl Picks {
    pub(crate) fn path(&self, pick: &Pick) -> &[Step] {
        &self.paths[pick.start..pick.start + pick.length]
    }

    /// Returns the node at which the pick ended.
    pub(crate) fn leaf_node(&self, pick: &Pick) -> Index {
        self.paths[pick.start + pick.length - 1].node
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.paths.clear();
    }
}
