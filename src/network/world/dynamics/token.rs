//! Steps on one token, with a causal transformer along time.
//!
//! As in STORM (Zhang et al. 2023), the token and the move are first combined into one token, so
//! each step adds one key and one value per block. A single token cannot be flipped to the other
//! side's view. Embeddings of a step's age therefore show the network whose view an earlier step is
//! in.

use crate::network::blocks::{Mlp, MoveEmbedding, move_parts};
use crate::network::config::world::WorldConfig;
use crate::network::layers::{Linear, Norm};
use crate::network::parameters::{Builder, Dense, Weights};
use crate::network::size::Part;
use crate::network::world::past::Past;
use crate::network::world::past_attention::PastAttention;
use tch::{Device, Tensor};

/// Epsilon of the norms.
const EPSILON: f64 = 1e-5;

/// Width of the hidden layer, as a multiple of the token's width.
const HIDDEN: i64 = 2;

/// The initial scale of feed-forward outputs.
const GAIN: f64 = 0.1;

/// Steps on one token.
#[derive(Debug)]
pub(in crate::network::world) struct Token {
    parts: Tensor,
    moves: MoveEmbedding,
    /// Converts the token to the other side's view.
    turn: Linear,
    blocks: Vec<Block>,
    norm: Norm,
}

#[derive(Debug)]
struct Block {
    time: PastAttention,
    norm: Norm,
    feed_forward: Mlp,
}

impl Token {
    pub fn build(builder: &mut Builder, config: &WorldConfig, device: Device) -> Token {
        let [_, width] = config.latents();
        let parts = move_parts(device);
        let moves = builder.scope("move", |builder| {
            MoveEmbedding::build(builder, width, &parts)
        });
        let dense = Dense::per_board(width, width).without_bias();
        let turn = builder.linear("turn", dense, Part::Other);
        let blocks = (0..config.blocks).map(|number| {
            builder.scope(number.to_string(), |builder| Block {
                time: builder.scope("time", |builder| {
                    PastAttention::build(builder, width, config.encoder.heads, config.context)
                }),
                norm: builder.norm("norm", width, true, EPSILON),
                feed_forward: builder.scope("feed_forward", |builder| {
                    Mlp::gelu(builder, [width, HIDDEN * width], GAIN)
                }),
            })
        });
        let blocks = blocks.collect();
        Token {
            parts,
            moves,
            turn,
            blocks,
            norm: builder.norm("norm", width, true, EPSILON),
        }
    }

    /// Returns the constant tensors that a network file stores.
    pub fn constants(&self) -> [(&'static str, &Tensor); 1] {
        [("move_parts", &self.parts)]
    }

    /// Implements [`Dynamics::step`](super::Dynamics::step).
    pub fn step(
        &self,
        weights: &Weights,
        latents: &Tensor,
        moves: &Tensor,
        past: &mut Past,
    ) -> Tensor {
        let moves = self.moves.forward(weights, moves).unsqueeze(1);
        let mut x = self.turn.forward(weights, latents) + moves;
        for (number, block) in self.blocks.iter().enumerate() {
            x = &x + block.time.forward(weights, &x, past, number);
            let normed = block.norm.forward(weights, &x);
            x = &x + block.feed_forward.forward(weights, &normed);
        }
        self.norm.forward(weights, &x)
    }
}
