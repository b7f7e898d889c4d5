//! The move after which the network likes the position best.

use super::{
    Agent, AgentError, Choice, Control, Limits, Line, MoveStatistics, Report, Score, candidates,
};
use crate::chess::{Ending, Game};
use crate::nn::{Backend, Batch, Evaluations, Value};
use crate::search::Parameters;
use shakmaty::{Move, Position};
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Instant;

const DRAW: Value = Value {
    q: 0.0,
    d: 1.0,
    moves_left: 0.0,
    error: 0.0,
};

/// Looks one move ahead: evaluates the position after every move in one batch
/// and plays the best, whatever the clock says. What the rules decide is scored
/// by the rules; among equals the first move wins.
pub(super) struct ValueAgent {
    backend: Arc<dyn Backend>,
    multi_pv: usize,
}

/// A move and what the mover gets by it.
struct Candidate {
    mv: Move,
    value: Value,
    mates: bool,
}

impl ValueAgent {
    pub(super) fn new(backend: Arc<dyn Backend>, parameters: &Parameters) -> ValueAgent {
        ValueAgent {
            backend,
            multi_pv: parameters.multi_pv,
        }
    }

    /// The candidates, the best first.
    fn rank(&self, game: &Game, moves: &[Move]) -> Result<Vec<Candidate>, AgentError> {
        let encode = self.backend.properties().reads_input;
        let mut game = game.clone();
        let mut batch = Batch::default();
        let mut ranked = Vec::with_capacity(moves.len());
        let mut unknown = Vec::with_capacity(moves.len());
        for &mv in moves {
            game.play(mv);
            let value = known_value(&game);
            if value.is_none() {
                batch.push(&game, &game.position().legal_moves(), encode);
                unknown.push((ranked.len(), can_be_repeated(&mut game)));
            }
            ranked.push(Candidate {
                mv,
                value: value.unwrap_or_default(),
                mates: value.is_some_and(|value| value.q > 0.0),
            });
            game.undo();
        }
        if !batch.is_empty() {
            let mut evaluations = Evaluations::default();
            self.backend.evaluate(&batch, &mut evaluations)?;
            for (index, &(candidate, drawable)) in unknown.iter().enumerate() {
                let theirs = evaluations.value(index);
                ranked[candidate].value = if drawable && theirs.q < 0.0 {
                    DRAW
                } else {
                    Value {
                        q: -theirs.q,
                        moves_left: theirs.moves_left + 1.0,
                        ..theirs
                    }
                };
            }
        }
        // A stable sort: among equals the order of generation stays.
        ranked.sort_by(|a, b| {
            let (a, b) = ((a.mates, a.value.q), (b.mates, b.value.q));
            b.partial_cmp(&a).unwrap_or(Ordering::Equal)
        });
        Ok(ranked)
    }

    fn line(&self, candidate: &Candidate) -> Line {
        Line {
            score: if candidate.mates {
                Score::Mate(1)
            } else {
                Score::Expected(candidate.value.q)
            },
            wdl: candidate.value.wdl(),
            moves_left: self
                .backend
                .properties()
                .has_moves_left
                .then_some(candidate.value.moves_left),
            moves: vec![candidate.mv],
        }
    }
}

/// What the rules say the move just played is worth to the side that played it.
///
/// A position that has stood on the board before counts as a draw: whoever can
/// bring it about twice can do so a third time.
fn known_value(game: &Game) -> Option<Value> {
    match game.ending() {
        Some(Ending::Checkmate) => Some(Value {
            q: 1.0,
            d: 0.0,
            moves_left: 1.0,
            error: 0.0,
        }),
        Some(_) => Some(DRAW),
        None => (game.current().repetitions > 0).then_some(DRAW),
    }
}

/// Whether the side to move can claim a draw by bringing about a position for
/// the third time.
fn can_be_repeated(game: &mut Game) -> bool {
    if game.rule50() < 3 {
        return false;
    }
    game.position().legal_moves().into_iter().any(|reply| {
        game.play(reply);
        let third = game.current().repetitions >= 2;
        game.undo();
        third
    })
}

impl Agent for ValueAgent {
    fn new_game(&mut self) {}

    fn choose(
        &mut self,
        game: &Game,
        limits: &Limits,
        control: &Control,
        report: &mut dyn FnMut(&Report),
    ) -> Result<Choice, AgentError> {
        let began = Instant::now();
        let mut choice = Choice::default();
        let moves = candidates(game, limits);
        if !moves.is_empty() {
            let ranked = self.rank(game, &moves)?;
            choice.best = ranked.first().map(|best| best.mv);
            choice.statistics = ranked
                .iter()
                .map(|candidate| MoveStatistics {
                    mv: candidate.mv,
                    visits: 1,
                    prior: 0.0,
                    q: candidate.value.q,
                    wdl: candidate.value.wdl(),
                })
                .collect();
            choice.report = Report {
                depth: 1,
                selective_depth: 1,
                nodes: moves.len() as u64,
                new_nodes: moves.len() as u64,
                elapsed: began.elapsed(),
                lines: ranked
                    .iter()
                    .take(self.multi_pv.max(1))
                    .map(|candidate| self.line(candidate))
                    .collect(),
                ..Report::default()
            };
            report(&choice.report);
        }
        control.hold_back(limits);
        Ok(choice)
    }
}
