//! Where visits end: what the way down hands to the way back.

use super::arena::Index;

/// Where visits ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// At a leaf to be evaluated, in this place of the batch.
    Leaf { slot: usize },
    /// At a position whose value is known for good. `news`: by this very visit.
    Known { news: bool },
    /// At a position that the moves before make a draw: the edge says so, and
    /// the path's last step has no node.
    Drawn,
    /// At a position of which more is known than the visits to it by this way
    /// say, or one where the search cannot go on: what it is worth stands.
    Standing,
    /// At a leaf that is being evaluated already: for nothing.
    Collision,
}

impl Arrival {
    /// Whether the visits wait for the batch.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Arrival::Leaf { .. } | Arrival::Collision)
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
    /// The path's place in [`Picks::paths`].
    pub(crate) start: usize,
    pub(crate) length: usize,
    pub(crate) visits: u32,
    pub(crate) arrival: Arrival,
}

/// What descents brought, in the order of the tree.
#[derive(Default)]
pub(crate) struct Picks {
    pub(crate) list: Vec<Pick>,
    pub(crate) paths: Vec<Step>,
}

impl Picks {
    pub(crate) fn path(&self, pick: &Pick) -> &[Step] {
        &self.paths[pick.start..pick.start + pick.length]
    }

    /// The node that the pick ended at.
    pub(crate) fn leaf(&self, pick: &Pick) -> Index {
        self.paths[pick.start + pick.length - 1].node
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.paths.clear();
    }
}
