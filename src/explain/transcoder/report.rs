//! The features that are active in a position, and their effects.

use super::effects::{Effect, ablate};
use super::{Strongest, ThemeFeature, Transcoder};
use crate::chess::Game;
use crate::explain::ExplainError;
use crate::explain::evaluator::{Evaluator, floats};
use crate::network::Network;
use serde::Serialize;
use shakmaty::Move;
use std::collections::BTreeSet;
use tch::Kind;

/// Number of features to report because of their strength.
const STRONGEST: usize = 12;
/// Number of features to report because of the largest positive effects on a move or on the value.
/// The same number is reported because of the largest negative effects.
const EACH_WAY: usize = 6;

/// A transcoder's description of a position.
#[derive(Clone, Debug, Serialize)]
pub struct TranscoderReport {
    /// The layer, numbered from 1.
    pub layer: usize,
    /// The number of features.
    pub features: usize,
    /// The maximum number of features that are active on a square.
    pub top_k: usize,
    /// Fraction of the variance of the block's output that the transcoder explains, over held-out
    /// positions.
    pub explained_variance: f64,
    /// Fraction of the features that are never active in the held-out positions.
    pub dead: f64,
    /// The number of features that are active in the position.
    pub present: usize,
    /// The number of strongest features that were ablated, which is smaller for large networks.
    pub ablated: usize,
    /// The strongest features in the position, and those with the largest effects for or against a
    /// move or the value. The strongest feature comes first.
    pub active: Vec<ActiveFeature>,
}

/// A feature that is active in a position.
#[derive(Clone, Debug, Serialize)]
pub struct ActiveFeature {
    /// The feature's number, starting from 0.
    pub feature: usize,
    /// The feature's contribution to the block's output: the sum of the feature's activations over
    /// the squares, multiplied by the norm of the vector that the feature writes.
    pub strength: f32,
    /// The feature's activation on each square of the board.
    pub squares: Vec<f32>,
    /// The feature's effect on each of the explanation's moves: the natural logarithm of the move's
    /// probability, minus that logarithm without the feature. A positive effect favours the move.
    pub moves: Vec<f32>,
    /// The feature's effect on the expected result for the side to move: the expected result, minus
    /// that without the feature.
    pub value: f32,
    /// The positions that activate the feature most.
    pub strongest: Vec<Strongest>,
    /// The themes that the feature predicts.
    pub themes: Vec<ThemeFeature>,
}

impl Transcoder {
    /// Returns the position's most important features, and their effects on these moves.
    ///
    /// # Errors
    /// [`ExplainError`] if the network has no such layer, or a move is illegal.
    pub fn report(
        &self,
        network: &Network,
        game: &Game,
        moves: &[Move],
    ) -> Result<TranscoderReport, ExplainError> {
        let _guard = tch::no_grad_guard();
        let evaluator = Evaluator::new(network)?;
        let active = self.activations(&evaluator, std::slice::from_ref(game))?;
        let active = active.get(0);
        let lengths = self.decoder.square();
        let lengths = lengths
            .sum_dim_intlist([1i64].as_slice(), false, None::<Kind>)
            .sqrt();
        let sums = active.sum_dim_intlist([0i64].as_slice(), false, None::<Kind>);
        let strengths = floats(&(sums * lengths));
        let by_square = floats(&active);
        let features = self.about.features;
        let seen = evaluator.seen(game);
        let mut order: Vec<usize> = (0..features).filter(|&it| strengths[it] > 0.0).collect();
        order.sort_by(|&a, &b| strengths[b].total_cmp(&strengths[a]));
        let present = order.len();
        order.truncate(evaluator.affordable().max(STRONGEST));
        let effects = ablate(self, &evaluator, game, &active, &order, moves)?;
        let reported = reported(&effects).into_iter().map(|place| {
            let feature = order[place];
            let predicts = self.about.themes.iter();
            ActiveFeature {
                feature,
                strength: strengths[feature],
                squares: seen
                    .iter()
                    .map(|&square| by_square[features * square + feature])
                    .collect(),
                moves: effects[place].moves.clone(),
                value: effects[place].value,
                strongest: self.about.strongest[feature].clone(),
                themes: predicts
                    .filter(|it| it.feature == feature)
                    .cloned()
                    .collect(),
            }
        });
        Ok(TranscoderReport {
            layer: self.about.layer,
            features,
            top_k: self.about.top_k,
            explained_variance: self.about.explained_variance,
            dead: self.about.dead,
            present,
            ablated: order.len(),
            active: reported.collect(),
        })
    }
}

/// Selects the features to report. `effects` and the selected indices are in the order of strength.
fn reported(effects: &[Effect]) -> BTreeSet<usize> {
    let mut found: BTreeSet<usize> = (0..effects.len().min(STRONGEST)).collect();
    let moves = effects.first().map_or(0, |effect| effect.moves.len());
    for target in 0..=moves {
        let of = |place: usize| {
            effects[place]
                .moves
                .get(target)
                .copied()
                .unwrap_or(effects[place].value)
        };
        let mut order: Vec<usize> = (0..effects.len()).collect();
        order.sort_by(|&a, &b| of(b).total_cmp(&of(a)));
        let against = order.len().saturating_sub(EACH_WAY);
        found.extend(order.iter().take(EACH_WAY).chain(&order[against..]));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_and_the_most_effective_are_reported() {
        let effect = |place: usize| Effect {
            moves: vec![0.0, if place == 50 { -1.0 } else { 0.0 }],
            value: if place == 60 { 1.0 } else { 0.0 },
        };
        let effects: Vec<Effect> = (0..80).map(effect).collect();
        let found = reported(&effects);
        assert!(found.contains(&50) && found.contains(&60));
        assert!((0..STRONGEST).all(|place| found.contains(&place)));
        assert!(found.len() < 40, "{found:?}");
        assert!(reported(&effects[..3]).into_iter().eq(0..3));
        assert!(reported(&[]).is_empty());
    }
}
