//! The space–time denoiser, in which boards pass through a Chessformer and each square attends to
//! the same square on other boards.
//!
//! The present and all future boards pass through the layers of one Chessformer, each board in the
//! view of its mover, as in the Chessformer's own training. Before each layer, every square attends
//! to the same square of all boards. An unknown square shows the piece of the present board and
//! carries a mark. A known move is marked on its origin and destination squares. The Chessformer's
//! policy head predicts an unknown move from the board on which it is played.
//!
//! The output weights of all additional parts start at zero, so the network initially plays like
//! the Chessformer.

use super::futures::{Constants, Futures, MARKS};
use crate::encode::{BOARDS, SQUARE_CLASSES};
use crate::network::Architecture;
use crate::network::architecture::{Evaluator, Pass, Positions};
use crate::network::bitboards;
use crate::network::blocks::{AdaLnZero, TimeAttention};
use crate::network::chessformer::{Chessformer, ConfigError};
use crate::network::config::diffusion::DiffusionConfig;
use crate::network::layers::Linear;
use crate::network::outputs::{Output, OutputSet, Outputs};
use crate::network::parameters::{Builder, Dense, Initial, Slot, Weights};
use crate::network::size::{Part, Size};
use crate::network::taps::Tap;
use tch::{Device, Kind, Tensor};

/// Width of the vector that conditions layers on the noise and on a board's ply.
const CONDITION: i64 = 128;
/// Number of sine waves that encode the noise level.
const WAVES: i64 = 32;
/// The angle of the fastest wave, in radians, if all variables are unknown.
const FASTEST: f64 = 1000.0;
/// Initial standard deviation of the ply vectors.
const PLY_DEVIATION: f64 = 0.5;

/// A network's outputs for positions and their futures.
#[derive(Debug)]
pub struct Denoised {
    /// Outputs for the present.
    pub present: Outputs,
    /// The predicted future, or `None` if the horizon is 0.
    pub future: Option<DenoisedFuture>,
}

/// The predicted future of B positions.
#[derive(Debug)]
pub struct DenoisedFuture {
    /// Logits of the squares' classes, f32 [B, H, 64, 13], with each board in the view of its
    /// mover. They need the correction of
    /// [`Diffusion::calibration`](super::Diffusion::calibration).
    pub squares: Tensor,
    /// Logits f32 [B, H − 1, 1858] of the moves that are played from all future boards except the
    /// last.
    pub moves: Option<Tensor>,
    /// The values W − L in −1…1 of the future boards, each in the view of its mover, f32 [B, H], if
    /// requested. They are computed like the value of the present board.
    pub q: Option<Tensor>,
}

/// A Chessformer and the parts for the future, which are absent if the horizon is 0.
#[derive(Debug)]
pub(super) struct Grid {
    pub trunk: Chessformer,
    future_parts: Option<FutureParts>,
}

/// The parts that a denoiser has in addition to the Chessformer.
#[derive(Debug)]
struct FutureParts {
    /// [width, 6]: the vectors that are added to the tokens of marked squares.
    marks: Slot,
    /// [T, width]: the vectors that are added to the tokens of a board, by ply.
    ply: Slot,
    noise: Linear,
    /// [T, CONDITION]: a vector for each ply, which is part of the condition.
    condition: Slot,
    /// The attention before each layer of the trunk.
    time: Vec<TimeLayer>,
    /// The head for the classes of squares.
    squares: Linear,
    /// Frequencies of the waves, f32 `[WAVES]`.
    waves: Tensor,
}

#[derive(Debug)]
struct TimeLayer {
    norm: AdaLnZero,
    attention: TimeAttention,
}

impl Grid {
    /// Returns the grid, and the builder that has collected its parameters.
    pub fn build(config: &DiffusionConfig, device: Device) -> Result<(Grid, Builder), ConfigError> {
        let trunk = Chessformer::new(&config.trunk, device)?;
        let boards = 1 + config.horizon;
        let size = trunk.size();
        let size = Size {
            macs: boards * size.macs,
            macs_total: boards * size.macs_total,
            ..size
        };
        let mut builder = Builder::after(trunk.parameters(), size);
        let future_parts = (config.horizon > 0).then(|| {
            // The name of these parameters in network files.
            builder.scope("imagination", |builder| {
                FutureParts::build(builder, config, device)
            })
        });
        Ok((
            Grid {
                trunk,
                future_parts,
            },
            builder,
        ))
    }

