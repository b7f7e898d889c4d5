//! A backend that remembers what another one said.

use super::{Backend, BackendError, Batch, Evaluations, Properties, Value};
use parking_lot::Mutex;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Remembers the evaluations of another backend by position, and asks it only
/// for those it does not know, each once a batch.
///
/// Memory is bounded. The oldest evaluations go first, as in Lc0: a search
/// comes back to positions soon after it met them, or hardly ever.
#[derive(Debug)]
pub struct Cache<B> {
    inner: B,
    shards: Vec<Mutex<Shard>>,
}

/// Parts of a cache, each under a lock of its own; so many that a few dozen
/// threads seldom meet.
const SHARDS: usize = 64;

#[derive(Debug)]
struct Shard {
    known: HashMap<u64, Arc<Remembered>>,
    /// Keys of `known`, the oldest first.
    order: VecDeque<u64>,
    bytes: usize,
    limit: usize,
}

/// An evaluation, its logits in the order of the policy's indices.
#[derive(Debug)]
struct Remembered {
    value: Value,
    logits: Box<[f32]>,
}

/// Where the evaluation of a position comes from.
enum Source {
    Known(Arc<Remembered>),
    /// Its place in the batch that the inner backend evaluates.
    Asked(usize),
}

impl<B: Backend> Cache<B> {
    /// Remembers evaluations of `inner` in at most so many MiB.
    #[must_use]
    pub fn new(inner: B, mebibytes: usize) -> Cache<B> {
        let limit = mebibytes.saturating_mul(1 << 20) / SHARDS;
        let shard = || {
            Mutex::new(Shard {
                known: HashMap::new(),
                order: VecDeque::new(),
                bytes: 0,
                limit,
            })
        };
        Cache {
            inner,
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
        }
    }

    fn shard(&self, key: u64) -> &Mutex<Shard> {
        // The map inside a shard hashes the key anew, so any bits will do here.
        &self.shards[key as usize % SHARDS]
    }

    fn recall(&self, key: u64, moves: usize) -> Option<Arc<Remembered>> {
        let shard = self.shard(key).lock();
        let known = shard.known.get(&key)?;
        // Another number of moves is another position with the same key.
        (known.logits.len() == moves).then(|| Arc::clone(known))
    }
}

impl<B: Backend> Backend for Cache<B> {
    fn properties(&self) -> &Properties {
        self.inner.properties()
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        out.clear();
        let mut asked = Batch::default();
        let mut places: HashMap<(u64, usize), usize> = HashMap::new();
        let sources: Vec<Source> = (0..batch.len())
            .map(|index| {
                let (key, moves) = (batch.keys()[index], batch.moves(index).len());
                if let Some(known) = self.recall(key, moves) {
                    return Source::Known(known);
                }
                let place = *places.entry((key, moves)).or_insert_with(|| {
                    asked.push_from(batch, index);
                    asked.len() - 1
                });
                Source::Asked(place)
            })
            .collect();

        let mut answers = Vec::with_capacity(asked.len());
        if !asked.is_empty() {
            let mut evaluations = Evaluations::default();
            self.inner.evaluate(&asked, &mut evaluations)?;
            for index in 0..asked.len() {
                let order = by_policy_index(asked.moves(index));
                let logits = evaluations.logits(index);
                let answer = Arc::new(Remembered {
                    value: evaluations.value(index),
                    logits: order.iter().map(|&place| logits[place]).collect(),
                });
                let key = asked.keys()[index];
                self.shard(key).lock().remember(key, Arc::clone(&answer));
                answers.push(answer);
            }
        }

        for (index, source) in sources.iter().enumerate() {
            let remembered = match source {
                Source::Known(known) => known,
                Source::Asked(place) => &answers[*place],
            };
            let moves = batch.moves(index);
            let mut logits = vec![0.0; moves.len()];
            for (place, &logit) in by_policy_index(moves).into_iter().zip(&remembered.logits) {
                logits[place] = logit;
            }
            out.push(remembered.value, logits);
        }
        Ok(())
    }

    fn forget(&self) {
        self.inner.forget();
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.known = HashMap::new();
            shard.order = VecDeque::new();
            shard.bytes = 0;
        }
    }
}

impl Shard {
    fn remember(&mut self, key: u64, evaluation: Arc<Remembered>) {
        let bytes = evaluation.bytes();
        match self.known.entry(key) {
            Entry::Occupied(mut known) => {
                self.bytes -= known.insert(evaluation).bytes();
            }
            Entry::Vacant(free) => {
                free.insert(evaluation);
                self.order.push_back(key);
            }
        }
        self.bytes += bytes;
        while self.bytes > self.limit {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            if let Some(forgotten) = self.known.remove(&oldest) {
                self.bytes -= forgotten.bytes();
            }
        }
    }
}

