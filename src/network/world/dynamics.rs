//! A step in imagination: what a move makes of a latent board.

use super::config::WorldConfig;
use super::flipped;
use super::past::Past;
use super::played::MoveShown;
use super::time::TimeAttention;
use crate::network::chessformer::Chessformer;
use crate::network::chessformer::layers::{self, Gains};
use crate::network::encoder::{Board, EncoderLayer};
use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Initial, Weights};
use crate::network::taps::Tap;
use tch::{Device, Tensor};

/// The dynamics.
#[derive(Debug)]
pub(super) struct Dynamics {
    shown: MoveShown,
    /// What was ours is theirs: at the start it changes nothing.
    turn: Linear,
    blocks: Vec<Block>,
}

/// A layer of the encoder's kind with attention over time in its middle.
#[derive(Debug)]
struct Block {
    space: EncoderLayer,
    time: TimeAttention,
}

impl Dynamics {
    pub fn build(
        builder: &mut Builder,
        config: &WorldConfig,
        encoder: &Chessformer,
        device: Device,
    ) -> Dynamics {
        let model = &config.encoder;
        let (width, heads) = (model.width, model.heads);
        let gains = Gains::of(config.blocks);
        let shown = MoveShown::build(builder, width, device);
        let identity = (0..width * width).map(|at| f32::from(u8::from(at % (width + 1) == 0)));
        let identity = Initial::Around(identity.collect(), 0.0);
        let turn = builder.scope("turn", |builder| Linear {
            weight: builder.add_matrix("weight", &[width, width], identity, false),
            bias: None,
        });
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
                    TimeAttention::build(builder, width, heads, config.context)
                }),
            })
        });
        Dynamics {
            shown,
            turn,
            blocks: blocks.collect(),
        }
    }

    /// Tensors of a network file besides parameters.
    pub fn buffers(&self) -> [(&'static str, &Tensor); 2] {
        self.shown.buffers()
    }

    /// Latents [B, 64, width] after the moves, entries of the policy i64 `[B]`, as the
    /// side sees them that is to move then.
    pub fn step(
        &self,
        weights: &Weights,
        latents: &Tensor,
        moves: &Tensor,
        past: &mut Past,
        board: Board,
    ) -> Tensor {
        let shown = self.shown.on(weights, latents, moves);
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
