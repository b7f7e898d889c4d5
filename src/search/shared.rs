//! State shared by the threads of one search.

use super::clock::lag::Lag;
use super::clock::latency::Latency;
use super::mates::MateSearch;
use super::memory::Memory;
use super::parameters::Parameters;
use super::root::Root;
use super::sync::{AtomicBool, AtomicU64, Mutex, RwLock, sleep};
use super::tree::Tree;
use super::tree::depth::TreeDepth;
use super::tree::header::Outcome;
use super::tree::move_order::visited;
use super::wdl::rescaling::Rescaling;
use crate::backend::{Backend, BackendError, Value};
use crate::chess::Game;
use crate::play::Control;
use crate::tablebase::Verdict;
use shakmaty::{MoveList, Position};
use std::sync::LazyLock;
use std::sync::atomic::{self, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The maximum number of visits of a root.
pub(crate) const MAX_VISITS: u64 = 4_000_000_000;

/// Number of leaves per batch in the smallest trees, in which larger batches would cost strength.
const LEAST_BATCH: usize = 4;

/// The batch size that backends on a CPU recommend.
const USUAL_BATCH: usize = 32;

/// The longest duration of a batch, except in repeatable searches. It is limited because a `stop`
/// waits for the batch.
const LONGEST_BATCH: Duration = Duration::from_millis(500);

/// How long a thread that found no leaf pauses if at most [`CORES`] threads are pausing.
const REST: Duration = Duration::from_micros(50);
/// Number of CPU cores.
static CORES: LazyLock<u32> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32));

/// One search, as shared by its threads.
pub(crate) struct Shared<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) parameters: &'a Parameters,
    pub(crate) backend: &'a dyn Backend,
    pub(crate) latency: &'a Latency,
    pub(crate) lag: &'a Lag,
    /// The mate search at the root, if enabled; one thread at a time runs it.
    pub(crate) mates: Option<&'a Mutex<MateSearch>>,
    /// Per-node state, for a search in imagination.
    pub(crate) memory: Option<&'a Memory>,
    /// Keys of positions that could be claimed as draws.
    pub(crate) draws: Vec<u64>,
    pub(crate) game: &'a Game,
    pub(crate) control: &'a Control,
    /// The moves considered at the root.
    pub(crate) root_moves: MoveList,
    /// The root moves' tablebase result, if known.
    pub(crate) verdict: Option<Verdict>,
    /// The value of the previous search's best move, if that search was in this game.
    pub(crate) expected: Option<f64>,
    pub(crate) root: Root,
    /// Number of root moves to visit so that each can be reported as a line; at least 1.
    pub(crate) lines: usize,
    /// The rescaling of the network's results; `None` leaves them unchanged.
    pub(crate) rescaling: Option<Rescaling>,
    /// The maximum number of leaves that a thread gathers.
    pub(crate) batch: usize,
    /// Whether batch sizes depend on visits alone and not on a clock. A search to a number of
    /// visits or to a depth is then deterministic even on a busy machine.
    pub(crate) repeatable: bool,
    /// Every thread that uses the tree holds a read lock; eviction takes the write lock.
    pub(crate) gate: RwLock<()>,
    /// Whether all threads must end.
    pub(crate) stop: AtomicBool,
    /// Number of threads that found no leaf.
    pub(crate) resting: atomic::AtomicU32,
    pub(crate) failure: Mutex<Option<BackendError>>,
    pub(crate) progress: Progress,
    /// When the search began.
    pub(crate) began: Instant,
    /// The deadline in microseconds after `began`; `u64::MAX` if no deadline is set.
    pub(crate) deadline: atomic::AtomicU64,
    /// While pondering on a clock: the time limit of the move once the clock runs.
    pub(crate) ponder_time: Option<Duration>,
    /// Visits left to make.
    pub(crate) remaining: AtomicU64,
}

