//! The move that the policy likes best.

use super::immediate::Question;
use super::{AgentError, Choice, Line, MoveStatistics, Report, Score};
use crate::nn::{Backend, Batch, Evaluations, Value, softmax};
use shakmaty::{Move, Position};
use std::cmp::Ordering;

/// Chooses the moves with the greatest priors: one evaluation a position.
pub(super) fn answer(
    backend: &dyn Backend,
    lines: usize,
    questions: &[Question],
) -> Result<Vec<Choice>, AgentError> {
    let format = backend.properties().input;
    let mut batch = Batch::default();
    let legal: Vec<_> = questions
        .iter()
        .map(|question| question.game.position().legal_moves())
        .collect();
    for (question, legal) in questions.iter().zip(&legal) {
        batch.push(question.game, legal, format);
    }
    let mut evaluations = Evaluations::default();
    backend.evaluate(&batch, &mut evaluations)?;
    let choices = questions.iter().zip(&legal).enumerate();
    Ok(choices
        .map(|(index, (question, legal))| {
            let mut priors = evaluations.logits(index).to_vec();
            softmax(&mut priors, 1.0);
            let priors = legal.iter().copied().zip(priors);
            let allowed = priors.filter(|(mv, _)| question.moves.contains(mv));
            choose(evaluations.value(index), lines, allowed)
        })
        .collect())
}

/// The choice among moves with their priors.
fn choose(value: Value, lines: usize, priors: impl Iterator<Item = (Move, f32)>) -> Choice {
    let mut statistics: Vec<_> = priors
        .map(|(mv, prior)| MoveStatistics {
            mv,
            visits: 0,
            prior,
            q: value.q,
            wdl: value.wdl(),
            moves_left: None,
        })
        .collect();
    statistics.sort_by(|a, b| b.prior.partial_cmp(&a.prior).unwrap_or(Ordering::Equal));
    let best = statistics.iter().take(lines);
    let lines = best.map(|statistics| Line {
        score: Score::Expected(statistics.q),
        wdl: statistics.wdl,
        moves_left: None,
        moves: vec![statistics.mv],
    });
    Choice {
        best: statistics.first().map(|best| best.mv),
        report: Report {
            depth: 1,
            selective_depth: 1,
            nodes: 1,
            new_nodes: 1,
            lines: lines.collect(),
            ..Report::default()
        },
        statistics,
        ..Choice::default()
    }
}
