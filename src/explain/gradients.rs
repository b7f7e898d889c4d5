//! Integrated gradients (Sundararajan, Taly and Yan, 2017) over the input planes.
//!
//! The path is a straight line from the board with only the kings to the complete position.
//! Castling rights, repetitions and counters are constant along the path. Derived features, such as
//! attacks, are recomputed at every point. The gradients are integrated with the trapezoidal rule,
//! and the number of steps is doubled until the sum of the attributions equals the difference
//! between the outputs at the two ends.

use super::ExplainError;
use super::evaluator::{BATCH, Evaluator, floats};
use crate::chess::Game;
use crate::encode::{HISTORY, PLANES_PER_BOARD};
use crate::network::{Positions, Tap};
use serde::Serialize;
use shakmaty::Role;
use tch::{Kind, Tensor};

/// Maximum error of the sum of the attributions, as a fraction of the difference between the
/// outputs.
pub const TOLERANCE: f32 = 0.01;
/// Minimum number of steps.
const FEWEST: usize = 16;
/// Maximum number of steps, after which the remainder is reported. For tessera-xs, this number of
/// steps takes a second on one core.
pub const MOST: usize = 256;
/// The cost of an evaluation with its gradient, in evaluations without gradients.
const GRADIENT_COST: usize = 3;

/// Attributions of the value and of a move.
#[derive(Clone, Debug, Serialize)]
pub struct Gradients {
    /// Attribution of the expected result of the side to move.
    pub value: Attribution,
    /// Attribution of the natural logarithm of the move's probability among the legal moves.
    #[serde(rename = "move")]
    pub mv: Attribution,
    /// Number of steps of the trapezoidal rule.
    pub steps: usize,
}

/// Each square's contribution to one output.
#[derive(Clone, Debug, Serialize)]
pub struct Attribution {
    /// The contributions of the 64 squares. A square's contribution includes its history.
    pub squares: Vec<f32>,
    /// The output for the board with only the kings.
    pub baseline: f32,
    /// The output for the position.
    pub output: f32,
    /// The fraction of `output − baseline` that the contributions do not explain.
    pub remainder: f32,
}

/// Two outputs at each point of a path, and the sums of their gradients over the points.
struct Sums {
    /// [2, n, 8, 8].
    gradients: Tensor,
    /// The outputs at the points, [2, points].
    outputs: [Vec<f32>; 2],
}

/// The path from the board with only the kings to the position.
struct Path<'a> {
    evaluator: &'a Evaluator<'a>,
    /// The planes [1, n, 8, 8] of the board with only the kings.
    baseline: Tensor,
    /// The difference between the position's planes and the baseline.
    difference: Tensor,
    /// The other inputs of the network, `[1]` each.
    others: Vec<Tensor>,
    /// The policy indices of the legal moves.
    indices: Tensor,
    /// The index of the explained move among the legal moves.
    mv: i64,
}

/// Attributes the value, and the probability of the legal move with index `mv`, to the squares.
pub(super) fn integrate(
    evaluator: &Evaluator,
    game: &Game,
    mv: usize,
) -> Result<Gradients, ExplainError> {
    let interface = evaluator.network.architecture.interface();
    let mut planes = interface.planes_of(&evaluator.rows(std::slice::from_ref(game)));
    let position = planes.remove(0);
    let baseline = &position * kept_planes(position.size()[1]);
    let path = Path {
        evaluator,
        difference: &position - &baseline,
        baseline,
        others: planes,
        indices: Tensor::from_slice(&evaluator.indices(game)),
        mv: mv as i64,
    };
    let most = (evaluator.affordable() / GRADIENT_COST).clamp(FEWEST, MOST);
    let ends = path.sum(&[0.0, 1.0]);
    // Apply the trapezoidal rule with one step, then repeatedly halve the steps by adding their
    // midpoints.
    let mut mean = &ends.gradients / 2.0;
    let mut steps = 1;
    loop {
        let middles = (0..steps).map(|step| (step as f64 + 0.5) / steps as f64);
        let middles = path.sum(&middles.collect::<Vec<_>>());
        mean = (mean + middles.gradients / steps as f64) / 2.0;
        steps *= 2;
        let seen = evaluator.seen(game);
        let [value, mv] = [0, 1].map(|target| {
            let contributions = &path.difference.get(0) * mean.get(target as i64);
            let by_square = contributions.sum_dim_intlist([0i64].as_slice(), false, None::<Kind>);
            Attribution::new(&floats(&by_square), &seen, &ends.outputs[target])
        });
        let is_finite = [&value, &mv].iter().all(|it| it.remainder.is_finite());
        if !is_finite {
            let name = evaluator.network.about.name.clone();
            return Err(ExplainError::NotFinite(name));
        }
        let is_close = |it: &Attribution| it.remainder.abs() <= TOLERANCE;
        if steps >= FEWEST && (is_close(&value) && is_close(&mv) || 2 * steps > most) {
            return Ok(Gradients { value, mv, steps });
        }
    }
}

