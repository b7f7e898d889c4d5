//! The tuned lens, which reads the network's outputs off the tokens after each layer.
//!
//! The heads were trained only on the last layer, so what they read off earlier layers directly
//! (nostalgebraist's logit lens, 2020) says nothing in our networks. A tuned lens (Belrose et al.,
//! "Eliciting Latent Predictions from Transformers with the Tuned Lens", 2023) first maps the tokens
//! of a layer to those of the last one by an affine map that was fitted to the network's outputs.

mod file;
mod fit;

pub use file::{LensAbout, LensDistance, LensError};
pub use fit::fit_lens;

use super::ExplainError;
use super::evaluator::{Evaluator, Inside};
use super::fingerprint::fingerprint;
use crate::chess::Game;
use crate::network::{Network, Outputs, Pass, Positions};
use serde::Serialize;
use shakmaty::{Move, Position};
use std::collections::BTreeMap;
use tch::Tensor;

/// The lens of the network that nets/default named at build time, if it existed.
const SHIPPED: Option<&[u8]> = include!(concat!(env!("OUT_DIR"), "/embedded_lens.rs"));

/// A tuned lens of a network.
#[derive(Debug)]
pub struct Lens {
    /// The lens's source and quality.
    pub about: LensAbout,
    /// The maps of the tokens after the embedding and after each layer except the last.
    maps: Vec<AffineMap>,
}

/// A map of tokens to tokens.
#[derive(Debug)]
struct AffineMap {
    /// [width, width].
    matrix: Tensor,
    /// `[width]`.
    bias: Tensor,
}

impl AffineMap {
    /// Maps tokens [B, 64, width].
    fn apply(&self, tokens: &Tensor) -> Tensor {
        tokens.matmul(&self.matrix) + &self.bias
    }
}

/// The outputs that a lens reads off after each layer.
#[derive(Clone, Debug, Serialize)]
pub struct LensReport {
    /// The number of positions to which the lens was fitted.
    pub positions: usize,
    /// The number of positions from other games, over which its distances were measured.
    pub held_out: usize,
    /// The layers, in order.
    pub layers: Vec<LensLayer>,
}

/// The outputs that a lens reads off after one layer.
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
    /// The mean distance from the network's outputs over the held-out positions. `None` after the
    /// last layer, whose outputs are those of the network.
    pub usual: Option<LensDistance>,
}

impl Lens {
    /// Reads the network's outputs off after each layer in the game's position. The policies are in
    /// the order of `moves`.
    ///
    /// # Errors
    /// [`ExplainError`] if the network cannot play, or a move is illegal.
    pub fn report(
        &self,
        network: &Network,
        game: &Game,
        moves: &[Move],
    ) -> Result<LensReport, ExplainError> {
        let evaluator = Evaluator::new(network)?;
        let inside = evaluator.look_inside(game)?;
        let legal = game.position().legal_moves();
        let places = moves
            .iter()
            .map(|mv| legal.iter().position(|it| it == mv))
            .collect::<Option<Vec<usize>>>();
        let order = places.ok_or(ExplainError::Illegal)?;
        self.read(&evaluator, &inside, &order)
    }

    /// Returns whether the lens has maps for tokens [B, 64, width] after these layers.
    fn fits(&self, layers: &[&Tensor]) -> bool {
        let width = self.maps.first().map(|map| map.bias.size()[0]);
        layers.len() == self.maps.len() + 1
            && layers.iter().all(|it| it.size().last().copied() == width)
    }

    fn read(
        &self,
        evaluator: &Evaluator,
        inside: &Inside,
        order: &[usize],
    ) -> Result<LensReport, ExplainError> {
        let _guard = tch::no_grad_guard();
        let layers = layers(&inside.taps);
        if !self.fits(&layers) {
            let name = evaluator.network.about.name.clone();
            return Err(ExplainError::NoLayers(name));
        }
        let mapped = self.maps.iter().zip(&layers);
        let mut tokens: Vec<Tensor> = mapped.map(|(map, tokens)| map.apply(tokens)).collect();
        tokens.extend(layers.last().map(|it| it.shallow_clone()));
        let rows = inside.row.expand([tokens.len() as i64, -1], false);
        let outputs = heads(evaluator, &rows, &Tensor::cat(&tokens, 0));
        let evaluated = evaluator.read(&outputs, &vec![inside.indices.clone(); tokens.len()])?;
        let last = &inside.evaluated.policy;
        let read = evaluated.into_iter().enumerate().map(|(layer, evaluated)| {
            let pairs = last.iter().zip(&evaluated.policy);
            LensLayer {
                layer,
                q: evaluated.evaluation.q,
                wdl: evaluated.evaluation.wdl,
                policy: order.iter().map(|&place| evaluated.policy[place]).collect(),
                divergence: divergence(pairs),
                usual: self.about.tuned.get(layer).copied(),
            }
        });
        Ok(LensReport {
            positions: self.about.positions,
            held_out: self.about.held_out,
            layers: read.collect(),
        })
    }
}

/// Reads outputs off with the lens that ships with the engine, if it belongs to the network.
/// `order` is the order of the moves.
pub(super) fn shipped(
    evaluator: &Evaluator,
    inside: &Inside,
    order: &[usize],
) -> Result<Option<LensReport>, ExplainError> {
    let lens = SHIPPED.and_then(|bytes| Lens::parse(bytes).ok());
    // The fingerprint of a large network takes seconds, so the sizes are compared first.
    let lens = lens.filter(|lens| {
        lens.fits(&layers(&inside.taps)) && lens.about.weights == fingerprint(evaluator.network)
    });
    let report = lens.map(|lens| lens.read(evaluator, inside, order));
    report.transpose()
}

/// Returns the tokens [B, 64, width] after the embedding and after each layer, or nothing for
/// networks whose layers are unknown.
fn layers(taps: &BTreeMap<String, Tensor>) -> Vec<&Tensor> {
    let layers = ["encoder", "body"].map(|stack| {
        let names = (0..).map(|layer| format!("{stack}.{layer}"));
        names.map_while(|name| taps.get(&name)).collect::<Vec<_>>()
    });
    // If there is a tower below the encoder, its tokens have a different width, so only the encoder
    // is used.
    let layers = layers.into_iter().find(|layers| !layers.is_empty());
    let Some(layers) = layers else {
        return Vec::new();
    };
    taps.get("embedding").into_iter().chain(layers).collect()
}

/// Applies the network's heads to tokens [B, 64, width] of the positions in `rows`.
fn heads(evaluator: &Evaluator, rows: &Tensor, tokens: &Tensor) -> Outputs {
    let Network {
        architecture,
        weights,
        ..
    } = evaluator.network;
    let pass = Pass::new(Positions::Rows(rows), evaluator.wanted());
    architecture.read(weights, tokens, &pass)
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
