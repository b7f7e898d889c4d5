//! The evaluation cache (NNCache): a backend that wraps another backend.

use super::{Backend, BackendError, Batch, Evaluations, Imagination, Properties, Reply, Value};
use parking_lot::Mutex;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Caches another backend's evaluations by position. That backend receives only the positions that
/// are not in the cache, each once per batch.
///
/// Memory is bounded. As in Lc0, the oldest evaluations are evicted first, because a search
/// revisits a position either soon after its first visit or hardly ever.
#[derive(Debug)]
pub struct Cache<B> {
    inner: B,
    known: Arc<Known>,
}

/// The cached evaluations, keyed by position.
#[derive(Debug)]
struct Known(Vec<Mutex<Shard>>);

/// Number of cache shards, each with its own lock. This is enough for a few dozen threads to
/// contend only rarely.
const SHARDS: usize = 64;

#[derive(Debug)]
struct Shard {
    known: HashMap<u64, Arc<CachedEvaluation>>,
    /// Keys of `known`, oldest first.
    order: VecDeque<u64>,
    bytes: usize,
    limit: usize,
}

/// An evaluation with its logits in policy index order.
#[derive(Debug)]
struct CachedEvaluation {
    value: Value,
    logits: Box<[f32]>,
}

/// The result of looking up a position.
enum Lookup {
    Hit(Arc<CachedEvaluation>),
    /// The position's index in the batch that the inner backend evaluates.
    Miss(usize),
}

/// The result of looking up a batch.
struct Asked {
    lookups: Vec<Lookup>,
    /// Positions that the inner backend must evaluate.
    missed: Batch,
}

impl<B: Backend> Cache<B> {
    /// Wraps `inner` in a cache of at most this many MiB.
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
        let shards = std::iter::repeat_with(shard).take(SHARDS).collect();
        let known = Arc::new(Known(shards));
        Cache { inner, known }
    }
}

impl Cache<Arc<dyn Backend>> {
    /// Returns `inner` with a cache of this size, or without one if the size is 0.
    pub fn over(inner: Arc<dyn Backend>, mebibytes: usize) -> Arc<dyn Backend> {
        match mebibytes {
            0 => inner,
            mebibytes => Arc::new(Cache::new(inner, mebibytes)),
        }
    }
}

impl Known {
    fn shard(&self, key: u64) -> &Mutex<Shard> {
        // Any bits of the key will do, because the shard's map hashes it again.
        &self.0[key as usize % SHARDS]
    }

    fn find(&self, key: u64, moves: usize) -> Option<Arc<CachedEvaluation>> {
        let shard = self.shard(key).lock();
        let known = shard.known.get(&key)?;
        // A different number of moves means another position with the same key.
        (known.logits.len() == moves).then(|| Arc::clone(known))
    }

    /// Looks up each distinct position of a batch once.
    fn look_up(&self, batch: &Batch) -> Asked {
        let mut missed = Batch::default();
        let mut places: HashMap<(u64, usize), usize> = HashMap::new();
        let lookups = (0..batch.len())
            .map(|index| {
                let (key, moves) = (batch.keys()[index], batch.moves(index).len());
                if let Some(known) = self.find(key, moves) {
                    return Lookup::Hit(known);
                }
                let place = *places.entry((key, moves)).or_insert_with(|| {
                    missed.push_from(batch, index);
                    missed.len() - 1
                });
                Lookup::Miss(place)
            })
            .collect();
        Asked { lookups, missed }
    }

    /// Caches the evaluations of the missing positions, then replaces the contents of `out` with
    /// the evaluations of the whole batch.
    fn answer(&self, batch: &Batch, asked: &Asked, answers: &Evaluations, out: &mut Evaluations) {
        let fresh: Vec<_> = (0..asked.missed.len())
            .map(|index| {
                let order = by_policy_index(asked.missed.moves(index));
                let logits = answers.logits(index);
                let answer = Arc::new(CachedEvaluation {
                    value: answers.value(index),
                    logits: order.iter().map(|&place| logits[place]).collect(),
                });
                let key = asked.missed.keys()[index];
                self.shard(key).lock().insert(key, Arc::clone(&answer));
                answer
            })
            .collect();
        out.clear();
        for (index, lookup) in asked.lookups.iter().enumerate() {
            let cached = match lookup {
                Lookup::Hit(known) => known,
                Lookup::Miss(place) => &fresh[*place],
            };
            let moves = batch.moves(index);
            let mut logits = vec![0.0; moves.len()];
            for (place, &logit) in by_policy_index(moves).into_iter().zip(&cached.logits) {
                logits[place] = logit;
            }
            out.push(cached.value, logits);
        }
    }
}

impl<B: Backend> Backend for Cache<B> {
    fn properties(&self) -> &Properties {
        self.inner.properties()
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        // Futures are not cached.
        if batch.steps.is_some() {
            return self.inner.evaluate(batch, out);
        }
        let asked = self.known.look_up(batch);
        let mut answers = Evaluations::default();
        if !asked.missed.is_empty() {
            self.inner.evaluate(&asked.missed, &mut answers)?;
        }
        self.known.answer(batch, &asked, &answers, out);
        Ok(())
    }

