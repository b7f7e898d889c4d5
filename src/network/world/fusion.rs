//! One token for a whole board: what the encoder's 64 are fused into, and what they are
//! read off again.

use super::config::WorldConfig;
use crate::network::chessformer::layers;
use crate::network::layers::{Linear, Norm};
use crate::network::parameters::{Builder, Dense, Initial, Slot, Weights};
use crate::network::size::Part;
use tch::Tensor;

/// Features of each square that the token is made of, and that it is read as.
const FEATURES: i64 = 16;

/// Epsilon of the token's norm.
const EPSILON: f64 = 1e-5;

/// Standard deviation at the start of what tells squares apart.
const PLACE: f64 = 0.1;

/// From tokens to one token and back. Its parameters all count as the encoder's: what
/// represents positions.
#[derive(Debug)]
pub(super) struct Fusion {
    squares: Linear,
    token: Linear,
    norm: Norm,
    features: Linear,
    widen: Linear,
    /// [64, width].
    place: Slot,
    /// Of the encoder's kind, whose heads read what comes out.
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

    /// The token [B, 1, token width] of tokens [B, 64, width].
    pub fn fuse(&self, weights: &Weights, tokens: &Tensor) -> Tensor {
        let squares = self.squares.forward(weights, tokens).mish().flatten(1, 2);
        let token = self.token.forward(weights, &squares);
        self.norm.forward(weights, &token).unsqueeze(1)
    }

    /// The reverse, as far as the token knows.
    pub fn expand(&self, weights: &Weights, token: &Tensor) -> Tensor {
        let features = self.features.forward(weights, &token.squeeze_dim(1)).mish();
        let features = features.unflatten(1, [64, FEATURES]);
        let placed = self.widen.forward(weights, &features) + &weights[self.place];
        self.end.forward(weights, &placed)
    }
}
