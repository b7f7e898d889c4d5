//! The move that the policy likes best, or at a temperature one sampled from it.

use super::Options;
use super::immediate::Candidates;
use super::sampling::sample;
use crate::chess::Game;
use crate::nn::{Backend, BackendError, Batch, Evaluations, Value, softmax};
use crate::play::{AgentError, Choice, Line, MoveStatistics, Report, Score};
use crate::search::generator;
use shakmaty::{Move, Position};
use std::cmp::Ordering;

/// One evaluation a position. Above 0, [`Parameters::temperature`](crate::search::Parameters::temperature) samples the move
/// from the policy at that temperature, out of [`Options::top_p`]; the report keeps
/// the order of the priors.
pub(super) fn answer(
    backend: &dyn Backend,
    options: &Options,
    positions: &[Candidates<'_>],
) -> Result<Vec<Choice>, AgentError> {
    let (priors, values) = priors(backend, positions)?;
    let lines = options.search.multi_pv;
    let choices = positions.iter().zip(priors).zip(values);
    Ok(choices
        .map(|((position, priors), value)| {
            let mut choice = lay_out(value, lines, priors);
            choose(&mut choice, options, position.game);
            choice
        })
        .collect())
}

/// Samples the choice from the priors, if options say so.
pub(super) fn choose(choice: &mut Choice, options: &Options, game: &Game) {
    if options.search.temperature > 0.0 {
        let random = &mut generator(&options.search, game);
        let priors: Vec<f32> = choice.statistics.iter().map(|of| of.prior).collect();
        let place = sample(&priors, options.search.temperature, options.top_p, random);
        choice.best = place.map(|place| choice.statistics[place].mv);
    }
}

/// Moves with their priors, in the order of generation.
pub(super) type Priors = Vec<(Move, f32)>;

/// The priors of the candidates, and the values of the positions. Priors are those
/// of all legal moves: they add up to less than 1 where only some are candidates.
pub(super) fn priors(
    backend: &dyn Backend,
    positions: &[Candidates<'_>],
) -> Result<(Vec<Priors>, Vec<Value>), AgentError> {
    let evaluate = |batch: &Batch, out: &mut Evaluations| backend.evaluate(batch, out);
    let (priors, values, ()) = priors_by(backend, positions, evaluate)?;
    Ok((priors, values))
}

/// The same by what fills evaluations, with what it says besides.
pub(super) fn priors_by<T>(
    backend: &dyn Backend,
    positions: &[Candidates<'_>],
    evaluate: impl FnOnce(&Batch, &mut Evaluations) -> Result<T, BackendError>,
) -> Result<(Vec<Priors>, Vec<Value>, T), AgentError> {
    let encoder = &backend.properties().encoder;
    let mut batch = Batch::default();
    let legal: Vec<_> = positions
        .iter()
        .map(|position| position.game.position().legal_moves())
        .collect();
    for (position, legal) in positions.iter().zip(&legal) {
        batch.push(position.game, legal, encoder)?;
    }
    let mut evaluations = Evaluations::default();
    let said = evaluate(&batch, &mut evaluations)?;
    let priors = positions.iter().zip(&legal).enumerate();
    let priors = priors.map(|(index, (position, legal))| {
        let mut priors = evaluations.logits(index).to_vec();
        softmax(&mut priors, 1.0);
        let priors = legal.iter().copied().zip(priors);
        priors
            .filter(|(mv, _)| position.moves.contains(mv))
            .collect()
    });
    let values = (0..positions.len()).map(|index| evaluations.value(index));
    Ok((priors.collect(), values.collect(), said))
}

/// The moves by their priors, with the likeliest as the choice.
pub(super) fn lay_out(value: Value, lines: usize, priors: Priors) -> Choice {
    let mut statistics: Vec<_> = priors
        .into_iter()
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
    let lines = statistics.iter().take(lines.max(1)).map(line);
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

/// The line of a move that was not looked into further.
pub(super) fn line(of: &MoveStatistics) -> Line {
    Line {
        score: Score::Expected(of.q),
        wdl: of.wdl,
        moves_left: None,
        moves: vec![of.mv],
    }
}
