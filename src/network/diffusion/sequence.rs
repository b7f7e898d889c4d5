//! The published denoiser: one sequence of tokens, all of which see each other.
//!
//! Tokens are the squares of the present board with what else is known of it, then for each
//! ply the move and the squares of the board after it. The first move's token is always
//! unknown, and says the policy. The network is a transformer as GPT-2 is one, but for the
//! mask. Its boards are those of their movers and its moves those of the policy, where
//! DiffuSearch has FEN's characters and 1,968 moves.

use super::config::DiffusionConfig;
use super::futures::{Constants, Futures};
use super::{Denoised, DenoisedFuture};
use crate::encode::{BOARDS, InputFormat, POLICY_SIZE, SCALARS, SQUARE_CLASSES};
use crate::network::bitboards;
use crate::network::blocks::{Mask, Mlp, SelfAttention};
use crate::network::evaluator::{Interface, Positions};
use crate::network::layers::{Linear, Norm};
use crate::network::outputs::{Output, Outputs};
use crate::network::parameters::{Builder, Dense, Initial, Parameter, Slot, Weights};
use crate::network::size::{Part, Size};
use tch::{Kind, Tensor};

/// What norms add to variances.
const EPSILON: f64 = 1e-5;
/// Standard deviation of embeddings at the start, as in GPT-2.
const DEVIATION: f64 = 0.02;
/// Scalars of a row that are read: castling rights, the side to move, the 50-move rule.
const KNOWN: i64 = 6;
/// Tokens of the present.
const PRESENT: i64 = 64 + KNOWN;
/// Tokens of a ply.
const PLY: i64 = 1 + 64;
/// Scale of the plies of the 50-move rule.
const RULE50_SCALE: f64 = 0.01;

/// The structure of a sequence denoiser.
#[derive(Debug)]
pub(super) struct Sequence {
    /// [13, width]
    classes: Slot,
    /// `[width]`: an unknown square.
    masked: Slot,
    /// [6, width]
    scalars: Slot,
    /// [64, width] each: the squares that a move leaves and reaches.
    from: Slot,
    to: Slot,
    /// [3, width]: queen, rook, bishop.
    promotion: Slot,
    /// `[width]`: an unknown move.
    unknown: Slot,
    /// [tokens, width]
    positions: Slot,
    layers: Vec<Layer>,
    norm: Norm,
    squares: Linear,
    moves: Linear,
    wdl: Linear,
    q: Linear,
}

#[derive(Debug)]
struct Layer {
    attention_norm: Norm,
    attention: SelfAttention,
    mlp_norm: Norm,
    mlp: Mlp,
}

impl Sequence {
    /// With its parameters and size.
    pub fn build(config: &DiffusionConfig) -> (Sequence, Vec<Parameter>, Size) {
        let trunk = &config.trunk;
        let width = trunk.width;
        let tokens = PRESENT + 1 + 64 * config.horizon + (config.horizon - 1).max(0);
        let mut builder = Builder::default();
        let initial = || Initial::Normal(DEVIATION);
        let mut embedding = |name: &str, shape: &[i64]| builder.add(name, shape, initial());
        let classes = embedding("classes", &[SQUARE_CLASSES as i64, width]);
        let masked = embedding("masked", &[width]);
        let scalars = embedding("scalars", &[KNOWN, width]);
        let [from, to] = ["from", "to"].map(|name| embedding(name, &[64, width]));
        let promotion = embedding("promotion", &[3, width]);
        let unknown = embedding("unknown", &[width]);
        let positions = embedding("positions", &[tokens, width]);
        let gain = 1.0 / (2.0 * trunk.layers as f64).sqrt();
        let layers = (0..trunk.layers).map(|number| {
            builder.scope(format!("layers.{number}"), |builder| {
                builder.hidden(|builder| Layer {
                    attention_norm: builder.norm("attention_norm", width, true, EPSILON),
                    attention: builder.scope("attention", |builder| {
                        SelfAttention::build(builder, width, trunk.heads, tokens, gain)
                    }),
                    mlp_norm: builder.norm("mlp_norm", width, true, EPSILON),
                    mlp: builder.scope("mlp", |builder| {
                        Mlp::gelu(builder, [width, trunk.feed_forward], gain)
                    }),
                })
            })
        });
        let layers = layers.collect();
        let norm = builder.norm("norm", width, true, EPSILON);
        let dense = |output| Dense {
            rows: 1,
            ..Dense::per_token(width, output)
        };
        let mut head = |name: &str, output| builder.linear(name, dense(output), Part::Other);
        let squares = head("squares", SQUARE_CLASSES as i64);
        let moves = head("moves", POLICY_SIZE as i64);
        let (wdl, q) = (head("wdl", 3), head("q", 1));
        let (parameters, size) = builder.finish();
        // Layers were counted for a token.
        let size = Size {
            macs: tokens * size.macs,
            macs_total: tokens * size.macs_total,
            ..size
        };
        let sequence = Sequence {
            classes,
            masked,
            scalars,
            from,
            to,
            promotion,
            unknown,
            positions,
            layers,
            norm,
            squares,
            moves,
            wdl,
            q,
        };
        (sequence, parameters, size)
    }

    /// What it reads and computes.
    pub fn interface() -> Interface {
        Interface {
            format: InputFormat::Classical.number(),
            scalars: SCALARS[..KNOWN as usize].to_vec(),
            outputs: vec![Output::Policy, Output::Wdl, Output::Q],
            planes: Interface::lc0_planes(),
        }
    }