impl Shared<'_> {
    /// Returns the number of visits from which a node's priors are corrected by the rules, or the
    /// largest number if they never are. A correction takes about as long as an evaluation on a CPU
    /// core. The faster the backend, the more visits a node must have, so that the share of the
    /// time stays similar.
    pub(crate) fn correction_visits(&self) -> u32 {
        let properties = self.backend.properties();
        let faster = (properties.recommended_batch / USUAL_BATCH).max(1) as u32;
        match self.parameters.correction_visits {
            0 => u32::MAX,
            _ if properties.search_correction().is_none() => u32::MAX,
            visits => visits.saturating_mul(faster),
        }
    }

    /// Returns the minimum number of visits per line when the root has `visits` visits: the square
    /// root of `visits`, limited so that all lines together take at most a quarter of the visits.
    pub(crate) fn visits_of_line(&self, visits: u32) -> u32 {
        let share = visits / (4 * self.lines as u32).max(1);
        visits.isqrt().min(share).max(1)
    }

    /// Returns whether enough root moves to report every line have been visited or proven, or all
    /// moves if there are fewer. Moves proven to lose do not count while others are left.
    pub(crate) fn has_lines(&self) -> bool {
        let header = self.tree.root().header();
        // While lines are missing, each visit goes to a new move, so none is missing after this
        // many visits.
        if self.lines <= 1 || self.progress.visits() >= header.moves().into() {
            return true;
        }
        let lines = visited(self.tree, header).into_iter().filter(|of| {
            of.header.outcome() != Outcome::Win
                && usize::from(of.edge.rank().number()) < self.root_moves.len()
        });
        lines.count() >= self.lines
    }

    /// Grants up to `wanted` of the remaining visits.
    pub(crate) fn grant(&self, wanted: u32) -> u32 {
        let mut granted = 0;
        let _ = self.remaining.fetch_update(Relaxed, Relaxed, |remaining| {
            granted = remaining.min(wanted.into());
            (granted > 0).then_some(remaining - granted)
        });
        granted as u32
    }

    /// Refunds unused visits.
    pub(crate) fn refund(&self, visits: u32) {
        if visits > 0 {
            self.remaining.fetch_add(visits.into(), Relaxed);
        }
    }

    pub(crate) fn set_deadline(&self, deadline: Instant) {
        let after = deadline.saturating_duration_since(self.began);
        self.deadline.store(after.as_micros() as u64, Relaxed);
    }

    /// Returns the deadline, as the time after the search began, if one is set.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        match self.deadline.load(Relaxed) {
            u64::MAX => None,
            deadline => Some(Duration::from_micros(deadline)),
        }
    }

    /// Returns the time since the search began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.control.now().saturating_duration_since(self.began)
    }

    /// Returns the time left until the deadline or, while the clock has not started, the move's
    /// time limit; `None` without a clock.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        match self.deadline() {
            None => self.ponder_time,
            Some(deadline) => Some(deadline.saturating_sub(self.elapsed())),
        }
    }

    /// Returns whether the clock has yet to start.
    fn ponders(&self) -> bool {
        self.ponder_time.is_some() && self.deadline().is_none()
    }

    /// Returns the number of leaves to gather if there is no time pressure. The leaves of a batch
    /// are selected without knowing each other's values, so small trees use small batches. The
    /// batch size is the square root of the tree's visits, up to a maximum. Until the maximum is
    /// reached, this takes only twice as many batches as full ones would.
    pub(crate) fn batch_size(&self) -> usize {
        let visits = f64::from(self.tree.root().visits());
        (visits.sqrt() as usize).max(LEAST_BATCH).min(self.batch)
    }

    /// Returns the number of leaves to gather so that the batch finishes before the deadline.
    /// Before the root has been evaluated this is at least one, because the move would otherwise be
    /// a guess. While pondering it is also at least one, but the deadline applies all the same:
    /// after a ponder hit, or a stop after a miss, our clock runs until the batch has finished.
    pub(crate) fn affordable_batch(&self) -> usize {
        let mut wanted = self.batch_size();
        if !self.repeatable {
            wanted = self.latency.affordable(LONGEST_BATCH, wanted).max(1);
        }
        let Some(left) = self.time_left() else {
            return wanted;
        };
        let affordable = self.latency.affordable(left, wanted);
        if self.tree.root().visits() == 0 || self.ponders() {
            affordable.max(1)
        } else {
            affordable
        }
    }

    /// Rescales the network's value of a position this many plies below the root.
    pub(crate) fn rescale(&self, value: Value, depth: usize) -> Value {
        self.rescaling.map_or(value, |rescaling| {
            let turn = self.game.position().turn();
            let turn = if depth.is_multiple_of(2) {
                turn
            } else {
                turn.other()
            };
            rescaling.apply(value, turn)
        })
    }

    /// Waits briefly while other threads evaluate the leaves that this thread would have found. If
    /// more threads are waiting than there are cores, the wait is longer, to leave the cores to the
    /// threads that evaluate.
    pub(crate) fn rest(&self) {
        let resting = self.resting.fetch_add(1, Relaxed) + 1;
        sleep(REST * resting.div_ceil(*CORES));
        self.resting.fetch_sub(1, Relaxed);
    }

    /// Returns whether the search must end.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Ends the search. The flag publishes no data, so relaxed ordering suffices; the threads'
    /// results are read only after all threads have finished.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Returns whether long computations should be interrupted because the caller is waiting for a
    /// move and one is available.
    pub(crate) fn is_urgent(&self) -> bool {
        let late = || !self.ponders() && self.time_left().is_some_and(|left| left.is_zero());
        self.tree.root().visits() > 0 && (self.stopped() || self.control.stopped() || late())
    }

    /// Ends the search with an error.
    pub(crate) fn fail(&self, error: BackendError) {
        self.failure.lock().get_or_insert(error);
        self.stop();
    }
}

