//! NAdam: Adam with Nesterov momentum (Dozat 2016), as PyTorch computes it.

use super::super::config::OptimizerConfig;
use super::rule::{Memory, Rule};
use crate::network::Parameter;
use crate::torch::fused;
use crate::train::parts::parts;
use crate::train::threads::Threads;
use tch::{Device, Kind, Tensor};

/// Decay of the momentum schedule; this is PyTorch's default.
const MOMENTUM_DECAY: f64 = 4e-3;

/// NAdam for all parameters.
#[derive(Debug)]
pub(super) struct Nadam {
    beta1: f64,
    beta2: f64,
    epsilon: f64,
    /// Running mean of the gradient, `[parameters]`.
    mean: Tensor,
    /// Running mean of the squared gradient, `[parameters]`.
    square: Tensor,
    /// The number of steps taken, and the product of the momentum coefficients of these steps.
    product: (u64, f64),
}

impl Nadam {
    pub fn new(
        config: &OptimizerConfig,
        parameters: &[Parameter],
        options: (Kind, Device),
    ) -> Nadam {
        let count = parameters.iter().map(Parameter::count).sum::<i64>();
        let zeros = || Tensor::zeros([count], options);
        Nadam {
            beta1: config.beta1,
            beta2: config.beta2,
            epsilon: config.epsilon,
            mean: zeros(),
            square: zeros(),
            product: (0, 1.0),
        }
    }

    /// Returns the momentum coefficient of a step.
    fn coefficient(&self, step: u64) -> f64 {
        self.beta1 * (1.0 - 0.5 * 0.96f64.powf(step as f64 * MOMENTUM_DECAY))
    }
}

impl Rule for Nadam {
    fn direct(&mut self, gradient: &Tensor, direction: &mut Tensor, step: u64, threads: &Threads) {
        let (now, next) = (self.coefficient(step), self.coefficient(step + 1));
        if self.product.0 >= step {
            // The run rolled back.
            self.product = (0, 1.0);
        }
        // Usually, this loop multiplies by a single factor. After loading a checkpoint, it computes
        // the product over all previous steps, so that checkpoints need not store the product.
        for step in self.product.0 + 1..=step {
            self.product = (step, self.product.1 * self.coefficient(step));
        }
        let product = self.product.1;
        let correction = 1.0 - self.beta2.powf(step as f64);
        let fresh = (1.0 - now) / (1.0 - product);
        let kept = next / (1.0 - product * next);
        let (beta1, beta2, epsilon) = (self.beta1, self.beta2, self.epsilon);
        let is_fused = gradient.kind() == Kind::Float && fused::is_available(gradient, &[]);
        let items = parts(gradient).map(|part| {
            let vectors = [gradient, &self.mean, &self.square, direction];
            vectors.map(|vector| part.of(vector))
        });
        threads.map(
            items.collect(),
            |[gradient, mut mean, mut square, mut direction]| {
                if is_fused {
                    let step = fused::Nadam {
                        beta1,
                        beta2,
                        epsilon,
                        correction,
                        fresh,
                        kept,
                    };
                    step.step(&gradient, [&mut mean, &mut square, &mut direction]);
                    return;
                }
                let _ = mean.lerp_(&gradient, 1.0 - beta1);
                square *= beta2;
                square += gradient.square() * (1.0 - beta2);
                let scale = (square / correction).sqrt() + epsilon;
                let step = (gradient * fresh + mean * kept) / scale;
                direction.copy_(&step);
            },
        );
    }

    fn memory(&self) -> Memory {
        vec![
            ("nadam.mean".to_owned(), self.mean.shallow_clone()),
            ("nadam.square".to_owned(), self.square.shallow_clone()),
        ]
    }
}