    /// Implements [`super::Diffusion::denoise`].
    pub fn denoise(
        &self,
        weights: &Weights,
        constants: &Constants,
        rows: &Tensor,
        futures: &Futures,
        wanted: OutputSet,
        with_values: bool,
    ) -> Denoised {
        let horizon = futures.pieces.size()[1];
        let parts = self.future_parts.as_ref().filter(|_| horizon > 0);
        let Some(parts) = parts else {
            let pass = Pass::new(Positions::Rows(rows), wanted);
            return Denoised {
                present: self.trunk.forward(weights, &pass),
                future: None,
            };
        };
        let words = (BOARDS + self.trunk.interface().scalars.len()) as i64;
        let boards = constants.rows(rows, &futures.pieces, words);
        let boards = Positions::Rows(&boards);
        let like = &weights.tensors()[0];
        let marks = bitboards::squares(&futures.marks.flatten(0, 1), &constants.shifts, like);
        let marks = marks.unflatten(0, [-1, 1 + horizon]);
        let x = self.trunk(parts, weights, boards, &marks, &futures.noise);
        let present = self.present(weights, &x, wanted);
        let squares = parts.squares.forward(weights, &x.narrow(1, 1, horizon));
        let moves = (horizon > 1).then(|| {
            let x = x.narrow(1, 1, horizon - 1).flatten(0, 1);
            let logits = self.trunk.moves(weights, &x);
            logits.unflatten(0, [-1, horizon - 1])
        });
        let q = with_values.then(|| {
            let x = x.narrow(1, 1, horizon).flatten(0, 1);
            let wanted = [Output::Q].into_iter().collect();
            let read = self.trunk.read_tokens(weights, &x, wanted);
            let q = read.get(Output::Q).expect("a Chessformer has a value");
            q.to_kind(Kind::Float).view([-1, horizon])
        });
        let future = Some(DenoisedFuture {
            squares: squares.to_kind(Kind::Float),
            moves,
            q,
        });
        Denoised { present, future }
    }

    /// Returns the wanted outputs for positions given as planes, with fully masked futures.
    pub fn of_planes(
        &self,
        weights: &Weights,
        constants: &Constants,
        planes: &[Tensor],
        horizon: i64,
        wanted: OutputSet,
    ) -> Outputs {
        let Some(parts) = &self.future_parts else {
            let pass = Pass::new(Positions::Planes(planes), wanted);
            return self.trunk.forward(weights, &pass);
        };
        let (marks, noise) = constants.unknown_squares(planes, horizon);
        let boards = constants.planes(planes, horizon);
        let boards = Positions::Planes(&boards);
        let x = self.trunk(parts, weights, boards, &marks, &noise);
        self.present(weights, &x, wanted)
    }

    /// Returns the tokens [B, T, 64, width] of all boards after the last layer. `marks` are the
    /// marks of the squares, [B, T, 64, 6], and `noise` is as in [`Futures`].
    fn trunk(
        &self,
        parts: &FutureParts,
        weights: &Weights,
        boards: Positions,
        marks: &Tensor,
        noise: &Tensor,
    ) -> Tensor {
        let tap = Tap::default();
        let (x, attacks) = self.trunk.embedded(weights, boards, &tap);
        let board = self.trunk.board(attacks.as_ref());
        let mut x = parts.marked(weights, x, marks);
        let condition = parts.condition(weights, noise, marks.size()[1]);
        let layers = self.trunk.layers.iter();
        for (layer, time) in layers.zip(&parts.time) {
            x = parts.look_around(weights, time, &x, &condition);
            x = layer.forward(weights, &x, board, &tap);
        }
        x.unflatten(0, [-1, marks.size()[1]])
    }

