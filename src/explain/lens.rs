//! The layer-wise lens: reads the tokens after each layer with the heads.
//!
//! The heads were trained on the last layer alone (nostalgebraist's logit lens, 2020): their
//! readings of earlier layers are hints, not outputs of the network.

use super::ExplainError;
use super::evaluator::{Evaluator, Inside};
use crate::network::Positions;
use serde::Serialize;
use tch::Tensor;

/// The heads' outputs after one layer.
#[derive(Clone, Debug, Serialize)]
pub struct LensLayer {
    /// 0 is the embedding, then come the layers.
    pub layer: usize,
    /// Expected result of the mover.
    pub q: f32,
    /// Probabilities of win, draw and loss.
    pub wdl: [f32; 3],
    /// The policy, in the order of the explanation's moves.
    pub policy: Vec<f32>,
    /// Kullback–Leibler divergence of the network's policy from this one, in nats.
    pub divergence: f32,
}

/// Reads the outputs after each layer; `order` is that of the moves. Empty for networks with
/// unknown layers.
pub(super) fn read(
    evaluator: &Evaluator,
    inside: &Inside,
    order: &[usize],
) -> Result<Vec<LensLayer>, ExplainError> {
    let _guard = tch::no_grad_guard();
    let layers = ["encoder", "body"].map(|stack| {
        let names = (0..).map(|layer| format!("{stack}.{layer}"));
        let tokens = names.map_while(|name| inside.taps.get(&name));
        tokens.collect::<Vec<_>>()
    });
    // A tower below an encoder has tokens of its own width.
    let Some(layers) = layers.into_iter().find(|layers| !layers.is_empty()) else {
        return Ok(Vec::new());
    };
    let tokens: Vec<&Tensor> = inside
        .taps
        .get("embedding")
        .into_iter()
        .chain(layers)
        .collect();
    let count = tokens.len();
    let rows = inside.row.expand([count as i64, -1], false);
    let outputs = evaluator.network.architecture.read(
        &evaluator.network.weights,
        &Tensor::cat(&tokens, 0),
        Positions::Rows(&rows),
        evaluator.wanted(),
    );
    let evaluated = evaluator.read(&outputs, &vec![inside.indices.clone(); count])?;
    let last = &inside.evaluated.policy;
    let layers = evaluated.into_iter().enumerate().map(|(layer, evaluated)| {
        let pairs = last.iter().zip(&evaluated.policy);
        LensLayer {
            layer,
            q: evaluated.evaluation.q,
            wdl: evaluated.evaluation.wdl,
            policy: order.iter().map(|&place| evaluated.policy[place]).collect(),
            divergence: divergence(pairs),
        }
    });
    Ok(layers.collect())
}

/// Returns the Kullback–Leibler divergence in nats of the first of two policies from the second,
/// by pairs of their probabilities.
pub(super) fn divergence<'a>(pairs: impl Iterator<Item = (&'a f32, &'a f32)>) -> f32 {
    let terms = pairs.filter(|(p, _)| **p > 0.0);
    let sum: f32 = terms
        .map(|(p, q)| p * (p / q.max(f32::MIN_POSITIVE)).ln())
        .sum();
    // Rounding may leave less than nothing.
    sum.max(0.0)
}
