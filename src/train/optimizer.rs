//! From gradients to steps, over the flat vector of all parameters.

use super::config::{OptimizerConfig, OptimizerKind};
use crate::model::Parameter;
use tch::{Device, Kind, Tensor};

/// Decay of NAdam's momentum schedule; PyTorch's default.
const MOMENTUM_DECAY: f64 = 4e-3;

/// Coefficients of the quintic Newton–Schulz iteration that brings singular
/// values near 1 in five rounds (Jordan et al. 2024).
const NEWTON_SCHULZ: (f64, f64, f64) = (3.4445, -4.7750, 2.0315);
const NEWTON_SCHULZ_ROUNDS: usize = 5;

/// The root mean square of Adam's steps, to which Muon's are scaled (Liu et al.
/// 2025, "Muon is scalable for LLM training").
const ADAM_STEP_SIZE: f64 = 0.2;

/// The optimizer's memory, with the learning rate left to the caller.
#[derive(Debug)]
pub(super) struct Optimizer {
    config: OptimizerConfig,
    /// 1 where weight decay applies, else 0.
    decayed: Tensor,
    matrices: Vec<MatrixGroup>,
    memory: Memory,
}

/// What the optimizer remembers between steps; saved in checkpoints.
#[derive(Debug)]
pub(super) struct Memory {
    /// Average of the gradients, f32 `[parameters]`.
    pub mean: Tensor,
    /// Average of the squared gradients, f32 `[parameters]`.
    pub square: Tensor,
    /// Muon's momentum, f32 `[parameters]`; zero outside its matrices.
    pub momentum: Tensor,
    /// Steps taken.
    pub steps: u64,
    /// Product of NAdam's momentum coefficients so far.
    pub momentum_product: f64,
}

impl Memory {
    /// The memory before the first step.
    pub fn new(parameters: i64, device: Device) -> Memory {
        let zeros = || Tensor::zeros([parameters], (Kind::Float, device));
        Memory {
            mean: zeros(),
            square: zeros(),
            momentum: zeros(),
            steps: 0,
            momentum_product: 1.0,
        }
    }
}

/// Matrices of one shape, whose steps are computed together.
#[derive(Debug)]
struct MatrixGroup {
    shape: [i64; 2],
    offsets: Vec<i64>,
}