    /// Returns the outputs for the present board, from tokens [B, T, 64, width].
    fn present(&self, weights: &Weights, x: &Tensor, wanted: OutputSet) -> Outputs {
        let x = x.select(1, 0);
        // Kernels with packed weights require contiguous input.
        let x = if weights.are_packed() {
            x.contiguous()
        } else {
            x
        };
        self.trunk.read_tokens(weights, &x, wanted)
    }

    /// Returns the constant tensors that only the grid reads.
    pub fn constants(&self) -> Vec<(&str, &Tensor)> {
        let mut constants = self.trunk.constants();
        let future_parts = self.future_parts.iter();
        constants.extend(future_parts.map(|parts| ("noise_waves", &parts.waves)));
        constants
    }

    /// Returns whether the network predicts futures.
    pub fn predicts_futures(&self) -> bool {
        self.future_parts.is_some()
    }
}

impl FutureParts {
    fn build(builder: &mut Builder, config: &DiffusionConfig, device: Device) -> FutureParts {
        let boards = 1 + config.horizon;
        let width = config.trunk.width;
        let marks = builder.add("marks", &[width, MARKS], Initial::Zeros);
        let ply = builder.add("ply", &[boards, width], Initial::Zeros);
        let noise = Dense::per_board(2 * WAVES, CONDITION);
        let noise = builder.linear("noise", noise, Part::Other);
        let deviation = Initial::Normal(PLY_DEVIATION);
        let condition = builder.add("condition", &[boards, CONDITION], deviation);
        let time = (0..config.trunk.layers).map(|number| {
            builder.scope(format!("time.{number}"), |builder| {
                builder.hidden(|builder| TimeLayer {
                    norm: AdaLnZero::build(builder, width, CONDITION),
                    attention: TimeAttention::build(builder, width, config.trunk.heads, boards),
                })
            })
        });
        let time = time.collect();
        let dense = Dense::per_token(width, SQUARE_CLASSES as i64).with_rows(64 * config.horizon);
        let squares = builder.linear("squares", dense, Part::Other);
        let waves = Tensor::arange(WAVES, (Kind::Float, device));
        let waves = (waves * (FASTEST.ln() / (WAVES - 1) as f64)).exp();
        FutureParts {
            marks,
            ply,
            noise,
            condition,
            time,
            squares,
            waves,
        }
    }

    /// Adds the vectors for marks and plies to the boards' tokens [B · T, 64, width].
    fn marked(&self, weights: &Weights, x: Tensor, marks: &Tensor) -> Tensor {
        let boards = marks.size()[1];
        let marks = marks.matmul(&weights[self.marks].transpose(0, 1));
        let ply = weights[self.ply].narrow(0, 0, boards).unsqueeze(1);
        (x.unflatten(0, [-1, boards]) + marks + ply).flatten(0, 1)
    }

    /// Returns the vectors [B, T, 1, CONDITION] that condition the layers on the noise and the plies.
    /// `noise` is f32 `[B]`.
    fn condition(&self, weights: &Weights, noise: &Tensor, boards: i64) -> Tensor {
        let angles = noise.unsqueeze(1) * &self.waves;
        let waves = Tensor::cat(&[angles.cos(), angles.sin()], 1).to_kind(weights.kind());
        let noise = self.noise.forward(weights, &waves).unsqueeze(1);
        let plies = weights[self.condition].narrow(0, 0, boards);
        (noise + plies).silu().unsqueeze(2)
    }

    /// Lets each square of the tokens [B · T, 64, width] attend to the same square of all boards.
    fn look_around(
        &self,
        weights: &Weights,
        layer: &TimeLayer,
        x: &Tensor,
        condition: &Tensor,
    ) -> Tensor {
        let boards = x.unflatten(0, [-1, condition.size()[1]]);
        let (normed, gate) = layer.norm.forward(weights, &boards, condition);
        let learned = layer.attention.forward(weights, &normed) * gate;
        (boards + learned).flatten(0, 1)
    }
}
