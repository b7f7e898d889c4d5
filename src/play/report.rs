//! An agent's output: scores, lines, reports and the chosen move.

use crate::tablebase::Verdict;
use shakmaty::Move;
use std::time::Duration;

/// The score of a line for the side to move at the root.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Score {
    /// The expected result, W − L, in −1…1.
    Expected(f32),
    /// Mate in this many moves (not plies); negative if the side to move gets mated.
    Mate(i32),
    /// A tablebase win or loss for the side to move, without a known mate.
    Tablebase {
        /// Whether the side to move wins.
        won: bool,
    },
}

/// A line of a report: a principal variation and its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The line's score.
    pub score: Score,
    /// The probabilities of win, draw and loss for the side to move at the root.
    pub wdl: [f32; 3],
    /// The number of plies to the end of the game, if the network predicts it.
    pub moves_left: Option<f32>,
    /// The moves from the root on; never empty.
    pub moves: Vec<Move>,
}

impl Line {
    /// Replaces the expected result with the tablebase's result.
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

/// The state of a search, as reported in `info` lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The mean depth of the tree's leaves, including those of earlier searches; at least 1.
    pub depth: u32,
    /// The depth of the tree's deepest leaf; at least 1.
    pub selective_depth: u32,
    /// The number of visits at the root.
    pub nodes: u64,
    /// The number of visits added by this search alone, from which nodes per second are computed.
    pub new_nodes: u64,
    /// The time since the search began.
    pub elapsed: Duration,
    /// The share of the memory in use, in 0…1.
    pub memory_use: f32,
    /// The number of positions found in tablebases.
    pub tablebase_hits: u64,
    /// The probability of the first line, in 0…1, if a network imagined it.
    pub likelihood: Option<f32>,
    /// The lines, best first, up to the requested number. Only the first line may begin with a move
    /// that was neither visited nor proven; its score is then the position's own value.
    pub lines: Vec<Line>,
}

impl Report {
    /// Returns the nodes per second of this search alone, or `None` if it added no nodes.
    pub fn nodes_per_second(&self) -> Option<u64> {
        let milliseconds = self.elapsed.as_millis().max(1);
        let rate = 1000 * u128::from(self.new_nodes) / milliseconds;
        (self.new_nodes > 0).then_some(rate as u64)
    }
}

/// Statistics of a root move.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveStatistics {
    /// The move.
    pub mv: Move,
    /// The number of visits that it received.
    pub visits: u64,
    /// The move's prior probability from the policy, in 0…1.
    pub prior: f32,
    /// The expected result for the side to move at the root, in −1…1. If the move has no visits,
    /// this is the search's estimate.
    pub q: f32,
    /// The probabilities of win, draw and loss.
    pub wdl: [f32; 3],
    /// The number of plies to the end of the game, including this move, if the network predicts it.
    pub moves_left: Option<f32>,
    /// The proven score of the move, or otherwise `q`.
    pub score: Score,
}

impl MoveStatistics {
    /// Returns whether the move has been visited or proven.
    pub fn is_known(&self) -> bool {
        self.visits > 0 || !matches!(self.score, Score::Expected(_))
    }

    /// Returns whether the move is proven to lose.
    pub fn is_lost(&self) -> bool {
        match self.score {
            Score::Mate(moves) => moves <= 0,
            Score::Tablebase { won } => !won,
            Score::Expected(_) => false,
        }
    }
}

/// An agent's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// The move; `None` only if there is no legal move.
    pub best: Option<Move>,
    /// The expected reply.
    pub ponder: Option<Move>,
    /// The last report, on which the choice is based.
    pub report: Report,
    /// All root moves, best first; for the agent `value`, all moves that it evaluated.
    pub statistics: Vec<MoveStatistics>,
    /// A note to the user about the choice.
    pub note: Option<String>,
}
