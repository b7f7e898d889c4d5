//! PUCT: Monte-Carlo tree search guided by a backend's priors and values.
//!
//! Threads share one tree of atomics in a fixed-size slab. Each thread gathers a batch of leaves in
//! descents that carry many visits at once, evaluates the batch without holding any lock, and backs
//! up the values. Outcomes decided by the rules are proofs and are propagated up the tree, so a
//! reported mate is always a forced mate. Tablebase results are propagated in the same way, but are
//! not reported as mates.
//!
//! Modules are listed from the bottom up; each depends only on those above it:
//!
//! | part | contents |
//! |---|---|
//! | `sync`, `numeric` | synchronisation primitives, which tests replace with loom's; exponentials and logarithms that return the same bits on every machine |
//! | `wdl` | rescales win/draw/loss for the players' ratings |
//! | `parameters` | the search parameters |
//! | `tree` | the tree: its memory, positions, moves and values, the moves' order of preference, eviction |
//! | `prove` | proofs of forced mates |
//! | `mates` | mate searches outside the tree, at the root and at leaves |
//! | `memory` | per-node memory of a search in imagination |
//! | `root` | noise, temperature, Gumbel selection; tree reuse |
//! | `clock` | evaluation latency, interruptions and time management |
//! | `shared` | the state shared by the threads of one search |
//! | `environment` | the searched environment: the rules of chess with the backend's evaluations, or a network's imagination |
//! | `descent` | a visit: PUCT and the utility it maximises, descent, backup |
//! | `choice` | which root move to play |
//! | `report` | lines, scores and statistics; the first plies of the tree |
//! | `stopper`, `helpers` | stop conditions and the timing of reports; the threads |

mod choice;
mod clock;
mod descent;
mod environment;
mod helpers;
mod mates;
mod memory;
mod numeric;
mod parameters;
mod prove;
mod report;
mod root;
mod shared;
mod stopper;
mod sync;
#[cfg(test)]
mod tests;
mod tree;
mod wdl;

pub(crate) use clock::time::TimeBudget;
pub use environment::WorldOptions;
pub use parameters::{FpuStrategy, Parameters};
pub use prove::{Attack, Goal, MAX_MATE_PLIES, ProofNumbers, Prover};
pub use report::outline::{Outline, OutlineLimits, OutlineMove};
pub(crate) use root::generator;
pub(crate) use root::gumbel::{Contender, improved_policy};
pub use wdl::contempt::{Contempt, ContemptMode};

use crate::backend::{Backend, BackendError, Batch, Evaluations, Imagination};
use crate::chess::{Game, mate_in_one};
use crate::play::{
    Agent, AgentError, Choice, Control, Limits, MoveStatistics, Report, Score, allowed_moves,
};
use crate::tablebase::{RootMoves, bare_king};
use choice::RootChoice;
use clock::lag::Lag;
use clock::latency::Latency;
use descent::worker::SearchWorker;
use environment::{Environment, Latent, Rules};
use helpers::Helpers;
use mates::{MateSearch, claimable};
use memory::Memory;
use rand_xoshiro::rand_core::RngCore;
use root::gumbel::{Gumbel, contenders};
use root::history::{RootHistory, plies_since};
use root::{Root, needs_fresh_root};
use shakmaty::{Move, MoveList, Position};
use shared::{MAX_VISITS, Progress, Shared};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{self, Ordering::Relaxed};
use std::time::Instant;
use stopper::Stopper;
use sync::{AtomicBool, AtomicU64, Mutex, RwLock};
use tree::depth::TreeDepth;
use tree::header::Stage;
use tree::prior::MAX_MOVES;
use tree::{MAX_IN_FLIGHT, Tree};
use wdl::rescaling::Rescaling;

/// The maximum number of leaves that a thread gathers before evaluating them.
const MAX_BATCH: usize = 1024;

/// In a search in imagination, the tree gets 1/`TREE_SHARE` of the memory.
const TREE_SHARE: usize = 64;

