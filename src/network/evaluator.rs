//! Code that all networks that evaluate positions share.

use super::architecture::{Evaluator, Interface, Pass, Positions};
use super::bitboards;
use super::exported::ExportedProgram;
use super::outputs::Outputs;
use super::parameters::Weights;
use super::planes::planes;
use crate::backend::metadata::{EncoderSpec, FORWARD, PlanesSpec, TensorSpec};
use crate::chess::Game;
use crate::encode::{BOARDS, Input, InputFormat};
use crate::torch::{self, TracedMethod};
use tch::{Kind, Tensor};

impl Interface {
    /// Converts rows i64 [B, 104 + scalars] to [`Positions::Planes`]: planes f32 [B, n, 8, 8], and
    /// both players' ratings if the network reads them.
    pub fn planes_of(&self, rows: &Tensor) -> Vec<Tensor> {
        let like = Tensor::from(0f32);
        let shifts = bitboards::shifts();
        let planes = match InputFormat::from_number(self.format) {
            Some(InputFormat::Maia3) => {
                bitboards::squares(&rows.narrow(1, 0, BOARDS as i64), &shifts, &like)
            }
            _ => planes(rows, &shifts, self.format, &like),
        };
        let planes = planes.transpose(1, 2).unflatten(2, [8, 8]);
        let ratings = ["self_elo", "opponent_elo"].into_iter().filter_map(|name| {
            let place = self.scalars.iter().position(|&scalar| scalar == name)?;
            let rating = rows.select(1, (BOARDS + place) as i64);
            Some(rating.to_kind(Kind::Float))
        });
        [planes].into_iter().chain(ratings).collect()
    }
}

/// Returns the exported program of a network that evaluates positions. It has one method, which
/// reads rows.
pub(super) fn exported(network: &dyn Evaluator) -> ExportedProgram<'_> {
    let Interface {
        format,
        scalars,
        outputs,
        ..
    } = network.interface();
    let planes = PlanesSpec::new(format, scalars.into_iter().map(str::to_owned).collect());
    let forward = TracedMethod {
        name: FORWARD,
        inputs: vec![planes.rows()],
        outputs: outputs
            .iter()
            .map(|output| TensorSpec::of_output(output.name()))
            .collect(),
        example: vec![example(&planes)],
        run: Box::new(move |weights, rows| {
            evaluate(
                network,
                &Weights::shared(weights),
                Positions::Rows(&rows[0]),
            )
        }),
    };
    ExportedProgram {
        encoder: EncoderSpec::Planes(planes),
        methods: vec![forward],
    }
}

/// Returns the initial position in two rows.
fn example(planes: &PlanesSpec) -> Tensor {
    let inputs = [Input::encode(&Game::default()); 2];
    let words = torch::words(&planes.scalars);
    torch::rows(&inputs, words.as_deref()).expect("two rows")
}

/// Evaluates positions and returns the network's exported outputs.
pub(super) fn evaluate(
    network: &dyn Evaluator,
    weights: &Weights,
    positions: Positions,
) -> Vec<Tensor> {
    let wanted = network.interface().outputs.into_iter().collect();
    let evaluated = network.forward(weights, &Pass::new(positions, wanted));
    in_order(network, evaluated)
}

/// Selects the network's exported outputs from all computed outputs.
pub(super) fn in_order(network: &dyn Evaluator, mut evaluated: Outputs) -> Vec<Tensor> {
    let outputs = network.interface().outputs.into_iter();
    let taken = outputs.map(|output| evaluated.take(output));
    taken
        .map(|tensor| tensor.expect("an output of its own"))
        .collect()
}
