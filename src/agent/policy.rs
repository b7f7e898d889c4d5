//! Plays the policy's likeliest move or, at a temperature, a move sampled from the policy.

use super::Options;
use super::immediate::Candidates;
use super::sampling::sample;
use crate::backend::{Backend, Evaluated, Value, evaluate_games, evaluate_people};
use crate::chess::Game;
use crate::play::{AgentError, Choice, Line, MoveStatistics, Report, Score};
use crate::search::generator;
use shakmaty::Move;
use std::cmp::Ordering;

/// Answers with one evaluation per position. If
/// [`Parameters::temperature`](crate::search::Parameters::temperature) is above 0, the move is
/// sampled from the policy at that temperature, within [`Options::top_p`]; the report keeps the
/// order of the priors.
pub(super) fn answer(
    backend: &dyn Backend,
    options: &Options,
    positions: &[Candidates<'_>],
) -> Result<Vec<Choice>, AgentError> {
    let (priors, values) = priors(backend, positions)?;
    let choices = positions.iter().zip(priors).zip(values);
    Ok(choices
        .map(|((position, priors), value)| {
            let mut choice = lay_out(value, priors);
            choose(&mut choice, options, position.game);
            choice
        })
        .collect())
}

/// Samples the choice from the priors if the temperature is above 0.
pub(super) fn choose(choice: &mut Choice, options: &Options, game: &Game) {
    if options.search.temperature > 0.0 {
        let random = &mut generator(&options.search, game);
        let priors: Vec<f32> = choice.statistics.iter().map(|of| of.prior).collect();
        let place = sample(&priors, options.search.temperature, options.top_p, random);
        choice.best = place.map(|place| choice.statistics[place].mv);
    }
}

/// Moves with their priors, in generation order.
pub(super) type Priors = Vec<(Move, f32)>;

/// Returns the priors of the candidates and the values of the positions. Priors are normalised over
/// all legal moves, so they sum to less than 1 if only some moves are candidates.
pub(super) fn priors(
    backend: &dyn Backend,
    positions: &[Candidates<'_>],
) -> Result<(Vec<Priors>, Vec<Value>), AgentError> {
    let evaluated = evaluate_games(backend, positions.iter().map(|position| position.game))?;
    Ok(of_all(positions, &evaluated))
}

/// Returns the same with the priors of people's moves.
pub(super) fn priors_of_people(
    backend: &dyn Backend,
    positions: &[Candidates<'_>],
) -> Result<(Vec<Priors>, Vec<Value>), AgentError> {
    let evaluated = evaluate_people(backend, positions.iter().map(|position| position.game))?;
    Ok(of_all(positions, &evaluated))
}

fn of_all(positions: &[Candidates<'_>], evaluated: &[Evaluated]) -> (Vec<Priors>, Vec<Value>) {
    let evaluated = positions.iter().zip(evaluated);
    evaluated
        .map(|(it, evaluated)| of_candidates(it, evaluated))
        .unzip()
}

/// Returns the priors of a position's candidates, and its value.
pub(super) fn of_candidates(position: &Candidates<'_>, evaluated: &Evaluated) -> (Priors, Value) {
    let candidates = evaluated.priors();
    let candidates = candidates.filter(|(mv, _)| position.moves.contains(mv));
    (candidates.collect(), evaluated.value)
}

/// Ranks the moves by prior and chooses the likeliest. Only that move is reported as a line, with
/// the position's value, because no move has been evaluated.
pub(super) fn lay_out(value: Value, priors: Priors) -> Choice {
    let mut statistics: Vec<_> = priors
        .into_iter()
        .map(|(mv, prior)| MoveStatistics {
            mv,
            visits: 0,
            prior,
            q: value.q,
            wdl: value.wdl(),
            moves_left: None,
            score: Score::Expected(value.q),
        })
        .collect();
    statistics.sort_by(|a, b| b.prior.partial_cmp(&a.prior).unwrap_or(Ordering::Equal));
    let lines = statistics.iter().take(1).map(line);
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

/// Returns a line that consists only of this move.
pub(super) fn line(of: &MoveStatistics) -> Line {
    Line {
        score: Score::Expected(of.q),
        wdl: of.wdl,
        moves_left: None,
        moves: vec![of.mv],
    }
}