/// The mate prover gets 1/`PROVER_SHARE` of the memory, …
const PROVER_SHARE: usize = 16;
/// … but at least this many bytes.
const LEAST_PROVER: usize = 1 << 18;

/// A search tree and everything needed to grow it, kept between moves.
///
/// ```
/// use shakmaty::CastlingMode;
/// use std::sync::Arc;
/// use tessera::chess::Game;
/// use tessera::backend::Uniform;
/// use tessera::play::{Control, Limits};
/// use tessera::search::{Parameters, Search};
///
/// let mate = "6k1/5ppp/8/8/8/8/8/R6K w - - 0 1";
/// let game = Game::from_fen(mate, CastlingMode::Standard).unwrap();
/// let mut search = Search::new(Arc::new(Uniform::default()), &Parameters::default());
/// let limits = Limits { nodes: Some(500), ..Limits::default() };
/// let choice = search.run(&game, &limits, &Control::default(), &mut |_| {})?;
/// assert_eq!(game.format_move(choice.best.unwrap()), "a1a8");
/// # Ok::<(), tessera::backend::BackendError>(())
/// ```
pub struct Search {
    backend: Arc<dyn Backend>,
    parameters: Parameters,
    threads: usize,
    tree: Tree,
    root_history: RootHistory,
    /// The value of the last search's best move.
    value: Option<f64>,
    /// Addends to the logits of root moves.
    root_shifts: Vec<(Move, f32)>,
    /// The rescaling of values in the tree.
    rescaling: Option<Rescaling>,
    helpers: Option<Helpers>,
    latency: Latency,
    lag: Lag,
    mates: Option<Mutex<MateSearch>>,
    /// `Some` for a search in imagination.
    dream: Option<Dream>,
}

/// Additional state of a search in imagination.
struct Dream {
    options: WorldOptions,
    imagination: Option<Arc<dyn Imagination>>,
    memory: Memory,
    /// The number of searches so far. `illegal` counts those whose chosen move was illegal.
    searches: u64,
    illegal: u64,
}

impl Search {
    /// Returns an empty tree of [`Parameters::hash`] MiB. Memory is allocated as the tree grows.
    pub fn new(backend: Arc<dyn Backend>, parameters: &Parameters) -> Search {
        let provers = match parameters.mate_search {
            true => parameters.hash / PROVER_SHARE,
            false => 0,
        };
        let bytes = (provers << 20).max(LEAST_PROVER);
        let mates = || Mutex::new(MateSearch::new(bytes));
        Search {
            threads: threads(&*backend, parameters),
            backend,
            parameters: parameters.clone(),
            tree: Tree::new(parameters.hash - provers),
            mates: parameters.mate_search.then(mates),
            root_history: RootHistory::default(),
            value: None,
            root_shifts: Vec::new(),
            rescaling: None,
            helpers: None,
            latency: Latency::default(),
            lag: Lag::default(),
            dream: None,
        }
    }

    /// Returns an empty tree for a search in imagination, which follows the rules that the
    /// backend's network has learned; the actual rules determine only the root moves. Most of the
    /// memory stores imagined boards. Nothing is kept between searches.
    pub fn in_imagination(
        backend: Arc<dyn Backend>,
        parameters: &Parameters,
        options: &WorldOptions,
    ) -> Search {
        let tree = (parameters.hash / TREE_SHARE).max(1);
        let without_rules = Parameters {
            hash: tree,
            mate_search: false,
            transpositions: false,
            tablebase: Default::default(),
            ..parameters.clone()
        };
        let imagination = backend.imagination();
        let bytes = imagination.as_ref().map_or(0, |it| it.bytes());
        Search {
            dream: Some(Dream {
                options: options.clone(),
                memory: Memory::new(parameters.hash.saturating_sub(tree).max(1), bytes),
                imagination,
                searches: 0,
                illegal: 0,
            }),
            ..Search::new(backend, &without_rules)
        }
    }

