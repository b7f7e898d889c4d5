//! Per-node state of a search in imagination: as many boards as its memory holds, and the moves
//! considered there.

use super::tree::Tree;
use super::tree::arena::Index;
use crate::backend::{ImaginedBoard, Value};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Locks; several, so that threads rarely wait for each other.
const SHARDS: usize = 16;

/// Approximate bytes stored per node in addition to its board.
const BESIDES: usize = 256;

/// Divisor of the boards: the share evicted when the memory is full.
const FORGOTTEN_SHARE: usize = 4;

/// The stored part of a node.
#[derive(Clone, Debug)]
pub(crate) struct Thought {
    /// Its board; `None` once evicted.
    pub(crate) board: Option<Arc<ImaginedBoard>>,
    /// The moves considered there, as its edges store them, in numerical order.
    pub(crate) moves: Arc<[u16]>,
    /// Its value where the game has ended.
    pub(crate) end: Option<Value>,
}

/// Thoughts by node, shared by the threads of one search.
pub(crate) struct Memory {
    shards: Vec<Mutex<HashMap<Index, Thought>>>,
    /// Boards held, and their limit.
    boards: AtomicUsize,
    most: usize,
    /// Held during eviction.
    forgetting: Mutex<()>,
}

impl Memory {
    /// Allocates `mebibytes` for boards of `bytes` each, with room for at least a few.
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

    /// Returns the share of the room in use, in 0…1.
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
        // Nodes are four words apart.
        &self.shards[at as usize / 4 % SHARDS]
    }

    /// Returns the stored part of a node.
    pub(crate) fn thought(&self, at: Index) -> Option<Thought> {
        self.shard(at).lock().get(&at).cloned()
    }

    /// Stores the thought of a node of this tree. When full, boards of nodes without children are
    /// evicted, fewest visits first; then others.
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
