//! State per node of a search in imagination: boards, as many as its memory holds, and the moves
//! considered there.

use super::tree::Tree;
use super::tree::arena::Index;
use crate::backend::{ImaginedBoard, Value};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Locks, so that a few threads seldom wait for each other.
const SHARDS: usize = 16;

/// Bytes of what is kept of a node besides its board, about.
const BESIDES: usize = 256;

/// Share of the boards that goes where there is no more room.
const FORGOTTEN_SHARE: usize = 4;

/// The stored part of a node.
#[derive(Clone, Debug)]
pub(crate) struct Thought {
    /// Its board; none once it was forgotten.
    pub(crate) board: Option<Arc<ImaginedBoard>>,
    /// The moves considered there, as its edges keep them, in the order of their numbers.
    pub(crate) moves: Arc<[u16]>,
    /// Its value where the game has ended.
    pub(crate) end: Option<Value>,
}

/// Thoughts by node, for the threads of one search.
pub(crate) struct Memory {
    shards: Vec<Mutex<HashMap<Index, Thought>>>,
    /// Boards held, and how many may be.
    boards: AtomicUsize,
    most: usize,
    /// Held by whoever forgets.
    forgetting: Mutex<()>,
}

impl Memory {
    /// Allocates `mebibytes` for boards of a size in bytes, but room for a few at least.
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

    /// Share of the room that is taken, in 0…1.
    pub(crate) fn fullness(&self) -> f32 {
        self.boards.load(Relaxed) as f32 / self.most as f32
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        for shard in &mut self.shards {
            *shard.get_mut() = HashMap::new();
        }
        self.boards = AtomicUsize::new(0);
    }

    fn shard(&self, at: Index) -> &Mutex<HashMap<Index, Thought>> {
        // Nodes lie at every fourth word.
        &self.shards[at as usize / 4 % SHARDS]
    }

    /// The stored part of a node.
    pub(crate) fn thought(&self, at: Index) -> Option<Thought> {
        self.shard(at).lock().get(&at).cloned()
    }

    /// Keeps a thought of a node of this tree. Where there is no more room, boards of
    /// nodes that lead on to none go, those of few visits first; then others.
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
        // The root is where everything begins.
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
