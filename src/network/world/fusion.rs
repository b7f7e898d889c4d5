//! Fuses the encoder's 64 tokens into one token for the whole board, and expands it back to 64.

use crate::network::chessformer::layers;
use crate::network::config::world::WorldConfig;
use crate::network::layers::{Linear, Norm};
use crate::network::parameters::{Builder, Dense, Initial, Slot, Weights};
use crate::network::size::Part;
use tch::Tensor;

/// Number of features per square that are fused into the token, and to which the token is expanded.
const FEATURES: i64 = 16;

/// Epsilon of the token's norm.
const EPSILON: f64 = 1e-5;

/// Initial standard deviation of the square embedding.
const PLACE: f64 = 0.1;

/// The layers that fuse 64 tokens into one and expand it again. Like the encoder's parameters, all
/// of their parameters belong to the representation.
#[derive(Debug)]
pub(super) struct Fusion {
    squares: Linear,
    token: Linear,
    norm: Norm,
    features: Linear,
    widen: Linear,
    /// [64, width].
    place: Slot,
    /// A norm of the same kind as the encoder's, because the encoder's heads read its output.
    end: Norm,
}

impl Fusion {
    pub fn build(builder: &mut Builder, config: &WorldConfig) -> Fusion {
        let model = &config.encoder;
        let (width, [_, token]) = (model.width, config.latents());
        let per_square = |input, output| Dense::per_token(input, output);
        let of_squares = 64 * FEATURES;
        let fuse = |builder: &mut Builder| {
            let squares = builder.linear("squares", per_square(width, FEATURES), Part::Other);
            let dense = Dense::per_board(of_squares, token).without_bias();
            let joint = builder.linear("token", dense, Part::Other);
            (squares, joint, builder.norm("norm", token, true, EPSILON))
        };
        let (squares, joint, norm) = builder.scope("fuse", fuse);
        builder.scope("expand", |builder| Fusion {
            squares,
            token: joint,
            norm,
            features: builder.linear("features", Dense::per_board(token, of_squares), Part::Other),
            widen: builder.linear(
                "widen",
                per_square(FEATURES, width).without_bias(),
                Part::Other,
            ),
            place: builder.add("place", &[64, width], Initial::Normal(PLACE)),
            end: layers::norm(builder, model),
        })
    }

    /// Fuses tokens [B, 64, width] into one token, [B, 1, token width].
    pub fn fuse(&self, weights: &Weights, tokens: &Tensor) -> Tensor {
        let squares = self.squares.forward_mish(weights, tokens).flatten(1, 2);
        let token = self.token.forward(weights, &squares);
        self.norm.forward(weights, &token).unsqueeze(1)
    }

    /// Expands a token to the 64 tokens of the board.
    pub fn expand(&self, weights: &Weights, token: &Tensor) -> Tensor {
        let features = self.features.forward_mish(weights, &token.squeeze_dim(1));
        let features = features.unflatten(1, [64, FEATURES]);
        let placed = self.widen.forward(weights, &features) + &weights[self.place];
        self.end.forward(weights, &placed)
    }
}
