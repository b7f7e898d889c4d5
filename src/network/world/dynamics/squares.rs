//! Steps with layers like the encoder's.

use crate::network::blocks::LearnedMarks;
use crate::network::chessformer::Chessformer;
use crate::network::chessformer::layers::{self, Gains};
use crate::network::config::world::WorldConfig;
use crate::network::encoder::{Board, EncoderLayer};
use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Weights};
use crate::network::taps::Tap;
use crate::network::world::past::{Past, flipped};
use crate::network::world::past_attention::PastAttention;
use tch::{Device, Tensor};

/// Steps on 64 squares, on which the move is marked.
#[derive(Debug)]
pub(in crate::network::world) struct Squares {
    marks: LearnedMarks,
    turn: Linear,
    blocks: Vec<Block>,
}

/// A layer like the encoder's, with attention over time between its two blocks.
#[derive(Debug)]
struct Block {
    space: EncoderLayer,
    time: PastAttention,
}

impl Squares {
    pub fn build(
        builder: &mut Builder,
        config: &WorldConfig,
        encoder: &Chessformer,
        device: Device,
    ) -> Squares {
        let model = &config.encoder;
        let (width, heads) = (model.width, model.heads);
        let gains = Gains::of(config.blocks);
        let marks = LearnedMarks::build(builder, width, device);
        let turn = builder.identity("turn", width);
        let blocks = (0..config.blocks).map(|number| {
            builder.scope(number.to_string(), |builder| Block {
                space: EncoderLayer {
                    attention: builder.scope("attention", |builder| {
                        let generator = encoder.generator();
                        layers::attention(builder, model, gains, number, generator)
                    }),
                    feed_forward: builder.scope("feed_forward", |builder| {
                        layers::feed_forward(builder, model, model.feed_forward, gains)
                    }),
                },
                time: builder.scope("time", |builder| {
                    PastAttention::build(builder, width, heads, config.context)
                }),
            })
        });
        Squares {
            marks,
            turn,
            blocks: blocks.collect(),
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
        board: Board,
    ) -> Tensor {
        let shown = self.marks.on(weights, latents, moves);
        let mut x = self.turn.forward(weights, &flipped(&shown));
        let tap = Tap::default();
        for (number, block) in self.blocks.iter().enumerate() {
            x = block.space.attention.forward(weights, &x, board, &tap);
            x = &x + block.time.forward(weights, &x, past, number);
            x = block.space.feed_forward.forward(weights, &x, &tap);
        }
        x
    }
}
