//! Where visits end: what the way down hands to the way back.

use super::arena::Index;
use super::node::Statistics;
use crate::nn::Value;

/// Where visits ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arrival {
    /// At a leaf to be evaluated, in this place of the batch. `again`: all its
    /// earlier visits were wrong and take the new value too.
    Leaf { slot: usize, again: bool },
    /// At a position whose value is known for good. `news`: by this very visit.
    Known { news: bool },
    /// At a position whose value is taken to be this.
    Valued(Statistics),
    /// At a leaf that is being evaluated already: for nothing.
    Collision,
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
    pub(crate) paths: Vec<Index>,
}

impl Picks {
    pub(crate) fn path(&self, pick: &Pick) -> &[Index] {
        &self.paths[pick.start..pick.start + pick.length]
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.paths.clear();
    }
}

/// A draw, as visits to it are valued.
pub(crate) const DRAWN: Statistics = Statistics {
    visits: 0,
    q: 0.0,
    d: 1.0,
    m: 0.0,
};

/// A leaf's value as its node keeps it: for the side that moved there.
pub(crate) fn mirrored(value: Value) -> Statistics {
    Statistics {
        visits: 0,
        q: f64::from(-value.q),
        d: f64::from(value.d),
        m: f64::from(value.moves_left),
    }
}
