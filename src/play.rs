//! The agent interface: an agent takes a position and limits, and returns reports and a choice.
//!
//! The UCI session, matches and measurements use only [`Agent`]. An agent runs on the caller's
//! thread; other threads control it through [`Control`].

mod clock;
mod control;
mod limits;
mod report;
mod score;

pub use clock::Clock;
pub use control::Control;
pub use limits::Limits;
pub use report::{Choice, Line, MoveStatistics, Report, Score};
pub use score::{ScoreType, WrittenScore, centipawns};

use crate::backend::BackendError;
use crate::chess::Game;
use shakmaty::{Move, MoveList, Position};

/// A request for a move.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The game so far. The agent chooses a move for its side to move.
    pub game: &'a Game,
    /// The search limits and the moves to consider.
    pub limits: Limits,
}

impl Question<'_> {
    /// Returns the legal moves that the limits allow, in the order of generation.
    pub fn moves(&self) -> MoveList {
        allowed_moves(self.game, &self.limits)
    }
}

/// Returns the legal moves that `limits` allow: all of them, or those in [`Limits::search_moves`].
pub(crate) fn allowed_moves(game: &Game, limits: &Limits) -> MoveList {
    let allowed = |mv: &Move| limits.search_moves.is_empty() || limits.search_moves.contains(mv);
    let mut moves = game.position().legal_moves();
    moves.retain(|mv| allowed(mv));
    moves
}

/// Why an agent could not answer.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The network failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl AgentError {
    /// Returns whether the question might succeed on another device.
    pub fn is_of_device(&self) -> bool {
        let AgentError::Backend(error) = self;
        !matches!(
            error,
            BackendError::Unencodable(_)
                | BackendError::NoValue(_)
                | BackendError::NoImagination(_)
        )
    }
}

/// An agent that chooses moves.
pub trait Agent: Send {
    /// Starts a new game and forgets earlier positions.
    fn new_game(&mut self);

    /// Chooses a move for the side to move in `game`. The choice is empty if no
    /// legal move is allowed. The agent calls `report` on this thread while it thinks.
    ///
    /// Returns soon after `control` signals a stop. If [`Limits::infinite`] or [`Limits::ponder`]
    /// is set, it does not return earlier.
    ///
    /// # Errors
    /// [`AgentError`] if the network failed; the agent remains usable.
    fn choose(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        report: &mut dyn FnMut(&Report),
    ) -> Result<Choice, AgentError>;

    /// Answers several questions, each in the same way as [`Agent::choose`]. An agent that
    /// evaluates questions in one batch returns its preferred batch size from [`Agent::batch`].
    ///
    /// # Errors
    /// The same errors as [`Agent::choose`].
    fn choose_many(&mut self, questions: &[Question<'_>]) -> Result<Vec<Choice>, AgentError> {
        let control = Control::default();
        questions
            .iter()
            .map(|Question { game, limits }| self.choose(game, limits, &control, &mut |_| {}))
            .collect()
    }

    /// Returns the preferred number of questions for [`Agent::choose_many`], at least 1.
    fn batch(&self) -> usize {
        1
    }
}
