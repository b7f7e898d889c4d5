//! A minimal family, for the test that adds a family (`src/train/toy_tests.rs`).
//!
//! One layer computes the policy and another the result. Both read a few features per square, which
//! are weighted sums of the square's planes.

use super::architecture::{
    Architecture, Evaluator, Interface, NotAnEvaluator, Pass, Positions, Structure,
};
use super::bitboards;
use super::config::ArchitectureConfig;
use super::config::toy::ToyConfig;
use super::evaluator;
use super::exported::ExportedProgram;
use super::layers::Linear;
use super::outputs::{Output, Outputs};
use super::parameters::{Builder, Dense, Weights};
use super::planes::{READ, planes};
use super::size::Part;
use crate::encode::{InputFormat, SCALARS};
use tch::{Device, Kind, Tensor};

/// The structure of a toy network.
#[derive(Debug)]
pub struct Toy {
    structure: Structure,
    shifts: Tensor,
    squares: Linear,
    policy: Linear,
    wdl: Linear,
}

impl Toy {
    /// Builds the structure, for weights on `device`.
    pub fn new(config: &ToyConfig, device: Device) -> Toy {
        let mut builder = Builder::default();
        let (width, board) = (config.width, 64 * config.width);
        let squares = builder.linear("squares", Dense::per_token(112, width), Part::Main);
        let policy = builder.linear("policy", Dense::per_board(board, 1858), Part::Main);
        let wdl = builder.linear("wdl", Dense::per_board(board, 3), Part::Other);
        let stated = ArchitectureConfig::Toy {
            model: config.clone(),
        };
        Toy {
            structure: Structure::new(stated, builder),
            shifts: bitboards::shifts().to_device(device),
            squares,
            policy,
            wdl,
        }
    }
}

impl Architecture for Toy {
    fn structure(&self) -> &Structure {
        &self.structure
    }

    fn constants(&self) -> Vec<(&str, &Tensor)> {
        vec![("shifts", &self.shifts)]
    }

    fn exported(&self) -> ExportedProgram<'_> {
        evaluator::exported(self)
    }

    fn into_evaluator(self: Box<Self>) -> Result<Box<dyn Evaluator>, NotAnEvaluator> {
        Ok(self)
    }
}

impl Evaluator for Toy {
    fn interface(&self) -> Interface {
        Interface {
            format: InputFormat::Classical.number(),
            scalars: SCALARS[..READ].to_vec(),
            outputs: vec![Output::Policy, Output::Wdl],
            planes: Interface::lc0_planes(),
        }
    }

    fn has(&self, output: Output) -> bool {
        matches!(output, Output::Policy | Output::Wdl)
    }

    fn forward(&self, weights: &Weights, pass: &Pass) -> Outputs {
        let planes = match pass.positions {
            Positions::Rows(rows) => {
                let format = InputFormat::Classical.number();
                planes(rows, &self.shifts, format, &weights.tensors()[0])
            }
            Positions::Planes(given) => given[0].flatten(2, 3).transpose(1, 2),
        };
        let tokens = self.squares.forward(weights, &planes);
        self.read(weights, &tokens, pass)
    }

    fn read(&self, weights: &Weights, tokens: &Tensor, _pass: &Pass) -> Outputs {
        let board = tokens.relu().flatten(1, 2);
        let mut outputs = Outputs::default();
        for (output, layer) in [(Output::Policy, &self.policy), (Output::Wdl, &self.wdl)] {
            let logits = layer.forward(weights, &board);
            outputs.set(output, logits.to_kind(Kind::Float));
        }
        outputs
    }
}