/// Returns a factor for each plane, [1, planes, 1, 1]: 0 for pieces other than kings, and 1 for all
/// other planes.
fn kept_planes(planes: i64) -> Tensor {
    let boards = HISTORY * PLANES_PER_BOARD;
    let kinds = Role::ALL.len();
    let kept = (0..planes as usize).map(|plane| {
        let kind = plane % PLANES_PER_BOARD;
        let is_piece = plane < boards && kind < 2 * kinds;
        let is_king = kind % kinds == kinds - 1;
        f32::from(u8::from(!is_piece || is_king))
    });
    Tensor::from_slice(&kept.collect::<Vec<_>>()).view([1, -1, 1, 1])
}

impl Path<'_> {
    /// Evaluates the network, with gradients, at these points of the path. Points are in 0…1.
    fn sum(&self, places: &[f64]) -> Sums {
        let mut outputs = [Vec::new(), Vec::new()];
        let zeros = self.difference.get(0).zeros_like();
        let mut gradients = [zeros.copy(), zeros];
        for places in places.chunks(BATCH) {
            let count = places.len() as i64;
            let at = Tensor::from_slice(places).to_kind(Kind::Float);
            let planes = &self.baseline + at.view([-1, 1, 1, 1]) * &self.difference;
            let planes = planes.detach().set_requires_grad(true);
            let others = self.others.iter().map(|other| other.expand([count], false));
            let given: Vec<Tensor> = [planes.shallow_clone()].into_iter().chain(others).collect();
            let weights = &self.evaluator.network.weights;
            let positions = Positions::Planes(&given);
            let found = self.evaluator.forward(weights, positions, Tap::default());
            let policy = found.policy().index_select(1, &self.indices);
            let priors = policy.log_softmax(-1, Kind::Float).select(1, self.mv);
            let targets = [self.evaluator.q(&found), priors];
            for ((target, sum), outputs) in targets.iter().zip(&mut gradients).zip(&mut outputs) {
                let total = target.sum(Kind::Float);
                let found = Tensor::run_backward(&[total], &[&planes], true, false);
                *sum += found[0].sum_dim_intlist([0i64].as_slice(), false, None::<Kind>);
                outputs.extend(floats(target));
            }
        }
        Sums {
            gradients: Tensor::stack(&gradients, 0),
            outputs,
        }
    }
}

impl Attribution {
    /// Creates an attribution from the contributions, in the order of the squares that the network
    /// sees, and from the outputs at both ends of the path.
    fn new(contributions: &[f32], seen: &[usize; 64], ends: &[f32]) -> Attribution {
        let (baseline, output) = (ends[0], ends[1]);
        let squares: Vec<f32> = seen.iter().map(|&square| contributions[square]).collect();
        let sum: f64 = contributions.iter().copied().map(f64::from).sum();
        let difference = f64::from(output) - f64::from(baseline);
        let missing = difference - sum;
        let share = match difference == 0.0 {
            // The two ends have the same output, so there is nothing to explain.
            true => missing,
            false => missing / difference,
        };
        Attribution {
            squares,
            baseline,
            output,
            remainder: share as f32,
        }
    }
}
