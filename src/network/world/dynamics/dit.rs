//! Steps with a diffusion transformer (Peebles and Xie 2023) whose layers are conditioned on the
//! move instead of on a noise level. The layers start as the identity.

use crate::network::blocks::{AdaLnZero, LearnedMarks, Mask, Mlp, MoveEmbedding, SelfAttention};
use crate::network::chessformer::layers;
use crate::network::config::world::WorldConfig;
use crate::network::layers::{Linear, Norm};
use crate::network::parameters::{Builder, Initial, Slot, Weights};
use crate::network::world::past::{Past, flipped};
use crate::network::world::past_attention::PastAttention;
use tch::{Device, Tensor};

/// Width of the vector that conditions layers on a move.
const CONDITION: i64 = 128;

/// Initial standard deviation of the square embedding.
const PLACE: f64 = 0.1;

/// Steps on 64 squares. Every square is conditioned on the move, whose origin and destination
/// squares are marked.
#[derive(Debug)]
pub(in crate::network::world) struct Dit {
    marks: LearnedMarks,
    turn: Linear,
    condition: MoveEmbedding,
    blocks: Vec<Block>,
    /// A norm of the same kind as the encoder's, because the encoder's heads read its output.
    norm: Norm,
}

#[derive(Debug)]
struct Block {
    space_norm: AdaLnZero,
    /// [64, width]: the square embedding, for attention over squares.
    place: Slot,
    space: SelfAttention,
    time: PastAttention,
    feed_forward_norm: AdaLnZero,
    feed_forward: Mlp,
}

impl Dit {
    pub fn build(builder: &mut Builder, config: &WorldConfig, device: Device) -> Dit {
        let model = &config.encoder;
        let (width, heads) = (model.width, model.heads);
        let marks = LearnedMarks::build(builder, width, device);
        let turn = builder.identity("turn", width);
        let condition = builder.scope("condition", |builder| {
            MoveEmbedding::build(builder, CONDITION, &marks.parts)
        });
        let norm = |builder: &mut Builder, name: &str| {
            builder.scope(name, |builder| AdaLnZero::build(builder, width, CONDITION))
        };
        let blocks = (0..config.blocks).map(|number| {
            builder.scope(number.to_string(), |builder| Block {
                space_norm: norm(builder, "space_norm"),
                place: builder.add("place", &[64, width], Initial::Normal(PLACE)),
                space: builder.scope("space", |builder| {
                    SelfAttention::build(builder, width, heads, 64, 1.0)
                }),
                time: builder.scope("time", |builder| {
                    PastAttention::build(builder, width, heads, config.context)
                }),
                feed_forward_norm: norm(builder, "feed_forward_norm"),
                feed_forward: builder.scope("feed_forward", |builder| {
                    Mlp::gelu(builder, [width, model.feed_forward], 1.0)
                }),
            })
        });
        let blocks = blocks.collect();
        Dit {
            marks,
            turn,
            condition,
            blocks,
            norm: layers::norm(builder, model),
        }
    }

    /// Returns the constant tensors that a network file stores.
    pub fn constants(&self) -> [(&'static str, &Tensor); 2] {
        self.marks.constants()
    }

    /// Implements [`Dynamics::step`](super::Dynamics::step).
    pub fn step(
        &self,
        weights: &Weights,
        latents: &Tensor,
        moves: &Tensor,
        past: &mut Past,
    ) -> Tensor {
        let shown = self.marks.on(weights, latents, moves);
        let mut x = self.turn.forward(weights, &flipped(&shown));
        let condition = self.condition.forward(weights, moves).silu().unsqueeze(1);
        for (number, block) in self.blocks.iter().enumerate() {
            let (normed, gate) = block.space_norm.forward(weights, &x, &condition);
            let placed = normed + &weights[block.place];
            let seen = block
                .space
                .forward(weights, &placed, None, &Mask::Full, None);
            x = &x + seen * gate;
            x = &x + block.time.forward(weights, &x, past, number);
            let (normed, gate) = block.feed_forward_norm.forward(weights, &x, &condition);
            x = &x + block.feed_forward.forward(weights, &normed) * gate;
        }
        self.norm.forward(weights, &x)
    }
}
