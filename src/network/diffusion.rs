//! A denoiser of futures: discrete diffusion over the boards and moves of the next plies,
//! from which the move to play is read off (after DiffuSearch, Ye et al. 2025).
//!
//! Variables are the board after each of the next H plies, 64 squares of 13 classes each,
//! and the moves between. Each may be unknown. The present and the future boards all go
//! through the layers of one Chessformer, each as its own mover sees it, which is how that
//! network knows boards. Before each layer a square attends to the same square of the
//! other boards. A square that is unknown shows what stands there now, with a mark that
//! says so. A known move marks the squares it goes from and to; an unknown one is read off
//! its board by the Chessformer's policy head. The move to play is that of the present
//! board, whose tokens have seen what is imagined.
//!
//! All that a Chessformer lacks starts as nothing: grown from one, the network begins by
//! playing as it.

pub mod config;
mod decode;
mod futures;
#[cfg(test)]
mod tests;

pub use config::{
    DiffusionConfig, DiffusionConfigError, FuturesKind, LONGEST_HORIZON, NoiseKind,
};
pub use decode::{Revealed, RevealedBoard, RevealedMove};
pub use futures::{Futures, marks_of};

use super::architecture::{Architecture, NotAnEvaluator};
use super::blocks::{AdaLnZero, TimeAttention};
use super::chessformer::Chessformer;
use super::evaluator::{self, Evaluator, Interface, Positions};
use super::exported::ExportedProgram;
use super::family::ArchitectureConfig;
use super::layers::Linear;
use super::outputs::{Output, OutputSet, Outputs};
use super::parameters::{Builder, Dense, Initial, Parameter, Slot, Weights};
use super::size::{Part, Size};
use super::taps::Tap;
use super::bitboards;
use crate::encode::{BOARDS, SQUARE_CLASSES};
use futures::{Constants, MARKS};
use tch::{Device, Kind, Tensor};

/// Width of what layers are told of the noise and of a board's ply.
const CONDITION: i64 = 128;
/// Waves in which the share of what is unknown is told.
const WAVES: i64 = 32;
/// The fastest wave's angle at full noise.
const FASTEST: f64 = 1000.0;
/// Standard deviation of the vectors of plies at the start.
const PLY_DEVIATION: f64 = 0.5;

/// The structure of a denoiser of futures.
#[derive(Debug)]
pub struct Diffusion {
    config: DiffusionConfig,
    parameters: Vec<Parameter>,
    size: Size,
    trunk: Chessformer,
    imagination: Option<Imagination>,
}

/// What the trunk lacks.
#[derive(Debug)]
struct Imagination {
    /// [width, 6]: what marks add to the tokens of their squares.
    marks: Slot,
    /// [T, width]: what a board's ply adds to its tokens.
    ply: Slot,
    noise: Linear,
    /// [T, CONDITION]
    condition: Slot,
    /// Before each of the trunk's layers.
    time: Vec<TimeLayer>,
    /// Classes of squares.
    squares: Linear,
    constants: Constants,
    /// Speeds of the waves, f32 `[WAVES]`.
    waves: Tensor,
}

#[derive(Debug)]
struct TimeLayer {
    norm: AdaLnZero,
    attention: TimeAttention,
}

/// What a network makes of positions and their futures.
#[derive(Debug)]
pub struct Imagined {
    /// Of the present.
    pub present: Outputs,
    /// Of the future; not with a horizon of 0.
    pub future: Option<ImaginedFuture>,
}

/// The imagined future of B positions.
#[derive(Debug)]
pub struct ImaginedFuture {
    /// Logits of the classes of squares, f32 [B, H, 64, 13], of boards as their movers see
    /// them.
    pub squares: Tensor,
    /// Logits f32 [B, H − 1, 1858] of the moves played from all future boards but the last.
    pub moves: Option<Tensor>,
}

impl Diffusion {
    /// Builds the structure that `config` describes, for weights on `device`.
    ///
    /// # Errors
    /// [`DiffusionConfigError`] if the sizes do not fit each other.
    pub fn new(config: &DiffusionConfig, device: Device) -> Result<Diffusion, DiffusionConfigError> {
        config.check()?;
        let trunk = Chessformer::new(&config.trunk, device)?;
        let boards = 1 + config.horizon;
        let size = trunk.size();
        let size = Size {
            macs: boards * size.macs,
            macs_total: boards * size.macs_total,
            ..size
        };
        let mut builder = Builder::after(trunk.parameters(), size);
        let imagination = (config.horizon > 0).then(|| {
            builder.scope("imagination", |builder| {
                Imagination::build(builder, config, device)
            })
        });
        let (parameters, size) = builder.finish();
        Ok(Diffusion {
            config: config.clone(),
            parameters,
            size,
            trunk,
            imagination,
        })
    }

    /// What it was built from.
    #[must_use]
    pub fn model(&self) -> &DiffusionConfig {
        &self.config
    }

