//! Attention maps by layer and head, whole and in their parts.

use super::evaluator::{Inside, floats};
use serde::Serialize;
use tch::Tensor;

/// Squares of a board.
pub const SQUARES: usize = 64;

/// The attention of a position.
#[derive(Clone, Debug, Serialize)]
pub struct Attention {
    /// The layers, in order.
    pub layers: Vec<AttentionLayer>,
    /// The attack bias of every layer's logits, a map for each head: part of each layer's `bias`,
    /// if the network reads attacks.
    pub attacks: Option<Vec<Vec<f32>>>,
}

/// The attention of one layer: for each head a map of 64 · 64 numbers, row by row. Rows are the
/// attending squares, columns the attended ones.
#[derive(Clone, Debug, Serialize)]
pub struct AttentionLayer {
    /// Logits by content: scaled products of queries and keys.
    pub products: Vec<Vec<f32>>,
    /// Logits by position (GAB, Shaw or a table) and by attacks, if any.
    pub bias: Option<Vec<Vec<f32>>>,
    /// The attention: the softmax of their sum over each row.
    pub weights: Vec<Vec<f32>>,
}

/// Returns the maps of a tapped forward pass; `None` without attention.
pub(super) fn maps(inside: &Inside) -> Option<Attention> {
    let seen: Vec<i64> = inside.seen.iter().map(|&square| square as i64).collect();
    let seen = Tensor::from_slice(&seen);
    let maps = |name: &str| {
        let tensor = inside.taps.get(name)?.get(0);
        let turned = tensor.index_select(1, &seen).index_select(2, &seen);
        let heads = floats(&turned);
        Some(
            heads
                .chunks(SQUARES * SQUARES)
                .map(<[f32]>::to_vec)
                .collect(),
        )
    };
    let layers = (0..).map_while(|layer| {
        let part = |name| maps(&format!("encoder.{layer}.attention.{name}"));
        Some(AttentionLayer {
            products: part("products")?,
            bias: part("bias"),
            weights: part("weights")?,
        })
    });
    let layers: Vec<AttentionLayer> = layers.collect();
    (!layers.is_empty()).then(|| Attention {
        layers,
        attacks: maps("attacks"),
    })
}
