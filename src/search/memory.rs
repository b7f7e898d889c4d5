//! Per-node state of a search in imagination: the imagined boards, as many as fit in memory, and
//! the moves considered at each node.

use super::tree::Tree;
use super::tree::arena::Index;
use crate::backend::{ImaginedBoard, Value};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Number of locks: several, so that threads rarely wait for each other.
const SHARDS: usize = 16;

/// Approximate number of bytes stored per node in addition to its board.
const BESIDES: usize = 256;

/// When the memory is full, 1/`FORGOTTEN_SHARE` of the boards are evicted.
const FORGOTTEN_SHARE: usize = 4;

/// The stored state of a node.
#[derive(Clone, Debug)]
pub(crate) struct Thought {
    /// The node's board; `None` once evicted.
    pub(crate) board: Option<Arc<ImaginedBoard>>,
    /// The moves considered at the node, in the form that its edges store and in numerical order.
    pub(crate) moves: Arc<[u16]>,
    /// The node's value if the game has ended there.
    pub(crate) end: Option<Value>,
}

/// The stored state of nodes, shared by the threads of one search.
pub(crate) struct Memory {
    shards: Vec<Mutex<HashMap<Index, Thought>>>,
    /// The number of boards in memory, which is limited to `most`.
    boards: AtomicUsize,
    most: usize,
    /// Locked during eviction.
    forgetting: Mutex<()>,
}

impl Memory {
    /// Allocates `mebibytes` for boards of `bytes` each; at least a few boards always fit.
    pub(crate) fn new(mebibytes: usize, bytes: usize) -> Memory {
        let most = mebibytes.saturating_mul(1 << 20) / (bytes + BESIDES);
        Memory {
            shards: std::iter::repeat_with(Mutex::default)
                .take(SHARDS)
                .collect(),
            boards: AtomicUsize::new(0),
            most: most.max(16),
            forgetting: Mutex::default(),
        }
    }

    /// Returns the share of the memory in use, in 0…1.
    pub(crate) fn fullness(&self) -> f32 {
        self.boards.load(Relaxed) as f32 / self.most as f32
    }

    /// Clears everything.
    pub(crate) fn clear(&mut self) {
        for shard in &mut self.shards {
            *shard.get_mut() = HashMap::new();
        }
        self.boards = AtomicUsize::new(0);
    }

    fn shard(&self, at: Index) -> &Mutex<HashMap<Index, Thought>> {
        // Nodes are four words long.
        &self.shards[at as usize / 4 % SHARDS]
    }

    /// Returns the stored state of a node.
    pub(crate) fn thought(&self, at: Index) -> Option<Thought> {
        self.shard(at).lock().get(&at).cloned()
    }

    /// Stores the state of a node of this tree. When the memory is full, evicts the boards with the
    /// fewest visits, first among nodes without children, then among the others.
    pub(crate) fn keep(&self, tree: &Tree, at: Index, thought: Thought) {
        let is_new = thought.board.is_some();
        let before = self.shard(at).lock().insert(at, thought);
        let was_there = before.is_some_and(|thought| thought.board.is_some());
        let held = match (is_new, was_there) {
            (true, false) => self.boards.fetch_add(1, Relaxed) + 1,
            (false, true) => self.boards.fetch_sub(1, Relaxed) - 1,
            _ => self.boards.load(Relaxed),
        };
        if held > self.most
            && let Some(_alone) = self.forgetting.try_lock()
        {
            self.forget(tree);
        }
    }

    fn forget(&self, tree: &Tree) {
        let mut held = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let with_board = shard.iter().filter(|(_, thought)| thought.board.is_some());
            held.extend(with_board.map(|(&at, _)| at));
        }
        // The root is always needed.
        held.retain(|&at| at != tree.root_index());
        held.sort_by_cached_key(|&at| {
            let node = tree.node(at);
            (node.header().count() > 0, node.visits())
        });
        let surplus = self.boards.load(Relaxed).saturating_sub(self.most);
        for &at in &held[..held.len().min(surplus + self.most / FORGOTTEN_SHARE)] {
            let mut shard = self.shard(at).lock();
            let board = shard.get_mut(&at).and_then(|thought| thought.board.take());
            if board.is_some() {
                self.boards.fetch_sub(1, Relaxed);
            }
        }
    }
}
