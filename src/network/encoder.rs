//! The encoder over 64 tokens, which all families with an encoder over squares share. Its layers
//! consist of multi-head attention and a feed-forward block, each normalised after its residual
//! (post-LN).

mod attention;
mod feed_forward;
mod position;

pub(super) use attention::{AttackLogits, Attention, Board, Projection};
pub(super) use feed_forward::FeedForward;
pub(super) use position::{
    DISPLACEMENTS, GAB_EPSILON, Gab, PositionEncoding, displacements, steps,
};

use super::parameters::Weights;
use super::taps::Tap;
use tch::Tensor;

/// One encoder layer.
#[derive(Debug)]
pub(super) struct EncoderLayer {
    pub attention: Attention,
    pub feed_forward: FeedForward,
}

/// Returns weights in which the given head of the given layer adds nothing to the tokens, or `None`
/// if there is no such head.
pub(super) fn without_head(
    layers: &[EncoderLayer],
    weights: &Weights,
    layer: usize,
    head: usize,
) -> Option<Weights> {
    let attention = &layers.get(layer)?.attention;
    let head = i64::try_from(head).ok()?;
    if head >= attention.heads {
        return None;
    }
    let output = attention.output.weight;
    let tensor = weights[output].copy();
    let columns = tensor.narrow(1, head * attention.head_width, attention.head_width);
    let _ = columns.detach().zero_();
    Some(weights.with(output, tensor))
}

/// Passes tokens [B, 64, width] through all layers.
pub(super) fn encode(
    layers: &[EncoderLayer],
    weights: &Weights,
    tokens: Tensor,
    board: Board,
    tap: &Tap,
) -> Tensor {
    let mut x = tokens;
    for (number, layer) in layers.iter().enumerate() {
        x = layer.forward(
            weights,
            &x,
            board,
            &tap.scope(format_args!("encoder.{number}")),
        );
    }
    x
}

impl EncoderLayer {
    /// Applies the layer to tokens [B, 64, width].
    pub fn forward(&self, weights: &Weights, x: &Tensor, board: Board, tap: &Tap) -> Tensor {
        let x = self
            .attention
            .forward(weights, x, board, &tap.scope("attention"));
        let x = self
            .feed_forward
            .forward(weights, &x, &tap.scope("feed_forward"));
        tap.give("", &x);
        x
    }
}
