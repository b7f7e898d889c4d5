//! The move after which the network likes the position best.

use super::immediate::Question;
use super::{AgentError, Choice, Line, MoveStatistics, Report, Score};
use crate::chess::{Ending, Game};
use crate::encode::InputFormat;
use crate::nn::{Backend, Batch, Evaluations, Value};
use shakmaty::{Move, Position};
use std::cmp::Ordering;

const DRAW: Value = Value {
    q: 0.0,
    d: 1.0,
    moves_left: 0.0,
    error: 0.0,
};

/// Looks one move ahead: evaluates the position after every move, all in one
/// batch, and chooses the best. What the rules decide is scored by the rules;
/// among equals the first move wins.
pub(super) fn answer(
    backend: &dyn Backend,
    lines: usize,
    questions: &[Question],
) -> Result<Vec<Choice>, AgentError> {
    let properties = backend.properties();
    let mut batch = Batch::default();
    let gathered: Vec<Vec<Candidate>> = questions
        .iter()
        .map(|question| gather(question, &mut batch, properties.input))
        .collect();
    let mut evaluations = Evaluations::default();
    if !batch.is_empty() {
        backend.evaluate(&batch, &mut evaluations)?;
    }
    let has_moves_left = properties.has_moves_left;
    let choices = gathered.into_iter();
    Ok(choices
        .map(|candidates| choose(candidates, &evaluations, lines, has_moves_left))
        .collect())
}

/// A move and where its worth to the mover comes from.
struct Candidate {
    mv: Move,
    outcome: Outcome,
}

enum Outcome {
    /// The rules say what it is worth.
    Known(Value),
    /// The network is asked at this place of the batch; `drawable` if the
    /// opponent can claim a draw.
    Asked { index: usize, drawable: bool },
}

impl Candidate {
    fn mates(&self) -> bool {
        matches!(self.outcome, Outcome::Known(value) if value.q > 0.0)
    }

    fn value(&self, evaluations: &Evaluations) -> Value {
        match self.outcome {
            Outcome::Known(value) => value,
            Outcome::Asked { index, drawable } => {
                let theirs = evaluations.value(index);
                if drawable && theirs.q < 0.0 {
                    return DRAW;
                }
                Value {
                    q: -theirs.q,
                    moves_left: theirs.moves_left + 1.0,
                    ..theirs
                }
            }
        }
    }
}

/// Plays every move in turn and puts the positions that the rules leave open
/// into the batch.
fn gather(question: &Question, batch: &mut Batch, format: Option<InputFormat>) -> Vec<Candidate> {
    let mut game = question.game.clone();
    let mut candidates = Vec::with_capacity(question.moves.len());
    for &mv in &question.moves {
        game.play(mv);
        let outcome = known_value(&game).map_or_else(
            || {
                batch.push(&game, &game.position().legal_moves(), format);
                Outcome::Asked {
                    index: batch.len() - 1,
                    drawable: can_be_repeated(&mut game),
                }
            },
            Outcome::Known,
        );
        candidates.push(Candidate { mv, outcome });
        game.undo();
    }
    candidates
}

/// The choice among the candidates of one position.
fn choose(
    candidates: Vec<Candidate>,
    evaluations: &Evaluations,
    lines: usize,
    has_moves_left: bool,
) -> Choice {
    let mut ranked: Vec<(Move, bool, Value)> = candidates
        .iter()
        .map(|candidate| {
            let value = candidate.value(evaluations);
            (candidate.mv, candidate.mates(), value)
        })
        .collect();
    // A stable sort: among equals the order of generation stays.
    ranked.sort_by(|&(_, a_mates, a), &(_, b_mates, b)| {
        let (a, b) = ((a_mates, a.q), (b_mates, b.q));
        b.partial_cmp(&a).unwrap_or(Ordering::Equal)
    });
    let best = ranked.iter().take(lines);
    let lines = best.map(|&(mv, mates, value)| Line {
        score: if mates {
            Score::Mate(1)
        } else {
            Score::Expected(value.q)
        },
        wdl: value.wdl(),
        moves_left: has_moves_left.then_some(value.moves_left),
        moves: vec![mv],
    });
    let nodes = ranked.len() as u64;
    Choice {
        best: ranked.first().map(|&(mv, ..)| mv),
        report: Report {
            depth: 1,
            selective_depth: 1,
            nodes,
            new_nodes: nodes,
            lines: lines.collect(),
            ..Report::default()
        },
        statistics: ranked
            .iter()
            .map(|&(mv, _, value)| MoveStatistics {
                mv,
                visits: 1,
                prior: 0.0,
                q: value.q,
                wdl: value.wdl(),
                moves_left: None,
            })
            .collect(),
        ..Choice::default()
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