    /// Futures of which nothing is known, of positions by their rows i64 [B, 104 + scalars];
    /// `None` with a horizon of 0.
    #[must_use]
    pub fn unknown(&self, rows: &Tensor) -> Option<Futures> {
        let parts = self.imagination.as_ref()?;
        Some(parts.constants.unknown(rows, self.config.horizon))
    }

    /// One step of denoising: what is to be made of positions, by their rows i64
    /// [B, 104 + scalars], when so much of their futures is known. Of the outputs those
    /// that are `wanted`. The futures may have fewer plies than the horizon.
    #[must_use]
    pub fn imagine(
        &self,
        weights: &Weights,
        rows: &Tensor,
        futures: &Futures,
        wanted: OutputSet,
    ) -> Imagined {
        let parts = self.imagination.as_ref();
        let Some(parts) = parts.filter(|_| futures.pieces.size()[1] > 0) else {
            let positions = Positions::Rows(rows);
            return Imagined {
                present: self.trunk.forward(weights, positions, wanted, &Tap::default()),
                future: None,
            };
        };
        let x = self.tokens(parts, weights, rows, futures);
        let present = self.present(weights, &x, Positions::Rows(rows), wanted);
        let horizon = futures.pieces.size()[1];
        let squares = parts.squares.forward(weights, &x.narrow(1, 1, horizon));
        let moves = (horizon > 1).then(|| {
            let x = x.narrow(1, 1, horizon - 1).flatten(0, 1);
            let logits = self.trunk.moves(weights, &x);
            logits.unflatten(0, [-1, horizon - 1])
        });
        let future = Some(ImaginedFuture {
            squares: squares.to_kind(Kind::Float),
            moves,
        });
        Imagined { present, future }
    }

    /// Tokens [B, T, 64, width] after the last layer.
    fn tokens(
        &self,
        parts: &Imagination,
        weights: &Weights,
        rows: &Tensor,
        futures: &Futures,
    ) -> Tensor {
        let words = (BOARDS + self.interface().scalars.len()) as i64;
        let rows = parts.constants.rows(rows, &futures.pieces, words);
        let known = (&futures.marks, &futures.noise);
        self.denoise(parts, weights, Positions::Rows(&rows), known)
    }

    /// The same of all boards, and of marks and noise as in [`Futures`].
    fn denoise(
        &self,
        parts: &Imagination,
        weights: &Weights,
        boards: Positions,
        (marks, noise): (&Tensor, &Tensor),
    ) -> Tensor {
        let tap = Tap::default();
        let (x, attacks) = self.trunk.embedded(weights, boards, &tap);
        let board = self.trunk.board(attacks.as_ref());
        let mut x = parts.marked(weights, x, marks);
        let condition = parts.condition(weights, noise, marks.size()[1]);
        let layers = self.trunk.layers().iter();
        for (layer, time) in layers.zip(&parts.time) {
            x = parts.look_around(weights, time, &x, &condition);
            x = layer.forward(weights, &x, board, &tap);
        }
        x.unflatten(0, [-1, marks.size()[1]])
    }

    /// What is read off the present board of tokens [B, T, 64, width].
    fn present(
        &self,
        weights: &Weights,
        x: &Tensor,
        positions: Positions,
        wanted: OutputSet,
    ) -> Outputs {
        let x = x.select(1, 0);
        // Kernels with packed weights read their input as it lies in memory.
        let x = if weights.are_packed() { x.contiguous() } else { x };
        self.trunk.read(weights, &x, positions, wanted)
    }
}

impl Imagination {
    fn build(builder: &mut Builder, config: &DiffusionConfig, device: Device) -> Imagination {
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
        let dense = Dense {
            rows: 64 * config.horizon,
            ..Dense::per_token(width, SQUARE_CLASSES as i64)
        };
        let squares = builder.linear("squares", dense, Part::Other);
        let waves = Tensor::arange(WAVES, (Kind::Float, device));
        let waves = (waves * (FASTEST.ln() / (WAVES - 1) as f64)).exp();
        Imagination {
            marks,
            ply,
            noise,
            condition,
            time,
            squares,
            constants: Constants::new(config.horizon, config.noise, device),
            waves,
        }
    }

    /// Tokens [B · T, 64, width] with what is known of their boards besides the pieces.
    fn marked(&self, weights: &Weights, x: Tensor, marks: &Tensor) -> Tensor {
        let boards = marks.size()[1];
        let marks = bitboards::squares(&marks.flatten(0, 1), &self.constants.shifts, &x);
        let x = x + marks.matmul(&weights[self.marks].transpose(0, 1));
        let ply = weights[self.ply].narrow(0, 0, boards).unsqueeze(1);
        (x.unflatten(0, [-1, boards]) + ply).flatten(0, 1)
    }