    /// Replies immediately if all positions are cached.
    fn ask(&self, batch: Batch, reply: Reply) {
        if batch.steps.is_some() {
            return self.inner.ask(batch, reply);
        }
        let asked = self.known.look_up(&batch);
        let known = Arc::clone(&self.known);
        let missed = asked.missed.clone();
        let reply: Reply = Box::new(move |answer| {
            reply(answer.map(|answers| {
                let mut out = Evaluations::default();
                known.answer(&batch, &asked, &answers, &mut out);
                out
            }));
        });
        match missed.is_empty() {
            true => reply(Ok(Evaluations::default())),
            false => self.inner.ask(missed, reply),
        }
    }

    fn imagination(&self) -> Option<Arc<dyn Imagination>> {
        self.inner.imagination()
    }

    fn forget(&self) {
        self.inner.forget();
        for shard in &self.known.0 {
            let mut shard = shard.lock();
            shard.known = HashMap::new();
            shard.order = VecDeque::new();
            shard.bytes = 0;
        }
    }
}

impl Shard {
    fn insert(&mut self, key: u64, evaluation: Arc<CachedEvaluation>) {
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

/// Memory that an evaluation takes in addition to its logits, in bytes: the struct with its two
/// reference counts, the allocator's two headers, its key in the queue, and its slot in the map.
/// The map and the queue double when full, so there may be one empty slot per used slot. Maps also
/// keep an eighth of their slots empty.
const OVERHEAD: usize = size_of::<CachedEvaluation>()
    + 2 * size_of::<usize>()
    + 2 * 16
    + 2 * size_of::<u64>()
    + 2 * (size_of::<(u64, Arc<CachedEvaluation>)>() + 1) * 8 / 7;

impl CachedEvaluation {
    fn bytes(&self) -> usize {
        OVERHEAD + size_of_val(&*self.logits)
    }
}

/// Returns the positions of the moves in a list, sorted by policy index.
fn by_policy_index(moves: &[u16]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..moves.len()).collect();
    places.sort_unstable_by_key(|&place| moves[place]);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Random;
    use crate::backend::tests::{Counting, assert_same, positions};
    use crate::chess::Game;
    use crate::encode::Encoder;
    use proptest::prelude::*;
    use shakmaty::Position;

    #[test]
    fn only_misses_reach_the_inner_backend() {
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
            batch.push(&game, &moves, &Encoder::Nothing).unwrap();
            assert_same(&cache, &Random::new(1), &batch);
            moves.rotate_left(7);
        }
        assert_eq!(cache.inner.positions(), 1);
        // A different number of moves is a miss.
        let mut batch = Batch::default();
        batch.push(&game, &moves[..3], &Encoder::Nothing).unwrap();
        assert_same(&cache, &Random::new(1), &batch);
        assert_eq!(cache.inner.positions(), 2);
    }

    fn held<B>(cache: &Cache<B>) -> usize {
        let bytes = |shard: &Mutex<Shard>| shard.lock().bytes;
        cache.known.0.iter().map(bytes).sum()
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
                batch.push(&game, &moves, &Encoder::Nothing).unwrap();
                game.play(moves[(round * 31 + ply * 17) % moves.len()]);
            }
            assert_same(&cache, &Random::new(1), &batch);
            assert!(held(&cache) <= 1 << 20);
        }
        let known = |shard: &Mutex<Shard>| shard.lock().known.len();
        let known: usize = cache.known.0.iter().map(known).sum();
        // The cache is full, so some evaluations were evicted.
        assert!(held(&cache) > 15 << 16);
        assert!(known < cache.inner.positions());
    }

    #[test]
    fn cached_positions_get_the_same_answer() {
        let cache = Cache::new(Counting::new(Random::new(1)), 16);
        let batch = positions(20, false);
        for asked in [&positions(5, false), &batch, &batch] {
            let (send, answers) = std::sync::mpsc::channel();
            let reply = Box::new(move |answer| send.send(answer).unwrap());
            cache.ask(asked.clone(), reply);
            let mut expected = Evaluations::default();
            Random::new(1).evaluate(asked, &mut expected).unwrap();
            assert_eq!(answers.recv().unwrap().unwrap(), expected);
        }
        assert_eq!(cache.inner.positions(), 20);
    }

    #[test]
    fn without_memory_nothing_is_cached() {
        let cache = Cache::new(Counting::new(Random::new(1)), 0);
        let batch = positions(5, false);
        for _ in 0..2 {
            assert_same(&cache, &Random::new(1), &batch);
        }
        assert_eq!(cache.inner.positions(), 10);
    }

    proptest! {
        #[test]
        fn it_returns_the_inner_backend_s_evaluations(
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