    /// Sets the parameters. Keeps the tree unless the new parameters would have grown a different
    /// tree or use a different amount of memory.
    pub fn adjust(&mut self, parameters: &Parameters) {
        if let Some(dream) = &self.dream {
            *self = Search::in_imagination(Arc::clone(&self.backend), parameters, &dream.options);
        } else if self.parameters.grows_like(parameters) {
            self.parameters = parameters.clone();
            self.count_threads();
        } else {
            *self = Search::new(Arc::clone(&self.backend), parameters);
        }
    }

    /// Sets the parameters like [`Search::adjust`], and the options of a search in imagination.
    pub(crate) fn adjust_with(&mut self, parameters: &Parameters, options: &WorldOptions) {
        if let Some(dream) = &mut self.dream {
            dream.options = options.clone();
        }
        self.adjust(parameters);
    }

    /// Replaces the backend. The tree is kept, so `backend` must evaluate every position
    /// identically to the previous one.
    pub fn set_backend(&mut self, backend: Arc<dyn Backend>) {
        if let Some(dream) = &mut self.dream {
            dream.imagination = backend.imagination();
        }
        self.backend = backend;
        self.count_threads();
    }

    fn count_threads(&mut self) {
        let threads = threads(&*self.backend, &self.parameters);
        if threads != self.threads {
            self.threads = threads;
            self.helpers = None;
        }
    }

    /// Sets what is added to the logits of root moves in the following searches, each of which must
    /// begin with an empty tree.
    pub(crate) fn shift_root(&mut self, shifts: Vec<(Move, f32)>) {
        self.root_shifts = shifts;
    }

    /// Clears the tree.
    pub fn clear(&mut self) {
        self.tree.clear();
        self.root_history.clear();
        if let Some(dream) = &mut self.dream {
            dream.memory.clear();
        }
        if let Some(mates) = &mut self.mates {
            mates.get_mut().clear();
        }
    }

    /// Returns the tree's size in bytes.
    pub fn bytes(&self) -> usize {
        self.tree.bytes()
    }

    /// Returns the first plies of the tree below the last searched position; empty before the first
    /// search.
    pub fn outline(&self, limits: OutlineLimits) -> Outline {
        let game = self.root_history.game();
        // In imagination, edges below the root need not be legal moves.
        let game = game.filter(|_| self.dream.is_none());
        game.map_or_else(Outline::default, |game| {
            Outline::of(&self.tree, self.tree.root(), game, limits)
        })
    }

    /// Searches `game` within `limits`, with the guarantees of [`crate::play::Agent::choose`].
    ///
    /// # Errors
    /// [`BackendError`] if an evaluation failed; the tree is then as it was before that batch, and
    /// the last report describes that state.
    ///
    /// # Panics
    /// If the backend or `tell` panics on any thread. The last report contains the results so far;
    /// the tree is then cleared.
    pub fn run(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        tell: &mut dyn FnMut(&Report),
    ) -> Result<Choice, BackendError> {
        let began = control.now();
        self.backend.properties().require_value()?;
        let imagination = self.imagination()?;
        let (root_moves, known) = self.candidates(game, limits)?;
        if root_moves.is_empty() {
            control.hold_back(limits);
            return Ok(Choice::default());
        }
        if imagination.is_none() {
            bare_king::solve_ahead(game.position());
        }
        let expected = self.prepare(game, limits, &root_moves);
        let shared = Shared {
            expected,
            ..self.share(game, root_moves, known, limits, control, began)
        };
        let mut stopper = Stopper::new(&shared, limits, tell);
        let helpers = self.helpers.as_ref();
        let helpers =
            helpers.filter(|_| shared.remaining.load(Relaxed) > shared.batch_size() as u64);
        let searched = catch_unwind(AssertUnwindSafe(|| match (&imagination, &self.dream) {
            (Some(imagination), Some(dream)) => search(&shared, helpers, &mut stopper, &|| {
                Latent::new(&shared, &dream.options, &**imagination, &dream.memory)
            }),
            _ => search(&shared, helpers, &mut stopper, &|| Rules::new(&shared)),
        }));
        let failure = shared.failure.lock().take();
        let broke_off = searched.is_err() || failure.is_some();
        debug_assert!(searched.is_err() || shared.tree.in_flight.load(Relaxed) == 0);
        // Threads that finished at the same time may each have missed the others' last visits when
        // they updated the root's value.
        shared.tree.refresh(shared.tree.root());
        let (report, statistics) = report::report(&shared);
        if !broke_off || report.nodes > 0 {
            tell(&report);
        }
        if let Err(panic) = searched {
            self.clear();
            resume_unwind(panic);
        }
        if let Some(error) = failure {
            return Err(error);
        }
        if let Some(deadline) = shared.deadline() {
            shared.lag.record(shared.elapsed(), deadline);
        }
        control.hold_back(limits);
        let (best, ponder) = self.play(&shared, &report, &statistics);
        let chosen = RootChoice::of(&shared);
        let chosen = chosen.as_ref().map(RootChoice::chosen);
        let legal = shared.root_moves.len();
        let is_illegal =
            chosen.is_some_and(|chosen| usize::from(chosen.edge.rank().number()) >= legal);
        self.value = chosen.map(|chosen| chosen.statistics.q);
        let note = self.dream.as_mut().map(|dream| dream.count(is_illegal));
        Ok(Choice {
            best,
            ponder,
            report,
            statistics,
            note: note.flatten(),
        })
    }

