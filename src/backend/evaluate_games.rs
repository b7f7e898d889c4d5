//! Evaluates the current positions of games.

use super::{Backend, BackendError, Batch, Evaluations, PredictedFuture, Value};
use crate::chess::Game;
use crate::softmax::softmax;
use shakmaty::{Move, MoveList, Position};

/// The evaluation of a position and its legal moves.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// The legal moves, in generation order.
    pub moves: MoveList,
    /// The value, for the side to move.
    pub value: Value,
    /// The logit of each move.
    pub logits: Vec<f32>,
}

impl Evaluated {
    /// Returns the probability of each move at this temperature.
    pub fn policy(&self, temperature: f32) -> Vec<f32> {
        let mut policy = self.logits.clone();
        softmax(&mut policy, temperature);
        policy
    }

    /// Returns the moves with their probabilities at temperature 1.
    pub fn priors(&self) -> impl Iterator<Item = (Move, f32)> {
        self.moves.iter().copied().zip(self.policy(1.0))
    }
}

/// Evaluates the last position of each game in a single batch.
///
/// # Errors
/// [`BackendError`] if the backend fails or cannot evaluate one of the games.
pub fn evaluate_games<'a>(
    backend: &dyn Backend,
    games: impl IntoIterator<Item = &'a Game>,
) -> Result<Vec<Evaluated>, BackendError> {
    Ok(evaluate(backend, games, None)?.0)
}

/// Evaluates like [`evaluate_games`], in a number of steps, and also returns futures if the network
/// predicts them.
///
/// # Errors
/// As [`evaluate_games`].
pub fn evaluate_with_futures<'a>(
    backend: &dyn Backend,
    games: impl IntoIterator<Item = &'a Game>,
    steps: usize,
) -> Result<(Vec<Evaluated>, Vec<PredictedFuture>), BackendError> {
    evaluate(backend, games, Some(steps))
}

fn evaluate<'a>(
    backend: &dyn Backend,
    games: impl IntoIterator<Item = &'a Game>,
    steps: Option<usize>,
) -> Result<(Vec<Evaluated>, Vec<PredictedFuture>), BackendError> {
    let encoder = &backend.properties().encoder;
    let mut legal = Vec::new();
    let mut batch = Batch {
        steps,
        ..Batch::default()
    };
    for game in games {
        let moves = game.position().legal_moves();
        batch.push(game, &moves, encoder)?;
        legal.push(moves);
    }
    let mut evaluations = Evaluations::default();
    backend.evaluate(&batch, &mut evaluations)?;
    let evaluated = legal.into_iter().enumerate();
    let evaluated = evaluated.map(|(index, moves)| Evaluated {
        moves,
        value: evaluations.value(index),
        logits: evaluations.logits(index).to_vec(),
    });
    Ok((evaluated.collect(), evaluations.futures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Random;

    #[test]
    fn games_are_evaluated_as_in_a_batch_of_their_own() {
        let mut later = Game::default();
        later.play(later.parse_move("e2e4").unwrap());
        let backend = Random::new(3);
        let both = evaluate_games(&backend, [&Game::default(), &later]).unwrap();
        for (evaluated, game) in both.iter().zip([&Game::default(), &later]) {
            let mut batch = Batch::default();
            let moves = game.position().legal_moves();
            batch
                .push(game, &moves, &backend.properties().encoder)
                .unwrap();
            let mut out = Evaluations::default();
            backend.evaluate(&batch, &mut out).unwrap();
            assert_eq!(evaluated.moves, moves);
            assert_eq!(evaluated.value, out.value(0));
            assert_eq!(evaluated.logits, out.logits(0));
            let sum: f32 = evaluated.priors().map(|(_, prior)| prior).sum();
            assert!((sum - 1.0).abs() < 1e-5);
        }
        assert_ne!(both[0].logits, both[1].logits);
        assert!(evaluate_games(&backend, []).unwrap().is_empty());
    }
}
