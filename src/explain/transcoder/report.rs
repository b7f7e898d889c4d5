//! The features that are active in a position.

use super::{Strongest, ThemeFeature, Transcoder};
use crate::chess::Game;
use crate::explain::ExplainError;
use crate::explain::evaluator::{Evaluator, floats};
use crate::network::Network;
use serde::Serialize;
use tch::Kind;

/// Features that are reported of a position.
const FEATURES: usize = 12;

/// A transcoder's view of a position.
#[derive(Clone, Debug, Serialize)]
pub struct TranscoderReport {
    /// The layer, from 1.
    pub layer: usize,
    /// Features.
    pub features: usize,
    /// Most features that are active on a square.
    pub top_k: usize,
    /// Share of the block's output that it explains, over positions held out.
    pub explained_variance: f64,
    /// Share of the features that are never active there.
    pub dead: f64,
    /// The strongest features of the position, the strongest first.
    pub active: Vec<ActiveFeature>,
}

/// A feature in a position.
#[derive(Clone, Debug, Serialize)]
pub struct ActiveFeature {
    /// Its number, from 0.
    pub feature: usize,
    /// What it adds to the block's output: the sum over squares of its activation, times
    /// the length of what it writes.
    pub strength: f32,
    /// Its activation on each square of the board.
    pub squares: Vec<f32>,
    /// The positions that activate it most.
    pub strongest: Vec<Strongest>,
    /// Themes that it predicts.
    pub themes: Vec<ThemeFeature>,
}

impl Transcoder {
    /// The features that are most active in the game's position.
    ///
    /// # Errors
    /// [`ExplainError`] if the network has no such layer.
    pub fn report(&self, network: &Network, game: &Game) -> Result<TranscoderReport, ExplainError> {
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
        order.truncate(FEATURES);
        let active = order.into_iter().map(|feature| ActiveFeature {
            feature,
            strength: strengths[feature],
            squares: seen
                .iter()
                .map(|&square| by_square[features * square + feature])
                .collect(),
            strongest: self.about.strongest[feature].clone(),
            themes: self
                .about
                .themes
                .iter()
                .filter(|it| it.feature == feature)
                .cloned()
                .collect(),
        });
        Ok(TranscoderReport {
            layer: self.about.layer,
            features,
            top_k: self.about.top_k,
            explained_variance: self.about.explained_variance,
            dead: self.about.dead,
            active: active.collect(),
        })
    }
}
