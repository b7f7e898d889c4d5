//! A future denoiser: discrete diffusion over the boards and moves of the next plies, which guide
//! the choice of move (after DiffuSearch, Ye et al. 2025).
//!
//! The variables are the boards after each of the next H plies (64 squares of 13 classes each, in
//! the view of the side to move) and the moves between them. Each variable may be masked or noisy.
//! An evaluation predicts all variables and, for the present position, the usual outputs of an
//! evaluator. Once the future has been predicted, the network chooses the move for the present
//! position.
//!
//! The network extends a Chessformer to a grid of boards and squares, and all boards pass through
//! the Chessformer's layers. The published design, a single token sequence, learned far more slowly
//! (bench/diffusion.md).

mod candidates;
mod decode;
mod futures;
mod grid;
#[cfg(test)]
mod tests;

pub use super::config::diffusion::{DiffusionConfig, DiffusionConfigError, LONGEST_HORIZON};
pub use decode::{Revealed, RevealedBoard, RevealedMove};
pub use futures::{Futures, marks_of};
pub use grid::{Denoised, DenoisedFuture};

use super::architecture::{
    Architecture, Evaluator, Interface, NotAnEvaluator, Pass, Positions, Structure,
};
use super::config::ArchitectureConfig;
use super::evaluator;
use super::exported::ExportedProgram;
use super::outputs::{Output, OutputSet, Outputs};
use super::parameters::Weights;
use crate::backend::{Decoding, PredictedFuture};
use crate::encode::SQUARE_CLASSES;
use futures::Constants;
use grid::Grid;
use tch::{Device, Kind, Tensor};

/// The structure of a future denoiser.
#[derive(Debug)]
pub struct Diffusion {
    /// The network's configuration.
    pub config: DiffusionConfig,
    structure: Structure,
    grid: Grid,
    constants: Constants,
}

/// Returns signs, alternately −1 and 1, f32 `[plies]`. They convert the values of future boards
/// from the views of the boards' movers to the view of the present mover, or back.
pub fn of_first_mover(plies: i64, device: Device) -> Tensor {
    let plies = Tensor::arange(plies, (Kind::Float, device));
    plies.remainder(2.0) * 2.0 - 1.0
}

impl Diffusion {
    /// Builds the structure that `config` describes, for weights on `device`.
    ///
    /// # Errors
    /// [`DiffusionConfigError`] if the sizes do not fit each other.
    pub fn new(
        config: &DiffusionConfig,
        device: Device,
    ) -> Result<Diffusion, DiffusionConfigError> {
        config.check()?;
        let (grid, builder) = Grid::build(config, device)?;
        let stated = ArchitectureConfig::Diffusion {
            model: config.clone(),
        };
        Ok(Diffusion {
            config: config.clone(),
            structure: Structure::new(stated, builder),
            grid,
            constants: Constants::new(device),
        })
    }

    /// Returns fully masked futures of positions, given as rows i64 [B, 104 + scalars].
    pub fn unknown(&self, rows: &Tensor) -> Futures {
        self.constants.unknown(rows, self.config.horizon)
    }

    /// Returns the correction of the square logits, f32 [B, plies, 64, 13], for positions given as
    /// rows. Training gives changed squares a larger weight, and the correction restores the
    /// frequencies of the data.
    pub fn calibration(&self, rows: &Tensor, plies: i64) -> Tensor {
        let classes = self.constants.present_classes(rows, plies);
        let stays = classes.one_hot(SQUARE_CLASSES as i64).to_kind(Kind::Float);
        stays * (self.config.changed as f64).ln()
    }

    /// Runs one denoising step, which predicts the futures of positions, given as rows i64
    /// [B, 104 + scalars], from the known parts of these futures. Returns the `wanted` outputs and,
    /// if `with_values`, the values of the future boards. The futures may have fewer plies than the
    /// horizon.
    pub fn denoise(
        &self,
        weights: &Weights,
        rows: &Tensor,
        futures: &Futures,
        wanted: OutputSet,
        with_values: bool,
    ) -> Denoised {
        let constants = &self.constants;
        self.grid
            .denoise(weights, constants, rows, futures, wanted, with_values)
    }
}

impl Architecture for Diffusion {
    fn structure(&self) -> &Structure {
        &self.structure
    }

    fn constants(&self) -> Vec<(&str, &Tensor)> {
        let mut constants = self.grid.constants();
        if self.grid.predicts_futures() {
            constants.extend(self.constants.named());
        }
        constants
    }

    fn into_evaluator(self: Box<Self>) -> Result<Box<dyn Evaluator>, NotAnEvaluator> {
        Ok(self)
    }

    fn exported(&self) -> ExportedProgram<'_> {
        evaluator::exported(self)
    }
}

/// Evaluates the present in a single step, with fully masked futures.
impl Evaluator for Diffusion {
    fn interface(&self) -> Interface {
        self.grid.trunk.interface()
    }

    fn has(&self, output: Output) -> bool {
        self.grid.trunk.has(output)
    }

    /// Ignores the tap, because each layer processes several boards.
    fn forward(&self, weights: &Weights, pass: &Pass) -> Outputs {
        let horizon = self.config.horizon;
        match pass.positions {
            Positions::Rows(rows) => {
                let futures = self.unknown(rows);
                self.denoise(weights, rows, &futures, pass.wanted, false)
                    .present
            }
            Positions::Planes(planes) => {
                self.grid
                    .of_planes(weights, &self.constants, planes, horizon, pass.wanted)
            }
        }
    }

    fn play(
        &self,
        weights: &Weights,
        rows: &Tensor,
        decoding: Decoding,
    ) -> (Outputs, Vec<PredictedFuture>) {
        let wanted = self.interface().outputs.into_iter().collect();
        self.decode(weights, rows, decoding, wanted, |_, _| {})
    }

    fn read(&self, weights: &Weights, tokens: &Tensor, pass: &Pass) -> Outputs {
        self.grid.trunk.read(weights, tokens, pass)
    }

    fn without_head(&self, weights: &Weights, layer: usize, head: usize) -> Option<Weights> {
        self.grid.trunk.without_head(weights, layer, head)
    }
}