/// Bytes that an evaluation takes beside its logits: itself with its two
/// counts and the allocator's two headers, its key in the queue, and its place
/// in the map. Map and queue double when they are full, so each place may
/// stand empty beside a used one; maps moreover stay an eighth empty.
const OVERHEAD: usize = size_of::<Remembered>()
    + 2 * size_of::<usize>()
    + 2 * 16
    + 2 * size_of::<u64>()
    + 2 * (size_of::<(u64, Arc<Remembered>)>() + 1) * 8 / 7;

impl Remembered {
    fn bytes(&self) -> usize {
        OVERHEAD + size_of_val(&*self.logits)
    }
}

/// The places of moves in a list, sorted by the moves' indices in the policy.
fn by_policy_index(moves: &[u16]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..moves.len()).collect();
    places.sort_unstable_by_key(|&place| moves[place]);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use crate::nn::Random;
    use crate::nn::tests::{Counting, assert_same, positions};
    use proptest::prelude::*;
    use shakmaty::Position;

    #[test]
    fn only_what_is_new_is_asked_for() {
        let cache = Cache::new(Counting::new(Random::new(1)), 16);
        let batch = positions(20, false);
        let mut twice = batch.clone();
        for index in 0..batch.len() {
            twice.push_from(&batch, index);
        }
        for asked in [&twice, &batch, &twice] {
            assert_same(&cache, &Random::new(1), asked);
        }
        assert_eq!(cache.inner.positions(), 20);
    }

    #[test]
    fn another_order_of_the_moves_is_the_same_position() {
        let cache = Cache::new(Counting::new(Random::new(1)), 16);
        let game = Game::default();
        let mut moves = game.position().legal_moves();
        for _ in 0..3 {
            let mut batch = Batch::default();
            batch.push(&game, &moves, None);
            assert_same(&cache, &Random::new(1), &batch);
            moves.rotate_left(7);
        }
        assert_eq!(cache.inner.positions(), 1);
        // Fewer moves are another question.
        let mut batch = Batch::default();
        batch.push(&game, &moves[..3], None);
        assert_same(&cache, &Random::new(1), &batch);
        assert_eq!(cache.inner.positions(), 2);
    }

    fn held<B>(cache: &Cache<B>) -> usize {
        let bytes = |shard: &Mutex<Shard>| shard.lock().bytes;
        cache.shards.iter().map(bytes).sum()
    }

    #[test]
    fn memory_is_bounded() {
        let cache = Cache::new(Counting::new(Random::new(1)), 1);
        let mut game = Game::default();
        for round in 0..100 {
            let mut batch = Batch::default();
            for ply in 0..100 {
                let moves = game.position().legal_moves();
                if moves.is_empty() {
                    game = Game::default();
                    continue;
                }
                batch.push(&game, &moves, None);
                game.play(moves[(round * 31 + ply * 17) % moves.len()]);
            }
            assert_same(&cache, &Random::new(1), &batch);
            assert!(held(&cache) <= 1 << 20);
        }
        let known = |shard: &Mutex<Shard>| shard.lock().known.len();
        let known: usize = cache.shards.iter().map(known).sum();
        // It is full, so something was forgotten.
        assert!(held(&cache) > 15 << 16);
        assert!(known < cache.inner.positions());
    }

    #[test]
    fn without_memory_nothing_is_remembered() {
        let cache = Cache::new(Counting::new(Random::new(1)), 0);
        let batch = positions(5, false);
        for _ in 0..2 {
            assert_same(&cache, &Random::new(1), &batch);
        }
        assert_eq!(cache.inner.positions(), 10);
    }

    proptest! {
        #[test]
        fn it_says_what_the_inner_backend_says(
            batches in proptest::collection::vec(proptest::collection::vec(0..60usize, 0..40), 1..8),
            threads in 1..5usize,
        ) {
            let all = positions(60, true);
            let cache = Cache::new(Random::new(3), 1);
            let batches: Vec<Batch> = batches.iter().map(|indices| {
                let mut batch = Batch::default();
                for &index in indices {
                    batch.push_from(&all, index);
                }
                batch
            }).collect();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for batch in &batches {
                            assert_same(&cache, &Random::new(3), batch);
                        }
                    });
                }
            });
        }
    }
}