    /// As [`super::Diffusion::foresee`].
    pub fn foresee(
        &self,
        weights: &Weights,
        constants: &Constants,
        present: Positions,
        futures: &Futures,
    ) -> Denoised {
        let horizon = futures.pieces.size()[1];
        let tokens = self.tokens(weights, constants, present, futures);
        let count = tokens.size()[1];
        let mut x = tokens + weights[self.positions].narrow(0, 0, count);
        for layer in &self.layers {
            let normed = layer.attention_norm.forward(weights, &x);
            let seen = layer
                .attention
                .forward(weights, &normed, None, &Mask::Full, None);
            x = &x + seen;
            let normed = layer.mlp_norm.forward(weights, &x);
            x = &x + layer.mlp.forward(weights, &normed);
        }
        let x = self.norm.forward(weights, &x);
        let present = self.read(weights, &x.narrow(1, 0, PRESENT + 1));
        let future = (horizon > 0).then(|| {
            // Behind the first move come a board, and a move before each of the others.
            let plies = x.narrow(1, PRESENT, PLY * horizon);
            let plies = plies.unflatten(1, [horizon, PLY]);
            let squares = self.squares.forward(weights, &plies.narrow(2, 1, 64));
            let moves = (horizon > 1).then(|| {
                let moves = plies.select(2, 0).narrow(1, 1, horizon - 1);
                self.moves.forward(weights, &moves).to_kind(Kind::Float)
            });
            DenoisedFuture {
                squares: squares.to_kind(Kind::Float),
                moves,
                q: None,
            }
        });
        Denoised { present, future }
    }

    /// What is read off the tokens [B, 71, width] of the present and of the first move.
    pub fn read(&self, weights: &Weights, x: &Tensor) -> Outputs {
        let float = |tensor: Tensor| tensor.to_kind(Kind::Float);
        let first = x.select(1, x.size()[1] - 1);
        let board = x
            .narrow(1, 0, PRESENT)
            .mean_dim([1i64].as_slice(), false, None::<Kind>);
        let mut outputs = Outputs::default();
        outputs.set(Output::Policy, float(self.moves.forward(weights, &first)));
        outputs.set(Output::Wdl, float(self.wdl.forward(weights, &board)));
        let q = float(self.q.forward(weights, &board)).squeeze_dim(1).tanh();
        outputs.set(Output::Q, q);
        outputs
    }

    /// The tokens [B, tokens, width].
    fn tokens(
        &self,
        weights: &Weights,
        constants: &Constants,
        present: Positions,
        futures: &Futures,
    ) -> Tensor {
        let like = &weights[self.positions];
        let shifts = &constants.shifts;
        let (pieces, scalars) = match present {
            Positions::Rows(rows) => {
                let pieces = bitboards::squares(&rows.narrow(1, 0, 12), shifts, like);
                let scalars = rows.narrow(1, BOARDS as i64, KNOWN);
                let rights = scalars.narrow(1, 0, 4).ne(0).type_as(like);
                let turn = scalars.narrow(1, 4, 1).type_as(like);
                let rule50 = scalars.narrow(1, 5, 1).type_as(like);
                (pieces, Tensor::cat(&[rights, turn, rule50], 1))
            }
            Positions::Planes(planes) => {
                let squares = planes[0].flatten(2, 3).transpose(1, 2).type_as(like);
                let scalars = squares.select(1, 0).narrow(1, BOARDS as i64, KNOWN);
                (squares.narrow(2, 0, 12), scalars)
            }
        };
        let scale = [1.0, 1.0, 1.0, 1.0, 1.0, RULE50_SCALE as f32];
        let scalars: Vec<Tensor> = (0..KNOWN)
            .map(|number| {
                let value = scalars.narrow(1, number, 1) * f64::from(scale[number as usize]);
                value * weights[self.scalars].select(0, number)
            })
            .collect();
        let mut parts = vec![self.classes(weights, &pieces), Tensor::stack(&scalars, 1)];
        let horizon = futures.pieces.size()[1];
        for ply in 0..horizon.max(1) {
            parts.push(self.played(weights, constants, &futures.marks.select(1, ply)));
            if ply < horizon {
                let pieces = futures.pieces.select(1, ply);
                let squares = self.classes(weights, &bitboards::squares(&pieces, shifts, like));
                let masked = futures.marks.select(1, ply + 1).narrow(1, 0, 1);
                let masked = bitboards::squares(&masked, shifts, like);
                let known = squares * (1.0 - &masked);
                parts.push(known + masked * &weights[self.masked]);
            }
        }
        Tensor::cat(&parts, 1)
    }

    /// Tokens [B, 64, width] of squares by the planes [B, 64, 12] of their pieces.
    fn classes(&self, weights: &Weights, pieces: &Tensor) -> Tensor {
        let occupied = pieces.sum_dim_intlist([2i64].as_slice(), true, None::<Kind>);
        Tensor::cat(&[1.0 - occupied, pieces.shallow_clone()], 2).matmul(&weights[self.classes])
    }

    /// The token [B, 1, width] of a move by the marks i64 [B, 6] of its board.
    fn played(&self, weights: &Weights, constants: &Constants, marks: &Tensor) -> Tensor {
        let like = &weights[self.positions];
        let marks = bitboards::squares(&marks.narrow(1, 1, 5), &constants.shifts, like);
        let of = |place: i64| -> Tensor { marks.select(2, place) };
        let becomes = marks.narrow(2, 2, 3);
        let becomes = becomes.sum_dim_intlist([1i64].as_slice(), false, None::<Kind>);
        let known = of(0).sum_dim_intlist([1i64].as_slice(), true, None::<Kind>);
        let played: Tensor = of(0).matmul(&weights[self.from])
            + of(1).matmul(&weights[self.to])
            + becomes.matmul(&weights[self.promotion])
            + (1.0 - known) * &weights[self.unknown];
        played.unsqueeze(1)
    }
}