    /// Returns the root moves to search and, if the tablebases know the position, their results.
    fn candidates(
        &self,
        game: &Game,
        limits: &Limits,
    ) -> Result<(MoveList, Option<RootMoves>), BackendError> {
        let mut moves = allowed_moves(game, limits);
        let known = match moves.is_empty() {
            true => None,
            false => self.parameters.tablebase.best_moves(game, &moves),
        };
        if let Some(known) = &known {
            moves.retain(|mv| known.moves.contains(mv));
        }
        if moves.len() > MAX_MOVES {
            self.keep_likeliest(game, &mut moves)?;
        }
        Ok((moves, known))
    }

    /// Prepares the tree and the mate prover to search `moves` in the game's position. Returns the
    /// value of the previous search's best move if that search was in this game.
    fn prepare(&mut self, game: &Game, limits: &Limits, moves: &MoveList) -> Option<f64> {
        let restricted = moves.len() < game.position().legal_moves().len();
        let contempt = &self.parameters.contempt;
        let rescaling = contempt.rescaling(game.position().turn(), limits.infinite);
        if rescaling != self.rescaling {
            self.clear();
            self.rescaling = rescaling;
        }
        let expected = self.expectation(game);
        self.enter(game, if restricted { moves } else { &[] });
        if let Some(mates) = &mut self.mates {
            let moves = restricted.then_some(&moves[..]);
            mates.get_mut().begin(game, moves, limits);
        }
        expected
    }

    /// Returns the imagination to search in, if any.
    fn imagination(&self) -> Result<Option<Arc<dyn Imagination>>, BackendError> {
        let Some(dream) = &self.dream else {
            return Ok(None);
        };
        let missing = || BackendError::NoImagination(self.backend.properties().name.clone());
        dream.imagination.clone().map(Some).ok_or_else(missing)
    }

    /// Drops moves beyond the number that a node can have, keeping those with the highest priors;
    /// constructed positions have up to 270 moves.
    fn keep_likeliest(&self, game: &Game, moves: &mut MoveList) -> Result<(), BackendError> {
        let mut batch = Batch::default();
        batch.push(game, moves, &self.backend.properties().encoder)?;
        let mut evaluations = Evaluations::default();
        self.backend.evaluate(&batch, &mut evaluations)?;
        let mate = mate_in_one(game.position(), moves);
        let logits = evaluations.logits(0).iter();
        let mut likeliest: Vec<(bool, f32, Move)> = moves
            .iter()
            .zip(logits)
            .map(|(&mv, &logit)| (Some(mv) == mate, logit, mv))
            .collect();
        likeliest.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        likeliest.truncate(MAX_MOVES);
        moves.retain(|mv| likeliest.iter().any(|likely| likely.2 == *mv));
        Ok(())
    }

