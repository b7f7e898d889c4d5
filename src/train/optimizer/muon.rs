//! Muon: orthogonalised momentum (Jordan et al. 2024).

use super::super::config::OptimizerConfig;
use super::matrices::MatrixGroup;
use super::rule::{Memory, Rule};
use crate::network::Parameter;
use crate::torch::environment;
use crate::train::parts::parts;
use crate::train::threads::Threads;
use tch::{Device, Kind, Tensor};

/// Coefficients of the quintic Newton–Schulz iteration, which brings singular values close to 1
/// within five iterations (Jordan et al. 2024).
const NEWTON_SCHULZ: (f64, f64, f64) = (3.4445, -4.7750, 2.0315);
const NEWTON_SCHULZ_ROUNDS: usize = 5;

/// Root mean square of Adam's steps, to which Muon's steps are scaled (Liu et al. 2025, "Muon is
/// scalable for LLM training").
const ADAM_STEP_SIZE: f64 = 0.2;

/// Muon for the hidden matrices.
#[derive(Debug)]
pub(super) struct Muon {
    groups: Vec<MatrixGroup>,
    /// The dtype in which matrices are orthogonalised.
    kind: Kind,
    decay: f64,
    /// Running mean of the gradient, `[parameters]`.
    momentum: Tensor,
}

impl Muon {
    pub fn new(
        config: &OptimizerConfig,
        parameters: &[Parameter],
        options: (Kind, Device),
    ) -> Muon {
        let count = parameters.iter().map(Parameter::count).sum::<i64>();
        Muon {
            groups: MatrixGroup::all(parameters),
            kind: match options {
                // The method was designed to tolerate bfloat16 (Jordan et al. 2024).
                (Kind::Float, Device::Cuda(_)) => Kind::BFloat16,
                (Kind::Float, Device::Cpu) if environment().cpu_bf16 => Kind::BFloat16,
                (kind, _) => kind,
            },
            decay: config.muon_momentum,
            momentum: Tensor::zeros([count], options),
        }
    }
}

impl Rule for Muon {
    fn direct(&mut self, gradient: &Tensor, direction: &mut Tensor, _step: u64, threads: &Threads) {
        let (decay, kind) = (self.decay, self.kind);
        let ahead = gradient.empty_like();
        let items = parts(gradient).map(|part| {
            let vectors = [gradient, &self.momentum, &ahead];
            vectors.map(|vector| part.of(vector))
        });
        threads.map(items.collect(), |[gradient, mut momentum, ahead]| {
            let _ = momentum.lerp_(&gradient, 1.0 - decay);
            // Nesterov momentum: the momentum as it would be after the same gradient once more.
            let _ = gradient.lerp_scalar_out(&ahead, &momentum, decay);
        });
        let shares = self
            .groups
            .iter()
            .flat_map(|group| group.split(threads.count()));
        let items = shares.map(|share| (share, ahead.shallow_clone(), direction.shallow_clone()));
        threads.map(items.collect(), |(share, ahead, mut direction)| {
            let steps = newton_schulz(&share.gather(&ahead), kind);
            let [rows, columns] = share.shape;
            let size = ADAM_STEP_SIZE * (rows.max(columns) as f64).sqrt();
            share.scatter(&(steps * size), &mut direction);
        });
    }

    fn memory(&self) -> Memory {
        vec![("muon.momentum".to_owned(), self.momentum.shallow_clone())]
    }
}

/// Returns the approximately nearest orthogonal matrix to each matrix of a stack [n, rows,
/// columns], computed in dtype `kind`. The singular values of the results are in about 0.7…1.2,
/// which is sufficient for Muon.
pub(super) fn newton_schulz(stack: &Tensor, kind: Kind) -> Tensor {
    let tall = stack.size()[1] > stack.size()[2];
    let x = if tall {
        stack.transpose(1, 2)
    } else {
        stack.shallow_clone()
    };
    let x = x.to_kind(kind);
    let length = x
        .square()
        .sum_dim_intlist([1i64, 2].as_slice(), true, stack.kind())
        .sqrt();
    let mut x = x / (length + 1e-7).to_kind(kind);
    let (a, b, c) = NEWTON_SCHULZ;
    for _ in 0..NEWTON_SCHULZ_ROUNDS {
        let gram = x.bmm(&x.transpose(1, 2));
        let mixed = gram.baddbmm(&gram, &gram, b, c);
        x = x.baddbmm(&mixed, &x, a, 1.0);
    }
    let x = if tall { x.transpose(1, 2) } else { x };
    x.to_kind(stack.kind())
}
