//! Search limits.

use shakmaty::Move;
use std::time::Duration;

/// The limits of a search, as in UCI's `go`. By default it runs until stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Time on the clock of the side to move.
    pub time: Option<Duration>,
    /// Time on the opponent's clock.
    pub opponent_time: Option<Duration>,
    /// Increment per move of the side to move.
    pub increment: Duration,
    /// The opponent's increment per move.
    pub opponent_increment: Duration,
    /// Number of moves to the next time control.
    pub moves_to_go: Option<u32>,
    /// Time for this move, to be used in full.
    pub move_time: Option<Duration>,
    /// Number of visits at the root.
    pub nodes: Option<u64>,
    /// Mean depth of the leaves, in plies.
    pub depth: Option<u32>,
    /// Stop once a mate in at most this many moves is proven.
    pub mate: Option<u32>,
    /// Search until stopped, even after a proof.
    pub infinite: bool,
    /// Think on the opponent's time until [`Control::ponder_hit`](super::Control::ponder_hit).
    pub ponder: bool,
    /// Consider only these moves; empty means all.
    pub search_moves: Vec<Move>,
}

impl Limits {
    /// Returns a limit of this many visits at the root.
    pub fn of_nodes(nodes: u64) -> Limits {
        Limits {
            nodes: Some(nodes),
            ..Limits::default()
        }
    }
}
