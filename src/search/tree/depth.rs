//! The depth of a tree that an earlier search has grown.

use super::Tree;
use super::arena::Index;
use std::collections::HashMap;

/// Only nodes with at least 1/`LEAST_SHARE` of the root's visits are counted. This covers all of a
/// small tree, and limits the time for a large one to a few milliseconds.
const LEAST_SHARE: u32 = 1 << 15;

/// Maximum length in plies of a path that is followed.
const MAX_DEPTH: u32 = 500;

/// The depth of a tree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreeDepth {
    /// Visits of the root.
    pub(crate) visits: u32,
    /// The mean depth of those visits, in plies.
    pub(crate) mean: f64,
    /// Depth of the deepest leaf, in plies.
    pub(crate) deepest: u32,
}

impl TreeDepth {
    /// Returns the depth of a tree that no search is using.
    pub(crate) fn of(tree: &Tree) -> TreeDepth {
        let visits = tree.root().visits();
        let mut survey = Survey {
            tree,
            least: (visits / LEAST_SHARE).max(1),
            known: HashMap::new(),
        };
        let (mean, deepest) = survey.below(tree.root_index(), MAX_DEPTH);
        TreeDepth {
            visits,
            mean,
            deepest,
        }
    }
}

struct Survey<'a> {
    tree: &'a Tree,
    /// Edges with fewer visits than this are not followed.
    least: u32,
    /// The mean and greatest depth below each node. Several paths may lead to one node, and paths
    /// may form cycles.
    known: HashMap<Index, (f64, u32)>,
}

impl Survey<'_> {
    /// Returns the mean and greatest depth below a node, within a number of plies.
    fn below(&mut self, index: Index, plies: u32) -> (f64, u32) {
        if let Some(&known) = self.known.get(&index) {
            return known;
        }
        if plies == 0 {
            return (0.0, 0);
        }
        self.known.insert(index, (0.0, 0));
        let tree = self.tree;
        // The visit that evaluated the position itself ended there.
        let (mut visits, mut depth, mut deepest) = (1.0, 0.0, 0);
        for edge in tree.edges(tree.node(index).header()) {
            let of_edge = edge.visits();
            if of_edge == 0 {
                continue;
            }
            let (mean, most) = match edge.node() {
                node if node != 0 && of_edge >= self.least => self.below(node, plies - 1),
                _ => (0.0, 0),
            };
            visits += f64::from(of_edge);
            depth += f64::from(of_edge) * (1.0 + mean);
            deepest = deepest.max(1 + most);
        }
        let found = (depth / visits, deepest);
        self.known.insert(index, found);
        found
    }
}
