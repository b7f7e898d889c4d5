//! The move that the policy likes best, or at a temperature one sampled from it.

use super::immediate::Candidates;
use crate::nn::{Backend, Batch, Evaluations, Value, softmax};
use crate::play::{AgentError, Choice, Line, MoveStatistics, Report, Score};
use crate::search::{Parameters, generator};
use rand::Rng;
use shakmaty::{Move, Position};
use std::cmp::Ordering;

/// One evaluation a position. Above 0, [`Parameters::temperature`] samples the move
/// from the policy at that temperature; the report keeps the order of the priors.
pub(super) fn answer(
    backend: &dyn Backend,
    parameters: &Parameters,
    positions: &[Candidates<'_>],
) -> Result<Vec<Choice>, AgentError> {
    let (priors, values) = priors(backend, positions)?;
    let lines = parameters.multi_pv.max(1);
    let choices = positions.iter().zip(priors).zip(values);
    Ok(choices
        .map(|((position, priors), value)| {
            let mut choice = choose(value, lines, priors);
            if parameters.temperature > 0.0 {
                let random = &mut generator(parameters, position.game);
                choice.best = sample(&choice.statistics, parameters.temperature, random);
            }
            choice
        })
        .collect())
}

/// Moves with their priors, in the order of generation.
pub(super) type Priors = Vec<(Move, f32)>;

/// The priors of the candidates, and the values of the positions. Priors are those
/// of all legal moves: they add up to less than 1 where only some are candidates.
pub(super) fn priors(
    backend: &dyn Backend,
    positions: &[Candidates<'_>],
) -> Result<(Vec<Priors>, Vec<Value>), AgentError> {
    let format = backend.properties().input;
    let mut batch = Batch::default();
    let legal: Vec<_> = positions
        .iter()
        .map(|position| position.game.position().legal_moves())
        .collect();
    for (position, legal) in positions.iter().zip(&legal) {
        batch.push(position.game, legal, format);
    }
    let mut evaluations = Evaluations::default();
    backend.evaluate(&batch, &mut evaluations)?;
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
    Ok((priors.collect(), values.collect()))
}

/// The choice among moves with their priors.
fn choose(value: Value, lines: usize, priors: Priors) -> Choice {
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

/// A move sampled by its prior at a temperature; `moves` begin with the likeliest.
fn sample(moves: &[MoveStatistics], temperature: f32, random: &mut impl Rng) -> Option<Move> {
    let likeliest = moves.first()?;
    // Relative to the likeliest, so that no temperature makes all of them 0.
    let weight = |found: &MoveStatistics| {
        let ratio = f64::from(found.prior) / f64::from(likeliest.prior).max(f64::MIN_POSITIVE);
        ratio.powf(1.0 / f64::from(temperature))
    };
    let mut left = random.random::<f64>() * moves.iter().map(weight).sum::<f64>();
    let sampled = moves.iter().find(|found| {
        left -= weight(found);
        left < 0.0
    });
    Some(sampled.unwrap_or(likeliest).mv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn moves_are_sampled_by_prior_and_temperature() {
        let game = Game::default();
        let legal = game.position().legal_moves();
        let priors = [0.6, 0.3, 0.1];
        let moves: Priors = legal.iter().copied().zip(priors).collect();
        let statistics = choose(Value::default(), 1, moves).statistics;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut shares = |temperature| {
            let mut counts = [0.0; 3];
            for _ in 0..4000 {
                let mv = sample(&statistics, temperature, &mut random).unwrap();
                counts[legal.iter().position(|&legal| legal == mv).unwrap()] += 1.0 / 4000.0;
            }
            counts
        };
        let near = |found: [f64; 3], expected: [f64; 3]| {
            let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
            assert!(
                off.fold(0.0, f64::max) < 0.03,
                "{found:?}, not {expected:?}"
            );
        };
        near(shares(1.0), [0.6, 0.3, 0.1]);
        near(shares(0.5), [0.36 / 0.46, 0.09 / 0.46, 0.01 / 0.46]);
        near(shares(1e-3), [1.0, 0.0, 0.0]);
        near(shares(1e6), [1.0 / 3.0; 3]);
    }
}