/// Counters of this search. The reported depths also include the visits already in the tree when
/// the search began. The counters are updated independently, so readers may see one updated before
/// another.
#[derive(Default)]
pub(crate) struct Progress {
    found: TreeDepth,
    visits: atomic::AtomicU64,
    arrived: atomic::AtomicU64,
    discoveries: atomic::AtomicU64,
    depth: atomic::AtomicU64,
    deepest: atomic::AtomicU32,
    tablebase_hits: atomic::AtomicU64,
}

/// One thread's additions to [`Progress`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    visits: u64,
    arrived: u64,
    discoveries: u64,
    depth: u64,
    deepest: u32,
}

impl Tally {
    /// Adds visits that reached a leaf at this depth.
    pub(crate) fn count_leaf(&mut self, visits: u32, depth: u32) {
        self.pass(visits);
        self.arrived += u64::from(visits);
        self.depth += u64::from(visits) * u64::from(depth);
        self.deepest = self.deepest.max(depth);
    }

    /// Adds a newly discovered leaf.
    pub(crate) fn discover(&mut self) {
        self.discoveries += 1;
    }

    /// Adds visits that ended above a leaf.
    pub(crate) fn pass(&mut self, visits: u32) {
        self.visits += u64::from(visits);
    }
}

impl Progress {
    /// Returns the progress of a new search in a tree of this depth.
    pub(crate) fn in_tree(found: TreeDepth) -> Progress {
        Progress {
            found,
            ..Progress::default()
        }
    }

    pub(crate) fn add(&self, tally: Tally) {
        self.visits.fetch_add(tally.visits, Relaxed);
        self.arrived.fetch_add(tally.arrived, Relaxed);
        self.discoveries.fetch_add(tally.discoveries, Relaxed);
        self.depth.fetch_add(tally.depth, Relaxed);
        self.deepest.fetch_max(tally.deepest, Relaxed);
    }

    /// Counts tablebase hits.
    pub(crate) fn hit_tablebase(&self, positions: u64) {
        self.tablebase_hits.fetch_add(positions, Relaxed);
    }

    /// Returns the number of tablebase hits.
    pub(crate) fn tablebase_hits(&self) -> u64 {
        self.tablebase_hits.load(Relaxed)
    }

    /// Returns the number of leaves evaluated or proven.
    pub(crate) fn discoveries(&self) -> u64 {
        self.discoveries.load(Relaxed)
    }

    /// Returns the number of visits added at the root.
    pub(crate) fn visits(&self) -> u64 {
        self.visits.load(Relaxed)
    }

    /// Returns the mean depth of the tree's leaves in plies.
    pub(crate) fn mean_depth(&self) -> f64 {
        let found = f64::from(self.found.visits);
        let leaves = found + self.arrived.load(Relaxed) as f64;
        (self.found.mean * found + self.depth.load(Relaxed) as f64) / leaves.max(1.0)
    }

    /// Returns the depth of the tree's deepest leaf in plies.
    pub(crate) fn deepest(&self) -> u32 {
        self.deepest.load(Relaxed).max(self.found.deepest)
    }
}
