//! The threads of a search: their combined result, and their termination.

use super::clock::lag::Lag;
use super::clock::latency::Latency;
use super::descent::worker::SearchWorker;
use super::environment::Rules;
use super::root::Root;
use super::shared::{Progress, Shared};
use super::sync::{AtomicBool, AtomicU64, Mutex, RwLock};
use super::tree::Tree;
use super::tree::edge::Edge;
use super::tree::header::Stage;
use crate::check;
use loom::thread;
use shakmaty::{CastlingMode, Position};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::LazyLock;
use std::sync::atomic::{self, Ordering::Relaxed};
use std::time::Instant;
use tessera::backend::{Backend, BackendError, Batch, Evaluations, Properties, Uniform};
use tessera::chess::Game;
use tessera::play::{Control, Limits};
use tessera::search::Parameters;

/// Number of visits in a search: the root's evaluation and one more.
const VISITS: u64 = 2;
/// A position with few moves.
const FEN: &str = "8/8/8/8/8/1k6/7P/K7 w - - 0 1";

static GAME: LazyLock<Game> =
    LazyLock::new(|| Game::from_fen(FEN, CastlingMode::Standard).unwrap());
static PARAMETERS: LazyLock<Parameters> = LazyLock::new(Parameters::default);
static CONTROL: LazyLock<Control> = LazyLock::new(Control::default);
static LATENCY: LazyLock<Latency> = LazyLock::new(Latency::default);
static LAG: LazyLock<Lag> = LazyLock::new(Lag::default);
static UNIFORM: LazyLock<Uniform> = LazyLock::new(Uniform::default);

/// The outcome of an evaluation.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Succeeds,
    Fails,
    Panics,
}

/// A backend in which evaluation `number` has the outcome `fate`; all others succeed.
struct Fateful {
    number: u32,
    fate: Fate,
    evaluations: atomic::AtomicU32,
}

impl Backend for Fateful {
    fn properties(&self) -> &Properties {
        UNIFORM.properties()
    }

    fn evaluate(&self, batch: &Batch, out: &mut Evaluations) -> Result<(), BackendError> {
        let number = self.evaluations.fetch_add(1, Relaxed);
        match self.fate {
            Fate::Fails if number == self.number => Err(BackendError::Stopped),
            Fate::Panics if number == self.number => break_off(),
            _ => UNIFORM.evaluate(batch, out),
        }
    }
}

/// Panics without a message.
fn break_off() -> ! {
    resume_unwind(Box::new(()))
}

/// Runs `other` on a second thread and `here` on this one; returns whether each of them panicked.
fn beside(other: impl FnOnce() + Send, here: impl FnOnce()) -> [bool; 2] {
    let panics = |run: Box<dyn FnOnce() + Send + '_>| catch_unwind(AssertUnwindSafe(run)).is_err();
    let other: Box<dyn FnOnce() -> bool + Send + '_> = Box::new(move || panics(Box::new(other)));
    // SAFETY: the thread is joined before its borrows end. loom has no scoped threads.
    let other: Box<dyn FnOnce() -> bool + Send> = unsafe { std::mem::transmute(other) };
    let other = thread::spawn(other);
    let here = catch_unwind(AssertUnwindSafe(here)).is_err();
    [other.join().unwrap(), here]
}

/// The outcome of a search.
struct Ended {
    tree: Tree,
    failure: Option<BackendError>,
    stopped: bool,
    /// Whether the helper and the caller panicked.
    panicked: [bool; 2],
}

/// Searches with two threads, which share [`VISITS`]; the calling thread runs `between` between
/// batches.
fn search(number: u32, fate: Fate, between: impl Fn()) -> Ended {
    let tree = Tree::new(2);
    let backend = Fateful {
        number,
        fate,
        evaluations: atomic::AtomicU32::new(0),
    };
    let root_moves = GAME.position().legal_moves();
    let shared = Shared {
        tree: &tree,
        parameters: &PARAMETERS,
        backend: &backend,
        latency: &LATENCY,
        lag: &LAG,
        mates: None,
        memory: None,
        draws: Vec::new(),
        game: &GAME,
        control: &CONTROL,
        root: Root::new(&PARAMETERS, &GAME, &root_moves, &Limits::default(), 1),
        lines: 1,
        root_moves,
        verdict: None,
        expected: None,
        rescaling: None,
        batch: 4,
        repeatable: true,
        gate: RwLock::new(()),
        stop: AtomicBool::new(false),
        resting: atomic::AtomicU32::new(0),
        failure: Mutex::new(None),
        progress: Progress::default(),
        began: Instant::now(),
        deadline: atomic::AtomicU64::new(u64::MAX),
        ponder_time: None,
        remaining: AtomicU64::new(VISITS),
    };
    let helper = || SearchWorker::new(&shared, Rules::new(&shared)).run(|| shared.stopped());
    let caller = || {
        SearchWorker::new(&shared, Rules::new(&shared)).run(|| {
            between();
            shared.stopped()
        });
    };
    let panicked = beside(helper, caller);
    // Search::run does this too, because threads may have missed each other's last visits.
    tree.refresh(tree.root());
    let (failure, stopped) = (shared.failure.lock().take(), shared.stopped());
    Ended {
        tree,
        failure,
        stopped,
        panicked,
    }
}

/// Checks that the threads left nothing in flight.
fn assert_at_rest(tree: &Tree) {
    assert_eq!(tree.in_flight.load(Relaxed), 0);
    let header = tree.root().header();
    assert!(header.stage() != Stage::Pending && !header.locked());
    assert!(
        tree.edges(header)
            .all(|edge| edge.edge_visits().in_flight() == 0)
    );
}

/// The threads end when all visits have been made, and not before.
pub(crate) fn all_visits_are_made() {
    check(2, || {
        let ended = search(0, Fate::Succeeds, || ());
        assert!(ended.panicked == [false, false] && ended.failure.is_none());
        assert_at_rest(&ended.tree);
        let root = ended.tree.root();
        let visits: u32 = ended.tree.edges(root.header()).map(Edge::visits).sum();
        assert_eq!(root.visits(), VISITS as u32);
        assert_eq!(visits, VISITS as u32 - 1);
    });
}

/// A device failure ends the search for both threads, which undo their unfinished visits.
pub(crate) fn a_failure_ends_all_threads() {
    for number in [0, 1] {
        check(1, move || {
            let ended = search(number, Fate::Fails, || ());
            assert!(ended.panicked == [false, false] && ended.stopped);
            assert!(ended.failure.is_some());
            assert_at_rest(&ended.tree);
        });
    }
}

/// A panicking thread leaves visits in flight, and the other thread may be waiting for them.
pub(crate) fn a_panic_ends_all_threads() {
    for number in [0, 1] {
        check(1, move || {
            let ended = search(number, Fate::Panics, || ());
            assert!(ended.panicked[0] != ended.panicked[1] && ended.stopped);
        });
    }
    check(1, || {
        let ended = search(0, Fate::Succeeds, || break_off());
        assert!(ended.panicked == [false, true] && ended.stopped);
        assert_at_rest(&ended.tree);
    });
}
