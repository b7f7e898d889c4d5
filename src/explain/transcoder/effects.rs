//! Ablates a position's features to measure their effects on its moves and its value.
//!
//! The contribution of a feature on a square is its activation times the vector that it writes. The
//! ablation subtracts the contributions of one feature from the block's output, and the network
//! continues with the result. The measurement is exact. The part of the output that the transcoder
//! does not explain is left unchanged.

use super::{Transcoder, block_name};
use crate::chess::Game;
use crate::explain::ExplainError;
use crate::explain::evaluator::{BATCH, Evaluated, Evaluator};
use crate::network::{Addition, Positions, Tap};
use shakmaty::{Move, Position};
use tch::{Kind, Tensor};

/// The effect of one feature.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    /// The effect on the natural logarithm of each move's probability.
    pub moves: Vec<f32>,
    /// The effect on the expected result for the side to move.
    pub value: f32,
}

/// Ablates each of `features` in the game's position, and measures the effects on these moves.
/// `active` are the activations of all features, [64, all features].
pub(super) fn ablate(
    transcoder: &Transcoder,
    evaluator: &Evaluator,
    game: &Game,
    active: &Tensor,
    features: &[usize],
    moves: &[Move],
) -> Result<Vec<Effect>, ExplainError> {
    let legal = game.position().legal_moves();
    let places: Option<Vec<usize>> = moves
        .iter()
        .map(|mv| legal.iter().position(|it| it == mv))
        .collect();
    let places = places.ok_or(ExplainError::Illegal)?;
    let nothing = Tensor::zeros([64, 1], (Kind::Float, active.device()));
    let mut whole: Option<Evaluated> = None;
    let mut effects = Vec::with_capacity(features.len());
    // In each batch, the first row is evaluated without an ablation.
    for features in features.chunks(BATCH - 1) {
        let features: Vec<i64> = features.iter().map(|&it| it as i64).collect();
        let features = Tensor::from_slice(&features);
        let written = transcoder.decoder.index_select(0, &features);
        let columns = active.index_select(1, &features);
        let columns = Tensor::cat(&[&nothing, &columns], 1);
        let written = Tensor::cat(&[written.narrow(0, 0, 1), written], 0);
        let contributions = columns.transpose(0, 1).unsqueeze(2) * written.unsqueeze(1);
        let evaluated = evaluate(transcoder, evaluator, game, &-contributions)?;
        let mut evaluated = evaluated.into_iter();
        let first = evaluated.next().expect("the whole network");
        let whole = whole.get_or_insert(first);
        effects.extend(evaluated.map(|without| {
            let logarithm =
                |policy: &[f32], place: usize| policy[place].max(f32::MIN_POSITIVE).ln();
            let effect = |&place: &usize| {
                logarithm(&whole.policy, place) - logarithm(&without.policy, place)
            };
            Effect {
                moves: places.iter().map(effect).collect(),
                value: whole.evaluation.q - without.evaluation.q,
            }
        }));
    }
    Ok(effects)
}

/// Evaluates the game's position once for each of the `additions` [N, 64, width] to the block's
/// output. They are in the order of the squares that the network sees.
fn evaluate(
    transcoder: &Transcoder,
    evaluator: &Evaluator,
    game: &Game,
    additions: &Tensor,
) -> Result<Vec<Evaluated>, ExplainError> {
    let count = additions.size()[0];
    let addition = Addition {
        name: block_name(transcoder.about.layer, "output"),
        tensor: additions.shallow_clone(),
    };
    let rows = evaluator.rows(std::slice::from_ref(game));
    let rows = rows.expand([count, -1], false);
    let weights = &evaluator.network.weights;
    let outputs = evaluator.forward(weights, Positions::Rows(&rows), Tap::adding(&addition));
    evaluator.read(&outputs, &vec![evaluator.indices(game); count as usize])
}