impl Optimizer {
    pub fn new(config: &OptimizerConfig, parameters: &[Parameter], memory: Memory) -> Optimizer {
        let mut decayed = Vec::new();
        let mut matrices: Vec<MatrixGroup> = Vec::new();
        let mut offset = 0;
        for parameter in parameters {
            let is_matrix = is_matrix(parameter);
            let options = (Kind::Float, Device::Cpu);
            decayed.push(Tensor::full(
                [parameter.count()],
                f64::from(u8::from(is_matrix)),
                options,
            ));
            if let ([rows, columns], true) =
                (parameter.shape.as_slice(), is_orthogonalised(parameter))
            {
                let shape = [*rows, *columns];
                match matrices.iter_mut().find(|group| group.shape == shape) {
                    Some(group) => group.offsets.push(offset),
                    None => matrices.push(MatrixGroup {
                        shape,
                        offsets: vec![offset],
                    }),
                }
            }
            offset += parameter.count();
        }
        if config.kind == OptimizerKind::Nadam {
            matrices.clear();
        }
        Optimizer {
            config: config.clone(),
            decayed: Tensor::cat(&decayed, 0).to_device(memory.mean.device()),
            matrices,
            memory,
        }
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Moves `flat` one step against `gradient`; both f32 `[parameters]`.
    /// Returns the gradient's length before clipping, as a tensor so that
    /// nothing waits for the device.
    pub fn step(&mut self, flat: &mut Tensor, gradient: &Tensor, rate: f64) -> Tensor {
        let norm = gradient.norm();
        let gradient = if self.config.clip_norm > 0.0 {
            let scale: Tensor = (norm.reciprocal() * self.config.clip_norm).clamp_max(1.0);
            gradient * scale
        } else {
            gradient.shallow_clone()
        };
        let mut direction = self.nadam(&gradient);
        self.orthogonalise(&gradient, &mut direction);
        if self.config.weight_decay > 0.0 {
            let share = rate * self.config.weight_decay;
            *flat -= &self.decayed * &*flat * share;
        }
        *flat -= direction * rate;
        norm
    }

    /// The step of NAdam at learning rate 1, as torch.optim.NAdam defines it.
    fn nadam(&mut self, gradient: &Tensor) -> Tensor {
        let OptimizerConfig {
            beta1,
            beta2,
            epsilon,
            ..
        } = self.config;
        let memory = &mut self.memory;
        memory.steps += 1;
        let step = memory.steps as f64;
        let coefficient = |step: f64| beta1 * (1.0 - 0.5 * 0.96f64.powf(step * MOMENTUM_DECAY));
        let (now, next) = (coefficient(step), coefficient(step + 1.0));
        memory.momentum_product *= now;
        let product = memory.momentum_product;
        let _ = memory.mean.lerp_(gradient, 1.0 - beta1);
        memory.square *= beta2;
        memory.square += gradient.square() * (1.0 - beta2);
        let correction = 1.0 - beta2.powf(step);
        let scale = (&memory.square / correction).sqrt() + epsilon;
        let fresh = gradient * ((1.0 - now) / (1.0 - product));
        let momentum = &memory.mean * (next / (1.0 - product * next));
        (fresh + momentum) / scale
    }

    /// Replaces the steps of Muon's matrices by orthogonalised momentum.
    fn orthogonalise(&mut self, gradient: &Tensor, direction: &mut Tensor) {
        let decay = self.config.muon_momentum;
        if self.matrices.is_empty() {
            return;
        }
        let _ = self.memory.momentum.lerp_(gradient, 1.0 - decay);
        // Nesterov: the momentum as it will stand after one more such gradient.
        let ahead = gradient.lerp(&self.memory.momentum, decay);
        for MatrixGroup { shape, offsets } in &self.matrices {
            let count = shape[0] * shape[1];
            let slices: Vec<Tensor> = offsets
                .iter()
                .map(|&offset| ahead.narrow(0, offset, count).view(*shape))
                .collect();
            let steps = newton_schulz(&Tensor::stack(&slices, 0));
            let size = ADAM_STEP_SIZE * (shape[0].max(shape[1]) as f64).sqrt();
            for (&offset, step) in offsets.iter().zip((steps * size).unbind(0)) {
                let mut slice = direction.narrow(0, offset, count);
                slice.copy_(&step.reshape([count]));
            }
        }
    }
}

/// The nearest orthogonal matrix to each of a stack [n, rows, columns], to
/// within the accuracy that the method needs: singular values land in about
/// 0.7…1.2.
fn newton_schulz(stack: &Tensor) -> Tensor {
    let tall = stack.size()[1] > stack.size()[2];
    let x = if tall {
        stack.transpose(1, 2)
    } else {
        stack.shallow_clone()
    };
    let kind = match stack.device() {
        Device::Cpu => Kind::Float,
        _ => Kind::BFloat16,
    };
    let x = x.to_kind(kind);
    let length = x
        .square()
        .sum_dim_intlist([1i64, 2].as_slice(), true, Kind::Float)
        .sqrt();
    let mut x = x / (length + 1e-7).to_kind(kind);
    let (a, b, c) = NEWTON_SCHULZ;
    for _ in 0..NEWTON_SCHULZ_ROUNDS {
        let gram = x.bmm(&x.transpose(1, 2));
        let mixed = gram.baddbmm(&gram, &gram, b, c);
        x = x.baddbmm(&mixed, &x, a, 1.0);
    }
    let x = if tall { x.transpose(1, 2) } else { x };
    x.to_kind(Kind::Float)
}

/// Whether a parameter is the matrix of a dense layer.
fn is_matrix(parameter: &Parameter) -> bool {
    parameter.name.ends_with(".weight") && parameter.shape.len() == 2
}

/// Whether Muon moves a parameter: the matrices between tokens and tokens. It
/// is made for hidden layers; first and last ones keep NAdam.
fn is_orthogonalised(parameter: &Parameter) -> bool {
    let hidden = ["encoder.", "policy."];
    let outer = ["promotion", "generator"];
    is_matrix(parameter)
        && hidden.iter().any(|start| parameter.name.starts_with(start))
        && !outer.iter().any(|part| parameter.name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Initial;

    fn parameter(name: &str, shape: &[i64]) -> Parameter {
        Parameter {
            name: name.to_owned(),
            shape: shape.to_vec(),
            initial: Initial::Zeros,
        }
    }

    fn quadratic(config: &OptimizerConfig, parameters: &[Parameter], steps: usize) -> Vec<f32> {
        let count = parameters.iter().map(Parameter::count).sum();
        let memory = Memory::new(count, Device::Cpu);
        let mut optimizer = Optimizer::new(config, parameters, memory);
        let target = Tensor::arange(count, (Kind::Float, Device::Cpu)) / count as f64;
        let mut flat = Tensor::zeros([count], (Kind::Float, Device::Cpu));
        for step in 0..steps {
            let gradient = &flat - &target;
            // Both take steps of about the rate's size, however small the gradient.
            let rate = 0.02 * (1.0 - step as f64 / steps as f64);
            let _ = optimizer.step(&mut flat, &gradient, rate);
        }
        (flat - target).try_into().unwrap()
    }

    /// What PyTorch 2.11 makes of x = 0 in four steps of
    /// `torch.optim.NAdam([x], lr=0.01, betas=(0.9, 0.98), eps=1e-7)` on the
    /// loss (x − 0.25)² / 2.
    const NADAM_STEPS: [f64; 4] = [
        0.010_564_513_504_505_157,
        0.018_251_327_797_770_5,
        0.025_352_733_209_729_195,
        0.032_370_351_254_940_03,
    ];

    #[test]
    fn nadam_is_pytorchs() {
        let config = OptimizerConfig {
            clip_norm: 0.0,
            ..OptimizerConfig::default()
        };
        let parameters = [parameter("x.bias", &[1])];
        let mut optimizer = Optimizer::new(&config, &parameters, Memory::new(1, Device::Cpu));
        let mut x = Tensor::zeros([1], (Kind::Float, Device::Cpu));
        for expected in NADAM_STEPS {
            let gradient = &x - 0.25;
            let _ = optimizer.step(&mut x, &gradient, 0.01);
            assert!(
                (x.double_value(&[0]) - expected).abs() < 1e-8,
                "{x:?}, not {expected}"
            );
        }
    }

    #[test]
    fn both_optimizers_descend() {
        let parameters = [
            parameter("encoder.0.value.weight", &[4, 6]),
            parameter("encoder.0.value.bias", &[4]),
        ];
        for kind in [OptimizerKind::Nadam, OptimizerKind::Muon] {
            let config = OptimizerConfig {
                kind,
                ..OptimizerConfig::default()
            };
            let length = |left: Vec<f32>| left.iter().map(|x| x * x).sum::<f32>();
            let before = length(quadratic(&config, &parameters, 0));
            let after = length(quadratic(&config, &parameters, 400));
            assert!(after < before / 8.0, "{kind:?}: {before} to {after}");
        }
    }

    #[test]
    fn newton_schulz_makes_matrices_nearly_orthogonal() {
        tch::manual_seed(3);
        for shape in [[2, 8, 8], [2, 8, 20], [2, 20, 8]] {
            let stack = Tensor::randn(shape, (Kind::Float, Device::Cpu));
            let (_, values, _) = newton_schulz(&stack).svd(true, false);
            assert!(values.min().double_value(&[]) > 0.4);
            assert!(values.max().double_value(&[]) < 1.4);
        }
    }

    #[test]
    fn clipping_bounds_the_gradient() {
        let config = OptimizerConfig {
            clip_norm: 1.0,
            ..OptimizerConfig::default()
        };
        let parameters = [parameter("x.bias", &[2])];
        let mut optimizer = Optimizer::new(&config, &parameters, Memory::new(2, Device::Cpu));
        let mut flat = Tensor::zeros([2], (Kind::Float, Device::Cpu));
        let norm = optimizer.step(&mut flat, &Tensor::from_slice(&[300f32, 400.0]), 1.0);
        assert_eq!(norm.double_value(&[]), 500.0);
        let mean: Vec<f32> = optimizer.memory().mean.shallow_clone().try_into().unwrap();
        assert!((mean[0] - 0.06).abs() < 1e-6 && (mean[1] - 0.08).abs() < 1e-6);
    }
}
