//! Attention maps by layer and head, with their components.

use super::evaluator::{Inside, floats};
use serde::Serialize;
use tch::Tensor;

/// Number of squares on a board.
pub const SQUARES: usize = 64;

/// The attention maps of a position.
#[derive(Clone, Debug, Serialize)]
pub struct Attention {
    /// The layers, in order.
    pub layers: Vec<AttentionLayer>,
    /// The attack bias of the attention logits, one map per head, which all layers share. If the
    /// network reads attacks, each layer's `bias` includes it.
    pub attacks: Option<Vec<Vec<f32>>>,
}

/// The attention maps of one layer. For each head there is a map of 64 · 64 values, row by row.
/// Rows are the attending squares, and columns are the attended squares.
#[derive(Clone, Debug, Serialize)]
pub struct AttentionLayer {
    /// Logits that depend on content: scaled products of queries and keys.
    pub products: Vec<Vec<f32>>,
    /// Logits that depend on position (GAB, Shaw or a table) and on attacks, if the network has
    /// them.
    pub bias: Option<Vec<Vec<f32>>>,
    /// The attention weights, which are the softmax of the sum of the logits over each row.
    pub weights: Vec<Vec<f32>>,
}

/// Returns the maps of a tapped forward pass, or `None` if the network has no attention.
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
