//! Heads that predict the rules from the tokens of latent boards: legal moves, the contents of
//! squares, and the end of the game.

use crate::encode::SQUARE_CLASSES;
use crate::network::chessformer::ModelConfig;
use crate::network::chessformer::heads::PolicyHead;
use crate::network::layers::Linear;
use crate::network::parameters::{Builder, Dense, Initial, Slot, Weights};
use crate::network::size::Part;
use tch::{Kind, Tensor};

/// Widths in the end-of-game head: the number of features per square, and of features of the board.
const END_FEATURES: [i64; 2] = [8, 64];

/// Initial bias of the legality logits. It is negative because few of the 1,858 moves are legal.
const LEGALITY_START: f32 = -4.0;

/// Predicted rules for B latent boards.
#[derive(Debug)]
pub struct RuleLogits {
    /// Logits of the probability that the game is over, f32 `[B]`.
    pub end: Tensor,
    /// Logits of the probability that each move is legal, f32 [B, 1858].
    pub legality: Tensor,
    /// Logits of each square's class, f32 [B, 64, 13], as in [`SQUARE_CLASSES`].
    pub board: Tensor,
}

/// The heads that compute [`RuleLogits`].
#[derive(Debug)]
pub(super) struct RuleHeads {
    end_squares: Linear,
    end_hidden: Linear,
    end: Linear,
    moves: Linear,
    legality: PolicyHead,
    /// `[1]`.
    legality_bias: Slot,
    board_hidden: Linear,
    board: Linear,
}

impl RuleHeads {
    pub fn build(builder: &mut Builder, config: &ModelConfig) -> RuleHeads {
        let width = config.width;
        let per_square = |output| Dense::per_token(width, output);
        let other = Part::Other;
        let [features, hidden] = END_FEATURES;
        let end = |builder: &mut Builder| {
            let squares = builder.linear("squares", per_square(features), other);
            let dense = Dense::per_board(64 * features, hidden);
            let of_board = builder.linear("hidden", dense, other);
            let end = builder.linear("end", Dense::per_board(hidden, 1), other);
            (squares, of_board, end)
        };
        let (end_squares, end_hidden, end) = builder.scope("end", end);
        let legality = |builder: &mut Builder| {
            let moves = builder.linear("embedding", per_square(width), other);
            let head = PolicyHead::build(builder, "moves", config, other);
            let start = Initial::Around(vec![LEGALITY_START], 0.0);
            (moves, head, builder.add("bias", &[1], start))
        };
        let (moves, legality, legality_bias) =
            builder.hidden(|builder| builder.scope("legality", legality));
        let board = |builder: &mut Builder| {
            let hidden = builder.linear("hidden", per_square(width), other);
            (
                hidden,
                builder.linear("classes", per_square(SQUARE_CLASSES as i64), other),
            )
        };
        let (board_hidden, board) = builder.scope("board", board);
        RuleHeads {
            end_squares,
            end_hidden,
            end,
            moves,
            legality,
            legality_bias,
            board_hidden,
            board,
        }
    }

    /// Predicts the rules from tokens [B, 64, width]. `places` is the tensor of the policy's gather
    /// indices.
    pub fn forward(&self, weights: &Weights, latents: &Tensor, places: &Tensor) -> RuleLogits {
        let mish = |layer: &Linear, x: &Tensor| layer.forward_mish(weights, x);
        let squares = mish(&self.end_squares, latents).flatten(1, 2);
        let end = self.end.forward(weights, &mish(&self.end_hidden, &squares));
        let moves = mish(&self.moves, latents);
        let legality = self.legality.forward(weights, &moves, places);
        let board = self
            .board
            .forward(weights, &mish(&self.board_hidden, latents));
        RuleLogits {
            end: end.squeeze_dim(1).to_kind(Kind::Float),
            legality: legality + &weights[self.legality_bias].to_kind(Kind::Float),
            board: board.to_kind(Kind::Float),
        }
    }
}
