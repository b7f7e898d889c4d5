//! The layer-wise lens, which applies the heads to the tokens after each layer.
//!
//! The heads were trained only on the last layer (nostalgebraist's logit lens, 2020), so their
//! outputs after earlier layers are hints rather than outputs of the network.

use super::ExplainError;
use super::evaluator::{Evaluator, Inside};
use crate::network::{Network, Pass, Positions};
use serde::Serialize;
use tch::Tensor;

/// The heads' outputs after one layer.
#[derive(Clone, Debug, Serialize)]
pub struct LensLayer {
    /// The layer's number, where 0 is the embedding.
    pub layer: usize,
    /// The expected result for the side to move.
    pub q: f32,
    /// The probabilities of win, draw and loss.
    pub wdl: [f32; 3],
    /// The probabilities of the moves, in the order of the explanation's moves.
    pub policy: Vec<f32>,
    /// Kullback–Leibler divergence of the network's policy from the policy after this layer, in
    /// nats.
    pub divergence: f32,
}

/// Applies the heads after each layer. `order` is the order of the moves. The result is empty for
/// networks whose layers are unknown.
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
    // If there is a tower below the encoder, its tokens have a different width, so only the encoder
    // is used.
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
    let Network {
        architecture,
        weights,
        ..
    } = &evaluator.network;
    let pass = Pass::new(Positions::Rows(&rows), evaluator.wanted());
    let outputs = architecture.read(weights, &Tensor::cat(&tokens, 0), &pass);
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

/// Returns the Kullback–Leibler divergence, in nats, of the first policy from the second. `pairs`
/// are the two policies' probabilities of each move.
pub(super) fn divergence<'a>(pairs: impl Iterator<Item = (&'a f32, &'a f32)>) -> f32 {
    let terms = pairs.filter(|(p, _)| **p > 0.0);
    let sum: f32 = terms
        .map(|(p, q)| p * (p / q.max(f32::MIN_POSITIVE)).ln())
        .sum();
    // Rounding may make the sum slightly negative.
    sum.max(0.0)
}