    /// Returns the value of the last search's best move, if that search was in this game and had
    /// the same side to move.
    fn expectation(&self, game: &Game) -> Option<f64> {
        let plies = plies_since(self.root_history.game()?, game)?;
        self.value.filter(|_| plies.is_multiple_of(2))
    }

    /// Moves the root to the game's position and keeps the subtree of that position, if there is
    /// one. `search_moves` is empty unless the search is restricted to these moves.
    fn enter(&mut self, game: &Game, search_moves: &[Move]) {
        let found = match self.dream {
            // Imagination starts again from the actual position.
            Some(_) => None,
            None => self.root_history.find_root(&self.tree, game, search_moves),
        };
        match found {
            Some(node) if needs_fresh_root(&self.parameters) => self.tree.renew_root(node),
            Some(node) => self.tree.settle_root(node),
            None => self.clear(),
        }
        self.root_history.push(&self.tree, game, search_moves);
        if self.threads > 1 && self.helpers.is_none() {
            self.helpers = Some(Helpers::new(self.threads - 1));
        }
    }

    fn share<'a>(
        &'a self,
        game: &'a Game,
        root_moves: MoveList,
        known: Option<RootMoves>,
        limits: &Limits,
        control: &'a Control,
        began: Instant,
    ) -> Shared<'a> {
        let progress = Progress::in_tree(TreeDepth::of(&self.tree));
        progress.hit_tablebase(known.as_ref().map_or(0, |known| known.hits));
        let visits = limits.nodes.unwrap_or(MAX_VISITS).clamp(1, MAX_VISITS);
        let batch = match self.parameters.minibatch {
            0 => self.backend.properties().recommended_batch,
            batch => batch,
        };
        let most = MAX_BATCH.min(MAX_IN_FLIGHT as usize / self.threads).max(1);
        let budget = self.lag.budget(limits, self.parameters.overhead());
        let ponder_time = budget.filter(|_| limits.ponder).map(|budget| budget.hard);
        // In a timed game, visits are spent only on choosing the move, not on further lines.
        let lines = match limits.time {
            Some(_) => 1,
            None => self.parameters.multi_pv.clamp(1, root_moves.len().max(1)),
        };
        let mut root = Root::new(&self.parameters, game, &root_moves, limits, lines);
        if self.dream.is_some() {
            root = root.without_rules();
        }
        if !self.root_shifts.is_empty() {
            let shift = |mv: &Move| self.root_shifts.iter().find(|(of, _)| of == mv);
            let shifts = root_moves
                .iter()
                .map(|mv| shift(mv).map_or(0.0, |(_, shift)| *shift));
            root = root.with_shifts(shifts.collect());
        }
        Shared {
            tree: &self.tree,
            parameters: &self.parameters,
            backend: &*self.backend,
            latency: &self.latency,
            lag: &self.lag,
            mates: self.mates.as_ref(),
            draws: claimable(game),
            game,
            control,
            root,
            lines,
            memory: self.dream.as_ref().map(|dream| &dream.memory),
            root_moves,
            verdict: known.map(|known| known.verdict),
            expected: None,
            rescaling: self.rescaling,
            batch: batch.clamp(1, most),
            repeatable: limits.nodes.is_some() || limits.depth.is_some(),
            gate: RwLock::new(()),
            stop: AtomicBool::new(false),
            resting: atomic::AtomicU32::new(0),
            failure: Mutex::new(None),
            progress,
            began,
            deadline: atomic::AtomicU64::new(u64::MAX),
            ponder_time,
            remaining: AtomicU64::new(visits.saturating_sub(self.tree.root().visits().into())),
        }
    }

    /// Returns the move to play and the expected reply.
    fn play(
        &self,
        shared: &Shared<'_>,
        report: &Report,
        statistics: &[MoveStatistics],
    ) -> (Option<Move>, Option<Move>) {
        let gumbel = shared.root.gumbel.as_ref().filter(|_| is_open(report));
        match gumbel.and_then(|gumbel| self.selected(gumbel, &shared.root_moves, statistics)) {
            Some(selected) => (Some(selected), None),
            None => self.best_move(shared.game, report, statistics),
        }
    }

    /// Returns the move to play according to Gumbel selection.
    fn selected(
        &self,
        gumbel: &Gumbel,
        moves: &[Move],
        statistics: &[MoveStatistics],
    ) -> Option<Move> {
        let root = self.tree.root();
        let header = root.header();
        if header.stage() != Stage::Expanded {
            return None;
        }
        let mut contenders = contenders(&self.tree, root);
        let lost = |mv: Option<&Move>| {
            statistics
                .iter()
                .any(|of| Some(&of.mv) == mv && of.is_lost())
        };
        for contender in &mut contenders {
            // A proof from outside the tree may have arrived too late to be entered in the tree.
            contender.lost |= lost(moves.get(usize::from(contender.number)));
        }
        let own = -self.tree.block(header).own().q as f32;
        let choice = gumbel.choice(&contenders, own)?;
        moves.get(usize::from(contenders[choice].number)).copied()
    }

    /// Returns the move to play and the expected reply. The move is the best one or, at a positive
    /// temperature, is sampled by visits from those not proven to lose.
    fn best_move(
        &self,
        game: &Game,
        report: &Report,
        statistics: &[MoveStatistics],
    ) -> (Option<Move>, Option<Move>) {
        let best = report.lines.first().map(|line| &line.moves);
        let ponder = best.and_then(|moves| moves.get(1).copied());
        let best = best.and_then(|moves| moves.first().copied());
        let temperature = self.parameters.temperature;
        if temperature <= 0.0 || !is_open(report) {
            return (best, ponder);
        }
        let open = || statistics.iter().filter(|of| !of.is_lost());
        let most = open().map(|statistics| statistics.visits).max();
        let most = most.unwrap_or(0).max(1) as f64;
        let weight = |statistics: &MoveStatistics| {
            (statistics.visits as f64 / most).powf(1.0 / f64::from(temperature))
        };
        let mut random = generator(&self.parameters, game);
        let share = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut left = share * open().map(weight).sum::<f64>();
        let drawn = open().find(|statistics| {
            left -= weight(statistics);
            left < 0.0
        });
        match drawn {
            Some(drawn) if Some(drawn.mv) != best => (Some(drawn.mv), None),
            _ => (best, ponder),
        }
    }
}

