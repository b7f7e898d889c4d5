//! The dynamics: steps that apply a move to a latent board.

mod dit;
mod squares;
mod token;

use super::past::Past;
use crate::network::chessformer::Chessformer;
use crate::network::config::world::{WorldConfig, WorldState};
use crate::network::encoder::Board;
use crate::network::parameters::{Builder, Weights};
use dit::Dit;
use squares::Squares;
use tch::{Device, Tensor};
use token::Token;

/// The dynamics, by the form of the latents.
#[derive(Debug)]
pub(super) enum Dynamics {
    Squares(Squares),
    Token(Token),
    Dit(Dit),
}

impl Dynamics {
    pub fn build(
        builder: &mut Builder,
        config: &WorldConfig,
        encoder: &Chessformer,
        device: Device,
    ) -> Dynamics {
        match config.state {
            WorldState::Squares => {
                Dynamics::Squares(Squares::build(builder, config, encoder, device))
            }
            WorldState::Token => Dynamics::Token(Token::build(builder, config, device)),
            WorldState::Dit => Dynamics::Dit(Dit::build(builder, config, device)),
        }
    }

    /// Returns the constant tensors that a network file stores.
    pub fn constants(&self) -> Vec<(&'static str, &Tensor)> {
        match self {
            Dynamics::Squares(squares) => squares.constants().to_vec(),
            Dynamics::Token(token) => token.constants().to_vec(),
            Dynamics::Dit(dit) => dit.constants().to_vec(),
        }
    }

    /// Returns the latents [B, squares, width] after moves, in the view of the side to move after
    /// them. The moves are policy indices i64 `[B]`.
    pub fn step(
        &self,
        weights: &Weights,
        latents: &Tensor,
        moves: &Tensor,
        past: &mut Past,
        board: Board,
    ) -> Tensor {
        match self {
            Dynamics::Squares(squares) => squares.step(weights, latents, moves, past, board),
            Dynamics::Token(token) => token.step(weights, latents, moves, past),
            Dynamics::Dit(dit) => dit.step(weights, latents, moves, past),
        }
    }
}