    /// What layers are told of the noise f32 `[B]` and of plies, [B, 1, T, CONDITION].
    fn condition(&self, weights: &Weights, noise: &Tensor, boards: i64) -> Tensor {
        let angles = noise.unsqueeze(1) * &self.waves;
        let waves = Tensor::cat(&[angles.cos(), angles.sin()], 1).to_kind(weights.kind());
        let noise = self.noise.forward(weights, &waves).unsqueeze(1);
        let plies = weights[self.condition].narrow(0, 0, boards);
        (noise + plies).silu().unsqueeze(1)
    }

    /// Tokens [B · T, 64, width] after squares saw the same squares of other boards.
    fn look_around(
        &self,
        weights: &Weights,
        layer: &TimeLayer,
        x: &Tensor,
        condition: &Tensor,
    ) -> Tensor {
        let boards = condition.size()[2];
        let (normed, gate) = layer
            .norm
            .forward(weights, &by_square(x, boards), condition);
        let learned = layer.attention.forward(weights, &normed) * gate;
        x + by_board(&learned)
    }
}

/// Tokens [B, 64, T, width] of each square on all boards, of tokens [B · T, 64, width].
/// Boards of odd plies are seen by the other side: they are turned top to bottom.
fn by_square(x: &Tensor, boards: i64) -> Tensor {
    let boards = x.unflatten(0, [-1, boards]).unflatten(2, [8, 8]).unbind(1);
    Tensor::stack(&turned(boards), 3).flatten(1, 2)
}

/// The reverse.
fn by_board(x: &Tensor) -> Tensor {
    let boards = x.unflatten(1, [8, 8]).unbind(3);
    Tensor::stack(&turned(boards), 1).flatten(2, 3).flatten(0, 1)
}

/// Boards [B, 8, 8, width], those of odd plies turned top to bottom.
fn turned(boards: Vec<Tensor>) -> Vec<Tensor> {
    let boards = boards.into_iter().enumerate();
    let turned = boards.map(|(ply, board)| match ply % 2 {
        0 => board,
        _ => board.flip([1]),
    });
    turned.collect()
}

impl Architecture for Diffusion {
    fn config(&self) -> ArchitectureConfig {
        ArchitectureConfig::Diffusion {
            model: self.config.clone(),
        }
    }

    fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    fn buffers(&self) -> Vec<(String, Tensor)> {
        let mut buffers = self.trunk.buffers();
        if let Some(parts) = &self.imagination {
            let constants = &parts.constants;
            let named = [
                ("board_shifts", Some(&constants.shifts)),
                ("other_side", Some(&constants.other_side)),
                ("other_rights", Some(&constants.other_rights)),
                ("unknown_boards", constants.unknown.as_ref()),
                ("noise_waves", Some(&parts.waves)),
            ];
            let named = named.into_iter();
            buffers.extend(named.filter_map(|(name, tensor)| {
                Some((name.to_owned(), tensor?.shallow_clone()))
            }));
        }
        buffers
    }

    /// That of a step: of the present and all future boards.
    fn size(&self) -> Size {
        self.size
    }

    fn into_evaluator(self: Box<Self>) -> Result<Box<dyn Evaluator>, NotAnEvaluator> {
        Ok(self)
    }

    fn exported(&self) -> ExportedProgram<'_> {
        evaluator::exported(self)
    }
}

/// What it evaluates is the present when nothing is known of the future: a single step.
impl Evaluator for Diffusion {
    fn interface(&self) -> Interface {
        self.trunk.interface()
    }

    fn has(&self, output: Output) -> bool {
        self.trunk.has(output)
    }

    fn forward(
        &self,
        weights: &Weights,
        positions: Positions,
        wanted: OutputSet,
        tap: &Tap,
    ) -> Outputs {
        let Some(parts) = &self.imagination else {
            return self.trunk.forward(weights, positions, wanted, tap);
        };
        let horizon = self.config.horizon;
        let x = match positions {
            Positions::Rows(rows) => {
                let futures = parts.constants.unknown(rows, horizon);
                self.tokens(parts, weights, rows, &futures)
            }
            Positions::Planes(planes) => {
                let first = planes[0].narrow(1, 0, 1).flatten(1, 3).narrow(1, 0, 1);
                let words = first.to_kind(Kind::Int64);
                let (marks, noise) = parts.constants.unknown_marks(&words, horizon);
                let boards = parts.constants.planes(planes, horizon);
                self.denoise(parts, weights, Positions::Planes(&boards), (&marks, &noise))
            }
        };
        self.present(weights, &x, positions, wanted)
    }

    fn read(
        &self,
        weights: &Weights,
        tokens: &Tensor,
        positions: Positions,
        wanted: OutputSet,
    ) -> Outputs {
        self.trunk.read(weights, tokens, positions, wanted)
    }

    fn without_head(&self, weights: &Weights, layer: usize, head: usize) -> Option<Weights> {
        self.trunk.without_head(weights, layer, head)
    }
}
