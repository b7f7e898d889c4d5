//! Answers: scores, lines, reports, and the move chosen.

use crate::tablebase::Verdict;
use shakmaty::Move;
use std::time::Duration;

/// The score of a line for the side to move at the root.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Score {
    /// Expected result, W − L, in −1…1.
    Expected(f32),
    /// Mate in N moves (not plies); negative if the side to move is mated.
    Mate(i32),
    /// A tablebase's word that the side to move wins or loses, with no mate in
    /// sight.
    Tablebase {
        /// Whether it wins.
        won: bool,
    },
}

/// A line of a report: a principal variation and its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The line's score.
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

/// The state of a search, as `info` lines tell it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Mean depth of the tree's leaves, those of earlier searches included; 1 at least.
    pub depth: u32,
    /// Depth of the tree's deepest leaf; 1 at least.
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
    /// The probability of the first line, in 0…1, if a network imagined it.
    pub likelihood: Option<f32>,
    /// The lines, the best first: no more than were asked for, and none but the first of a
    /// move that was neither visited nor proven. The first then has the position's own value.
    pub lines: Vec<Line>,
}

impl Report {
    /// Nodes per second of this search alone; `None` where the tree had them all before.
    #[must_use]
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
    /// Visits it received.
    pub visits: u64,
    /// Prior probability from the policy, in 0…1.
    pub prior: f32,
    /// Expected result for the side to move at the root, in −1…1. Of a move without visits
    /// it is a guess of the search's.
    pub q: f32,
    /// Probabilities of win, draw and loss.
    pub wdl: [f32; 3],
    /// Plies to the end of the game, the move's own included, where the network
    /// says so.
    pub moves_left: Option<f32>,
    /// The move's proven value, or `q`.
    pub score: Score,
}

impl MoveStatistics {
    /// Returns whether the move has been visited or proven.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.visits > 0 || !matches!(self.score, Score::Expected(_))
    }

    /// Returns whether the move is proven to lose.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match self.score {
            Score::Mate(moves) => moves <= 0,
            Score::Tablebase { won } => !won,
            Score::Expected(_) => false,
        }
    }
}

/// A player's answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// The move; `None` only where there is no legal move.
    pub best: Option<Move>,
    /// The reply expected.
    pub ponder: Option<Move>,
    /// The last report, on which the move was chosen.
    pub report: Report,
    /// Every root move, the best first; of `value` every move that it looked at.
    pub statistics: Vec<MoveStatistics>,
    /// Remarks on the choice.
    pub note: Option<String>,
}