impl Dream {
    /// Counts a search; returns a message if its chosen move was illegal.
    fn count(&mut self, is_illegal: bool) -> Option<String> {
        self.searches += 1;
        self.illegal += u64::from(is_illegal);
        is_illegal.then(|| {
            format!(
                "the move imagined best is not legal ({} of {} searches): the best legal one is \
                 played",
                self.illegal, self.searches
            )
        })
    }
}

/// Returns whether the best move is proven neither to win nor to lose.
fn is_open(report: &Report) -> bool {
    let best = report.lines.first();
    best.is_none_or(|line| matches!(line.score, Score::Expected(_)))
}

/// Searches in environments of type `E` on all threads until the search ends.
fn search<E: Environment>(
    shared: &Shared<'_>,
    helpers: Option<&Helpers>,
    stopper: &mut Stopper<'_>,
    environment: &(dyn Fn() -> E + Sync),
) {
    let own = |stopper: &mut Stopper<'_>| {
        SearchWorker::new(shared, environment()).run(|| stopper.check());
    };
    match helpers {
        Some(helpers) => helpers.beside(
            &|| SearchWorker::new(shared, environment()).run(|| shared.stopped()),
            || own(stopper),
        ),
        None => own(stopper),
    }
}

/// Returns the number of search threads, at least one.
fn threads(backend: &dyn Backend, parameters: &Parameters) -> usize {
    match parameters.threads {
        0 => backend.properties().recommended_threads.max(1),
        threads => threads,
    }
}

impl Agent for Search {
    fn new_game(&mut self) {
        self.clear();
    }

    fn choose(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        report: &mut dyn FnMut(&Report),
    ) -> Result<Choice, AgentError> {
        Ok(self.run(game, limits, control, report)?)
    }
}
