//! Players: one trait, many ways to choose a move.
//!
//! Whoever asks for a move (the UCI session, the puzzle tester, a match) knows
//! only [`Agent`]. It runs on the caller's thread and is steered from others
//! through [`Control`].

mod immediate;
mod mcts;
mod policy;
mod value;

pub use immediate::Immediate;

use crate::chess::Game;
use crate::nn::{Backend, BackendError};
use crate::search::Parameters;
use crate::tablebase::Verdict;
use immediate::ImmediateAgent;
use mcts::MctsAgent;
use parking_lot::{Condvar, Mutex};
use shakmaty::Move;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to think, as UCI's `go` says it. The default is: until stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Time on the mover's clock.
    pub time: Option<Duration>,
    /// Time on the opponent's clock.
    pub opponent_time: Option<Duration>,
    /// The mover's increment a move.
    pub increment: Duration,
    /// The opponent's increment a move.
    pub opponent_increment: Duration,
    /// Moves to the next time control.
    pub moves_to_go: Option<u32>,
    /// Time for this move, to be used up.
    pub move_time: Option<Duration>,
    /// Visits at the root.
    pub nodes: Option<u64>,
    /// Mean depth of the leaves.
    pub depth: Option<u32>,
    /// Stop when a mate in at most this many moves is proven.
    pub mate: Option<u32>,
    /// Think until told to stop, whatever has been proven.
    pub infinite: bool,
    /// Think on the opponent's time until [`Control::ponder_hit`].
    pub ponder: bool,
    /// Consider only these moves; empty means all.
    pub search_moves: Vec<Move>,
}

/// Steers a thinking [`Agent`] from another thread.
#[derive(Debug, Default)]
pub struct Control {
    state: Mutex<ControlState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ControlState {
    stop: bool,
    ponder_hit: Option<Instant>,
}

impl Control {
    /// Asks for the move now.
    pub fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    /// Says that the opponent played the expected move: the clock now runs for us.
    pub fn ponder_hit(&self) {
        self.state
            .lock()
            .ponder_hit
            .get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    /// Whether the move has been asked for.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.state.lock().stop
    }

    /// When the expected move was played, if it was.
    #[must_use]
    pub fn ponder_hit_at(&self) -> Option<Instant> {
        self.state.lock().ponder_hit
    }

    /// Sleeps until stopped, or until the ponder hit where `or_ponder_hit`;
    /// for a player that has its answer but may not give it yet.
    pub fn wait(&self, or_ponder_hit: bool) {
        let mut state = self.state.lock();
        while !(state.stop || or_ponder_hit && state.ponder_hit.is_some()) {
            self.changed.wait(&mut state);
        }
    }

    /// Keeps an answer back for as long as [`Limits::infinite`] or
    /// [`Limits::ponder`] forbid to give it.
    pub(crate) fn hold_back(&self, limits: &Limits) {
        if limits.infinite || limits.ponder {
            self.wait(!limits.infinite);
        }
    }
}

/// The worth of a line to the side to move at the root.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Score {
    /// Expected result, W − L, in −1…1.
    Expected(f32),
    /// Mate in so many moves (not plies); negative if the side to move is mated.
    Mate(i32),
    /// A tablebase's word that the side to move wins or loses, with no mate in
    /// sight.
    Tablebase {
        /// Whether it wins.
        won: bool,
    },
}

/// One line of a report: the moves that a player thinks best, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The line's worth.
    pub score: Score,
    /// Probabilities of win, draw and loss for the side to move at the root.
    pub wdl: [f32; 3],
    /// Plies to the end of the game, where the network says so.
    pub moves_left: Option<f32>,
    /// The moves from the root on; never empty.
    pub moves: Vec<Move>,
}

impl Line {
    /// Puts what a tablebase says in the place of what was expected.
    pub(crate) fn settle(&mut self, verdict: Verdict) {
        if let Score::Expected(_) = self.score {
            (self.score, self.wdl) = match verdict {
                Verdict::Win => (Score::Tablebase { won: true }, [1.0, 0.0, 0.0]),
                Verdict::Draw => (Score::Expected(0.0), [0.0, 1.0, 0.0]),
                Verdict::Loss => (Score::Tablebase { won: false }, [0.0, 0.0, 1.0]),
            };
        }
    }
}

/// What a thinking player reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Mean depth of the leaves.
    pub depth: u32,
    /// Depth of the deepest leaf.
    pub selective_depth: u32,
    /// Visits at the root.
    pub nodes: u64,
    /// Visits added by this search alone, for the nodes per second.
    pub new_nodes: u64,
    /// Time since the search began.
    pub elapsed: Duration,
    /// Share of the memory in use, in 0…1.
    pub memory_use: f32,
    /// Positions that were found in tablebases.
    pub tablebase_hits: u64,
    /// The lines, the best first; as many as were asked for and exist.
    pub lines: Vec<Line>,
}

/// One root move in numbers, for those who want to look inside.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveStatistics {
    /// The move.
    pub mv: Move,
    /// Visits it received.
    pub visits: u64,
    /// Prior probability from the policy, in 0…1.
    pub prior: f32,
    /// Expected result for the side to move at the root, in −1…1.
    pub q: f32,
    /// Probabilities of win, draw and loss.
    pub wdl: [f32; 3],
    /// Plies to the end of the game, the move's own included, where the network
    /// says so.
    pub moves_left: Option<f32>,
}

/// A player's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// The move; `None` only where there is no legal move.
    pub best: Option<Move>,
    /// The reply expected.
    pub ponder: Option<Move>,
    /// What the move was chosen on: the last report.
    pub report: Report,
    /// Every root move, the best first.
    pub statistics: Vec<MoveStatistics>,
}

/// Why a player has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The network failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// A player.
pub trait Agent: Send {
    /// Forgets what earlier positions taught (another game begins).
    fn new_game(&mut self);

    /// Goes by these parameters from now on; what is known and still true stays
    /// known.
    fn adjust(&mut self, parameters: &Parameters);

    /// Chooses a move for the side to move in `game`, which has a legal move
    /// unless the choice is to be empty. `report` is called as the thinking
    /// goes on, from this thread.
    ///
    /// Returns at the latest when `control` says stop; where
    /// [`Limits::infinite`] or [`Limits::ponder`] forbid an early answer, not
    /// before that.
    ///
    /// # Errors
    /// [`AgentError`] if the network failed; the player can be asked again.
    fn choose(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        report: &mut dyn FnMut(&Report),
    ) -> Result<Choice, AgentError>;
}

/// The players there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum AgentKind {
    /// PUCT over the network.
    #[default]
    Mcts,
    /// The move that the policy likes best: one evaluation.
    Policy,
    /// The move after which the network likes the position best: one
    /// evaluation for each legal move.
    Value,
}

impl AgentKind {
    /// The player, thinking with `backend`.
    #[must_use]
    pub fn build(self, backend: Arc<dyn Backend>, parameters: &Parameters) -> Box<dyn Agent> {
        match self.immediate() {
            Some(immediate) => Box::new(ImmediateAgent::new(immediate, backend, parameters)),
            None => Box::new(MctsAgent::new(backend, parameters)),
        }
    }
}
