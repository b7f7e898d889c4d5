//! Tests the optimizers on small problems.

use super::super::config::DecayRule;
use super::muon::newton_schulz;
use super::*;
use crate::network::{Initial, ParameterGroup, Weights};
use crate::torch::fused;
use std::path::{Path, PathBuf};
use std::process::Command;
use tch::Kind;

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
const EXACT: (Kind, Device) = (Kind::Double, Device::Cpu);

/// Returns a parameter; matrices in an encoder are hidden, and other parameters are not.
fn parameter(name: &str, shape: &[i64]) -> Parameter {
    Parameter {
        name: name.to_owned(),
        shape: shape.to_vec(),
        initial: Initial::Zeros,
        group: match shape {
            [_, _] if name.starts_with("encoder.") => ParameterGroup::Hidden,
            [_, _] => ParameterGroup::Outer,
            _ => ParameterGroup::Other,
        },
    }
}

fn quadratic(config: &OptimizerConfig, parameters: &[Parameter], steps: usize) -> Vec<f32> {
    let count = parameters.iter().map(Parameter::count).sum();
    let mut optimizer = Optimizer::new(config, &[], parameters, OPTIONS);
    let target = Tensor::arange(count, (Kind::Float, Device::Cpu)) / count as f64;
    let mut flat = Tensor::zeros([count], (Kind::Float, Device::Cpu));
    for step in 0..steps {
        let gradient = &flat - &target;
        // The size of a step is about the learning rate, however small the gradient is.
        let rate = 0.02 * (1.0 - step as f64 / steps as f64);
        let _ = optimizer.step(&mut flat, &gradient, rate, &Threads::one());
    }
    (flat - target).try_into().unwrap()
}

/// Values of x after each of four steps from 0 on the loss (x − 0.25)² / 2, computed by PyTorch
/// 2.11 with `torch.optim.NAdam([x], lr=0.01, betas=(0.9, 0.98), eps=1e-7)`.
const NADAM_STEPS: [f64; 4] = [
    0.010_564_513_504_505_157,
    0.018_251_327_797_770_5,
    0.025_352_733_209_729_195,
    0.032_370_351_254_940_03,
];

/// Simulates a rollback to a checkpoint that a different optimizer may have written.
#[test]
fn an_optimizer_that_goes_back_begins_anew() {
    let parameters = [parameter("encoder.0.value.weight", &[4, 6])];
    for kind in KINDS {
        let config = OptimizerConfig {
            kind,
            ..OptimizerConfig::default()
        };
        let steps = |optimizer: &mut Optimizer| -> Vec<f32> {
            let mut flat = Tensor::zeros([24], OPTIONS);
            for step in 0..3 {
                let gradient = Tensor::arange(24, OPTIONS).sin() + f64::from(step);
                let _ = optimizer.step(&mut flat, &gradient, 0.01, &Threads::one());
            }
            flat.try_into().unwrap()
        };
        let fresh = || Optimizer::new(&config, &[], &parameters, OPTIONS);
        let expected = steps(&mut fresh());
        let mut used = fresh();
        for _ in 0..10 {
            steps(&mut used);
        }
        let nothing = Tensor::full([24], f64::NAN, OPTIONS);
        let _ = used.step(
            &mut Tensor::zeros([24], OPTIONS),
            &nothing,
            0.01,
            &Threads::one(),
        );
        used.restore(0, &Vec::new());
        assert_eq!(steps(&mut used), expected, "{kind:?}");
    }
}

#[test]
fn nadam_is_pytorchs() {
    let config = OptimizerConfig {
        clip_norm: 0.0,
        ..OptimizerConfig::default()
    };
    let parameters = [parameter("x.bias", &[1])];
    let mut optimizer = Optimizer::new(&config, &[], &parameters, OPTIONS);
    let mut x = Tensor::zeros([1], (Kind::Float, Device::Cpu));
    for expected in NADAM_STEPS {
        let gradient = &x - 0.25;
        let _ = optimizer.step(&mut x, &gradient, 0.01, &Threads::one());
        assert!(
            (x.double_value(&[0]) - expected).abs() < 1e-8,
            "{x:?}, not {expected}"
        );
    }
}

#[test]
fn the_fused_nadam_takes_the_steps_of_the_composed_one() {
    // The size is not a multiple of a register's width.
    let parameters = [parameter("x.weight", &[1003])];
    let train = || -> Vec<f32> {
        let mut optimizer = Optimizer::new(&OptimizerConfig::default(), &[], &parameters, OPTIONS);
        let mut flat = Tensor::arange(1003, OPTIONS).cos();
        for step in 0..8 {
            let gradient = (&flat * 5.0 + f64::from(step)).sin();
            let _ = optimizer.step(&mut flat, &gradient, 0.01, &Threads::one());
        }
        flat.try_into().unwrap()
    };
    let composed = fused::without_fastest(fused::ALL_SETS, train);
    for sets in 0..fused::ALL_SETS {
        let fused = fused::without_fastest(sets, train);
        for (fused, composed) in fused.iter().zip(&composed) {
            assert!(
                (fused - composed).abs() < 1e-6,
                "{sets}: {fused}, not {composed}"
            );
        }
    }
}

#[test]
fn every_optimizer_descends() {
    let parameters = [
        parameter("encoder.0.value.weight", &[4, 6]),
        parameter("encoder.0.value.bias", &[4]),
    ];
    for kind in KINDS {
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
fn threads_share_a_step_without_changing_it() {
    let mut parameters = vec![parameter("encoder.embedding.bias", &[40_000])];
    for layer in 0..5 {
        let name = format!("encoder.{layer}.value.weight");
        parameters.push(parameter(&name, &[4, 6]));
    }
    let count = parameters.iter().map(Parameter::count).sum::<i64>();
    for kind in KINDS {
        let config = OptimizerConfig {
            kind,
            soap_frequency: 3,
            ..OptimizerConfig::default()
        };
        let train = |threads: &Threads| {
            let mut optimizer = Optimizer::new(&config, &[], &parameters, EXACT);
            let mut flat = Tensor::arange(count, EXACT).cos();
            for step in 0..8 {
                let gradient = (&flat * 5.0 + f64::from(step)).sin();
                let _ = optimizer.step(&mut flat, &gradient, 0.01, threads);
            }
            flat
        };
        let alone = train(&Threads::one());
        for count in [2, 3, 8] {
            let shared = train(&Threads::new(count).unwrap());
            let off = (shared - &alone).abs().max().double_value(&[]);
            assert!(off < 1e-12, "{kind:?}, {count} threads: off by {off}");
        }
    }
}

#[test]
fn newton_schulz_makes_matrices_nearly_orthogonal() {
    tch::manual_seed(3);
    for shape in [[2, 8, 8], [2, 8, 20], [2, 20, 8]] {
        let stack = Tensor::randn(shape, (Kind::Float, Device::Cpu));
        for kind in [Kind::Float, Kind::BFloat16] {
            let near = newton_schulz(&stack, kind);
            assert_eq!(near.kind(), Kind::Float);
            let (_, values, _) = near.svd(true, false);
            assert!(values.min().double_value(&[]) > 0.4, "{kind:?}");
            assert!(values.max().double_value(&[]) < 1.4, "{kind:?}");
        }
    }
}

#[test]
fn clipping_bounds_the_gradient() {
    let config = OptimizerConfig {
        clip_norm: 1.0,
        ..OptimizerConfig::default()
    };
    let parameters = [parameter("x.bias", &[2])];
    let mut optimizer = Optimizer::new(&config, &[], &parameters, OPTIONS);
    let mut flat = Tensor::zeros([2], (Kind::Float, Device::Cpu));
    let norm = optimizer.step(
        &mut flat,
        &Tensor::from_slice(&[300f32, 400.0]),
        1.0,
        &Threads::one(),
    );
    assert_eq!(norm.double_value(&[]), 500.0);
    let (name, mean) = optimizer.memory().remove(0);
    assert_eq!(name, "nadam.mean");
    let mean: Vec<f32> = mean.try_into().unwrap();
    assert!((mean[0] - 0.06).abs() < 1e-6 && (mean[1] - 0.08).abs() < 1e-6);
}

/// A network with two layers, tanh(x·innerᵀ + bias)·outerᵀ, on five examples.
struct Problem {
    parameters: [Parameter; 3],
    x: Tensor,
    y: Tensor,
}

impl Problem {
    fn new() -> Problem {
        let row = |count: i64| Tensor::arange(count, (Kind::Double, Device::Cpu));
        Problem {
            parameters: [
                parameter("inner.weight", &[3, 4]),
                parameter("inner.bias", &[3]),
                parameter("outer.weight", &[2, 3]),
            ],
            x: (row(20) * 0.7).sin().view([5, 4]),
            y: (row(10) * 1.3).cos().view([5, 2]),
        }
    }

    fn start(&self) -> Tensor {
        let row = |count: i64| Tensor::arange(count, (Kind::Double, Device::Cpu));
        let zeros = Tensor::zeros([3], (Kind::Double, Device::Cpu));
        Tensor::cat(&[row(12).sin(), zeros, row(6).cos()], 0)
    }

    fn loss(&self, flat: &Tensor) -> Tensor {
        let weights = Weights::from_flat(flat, &self.parameters);
        let [inner, bias, outer] = weights.tensors() else {
            unreachable!("three parameters");
        };
        let hidden = self.x.linear(inner, Some(bias)).tanh();
        let off = hidden.linear(outer, None::<&Tensor>) - &self.y;
        off.square().sum(Kind::Double)
    }

    fn gradient(&self, flat: &Tensor) -> Tensor {
        let flat = flat.detach().copy().set_requires_grad(true);
        self.loss(&flat).backward();
        flat.grad()
    }

    /// Returns the parameters after each step at a learning rate of 0.01.
    fn train(&self, optimizer: &mut Optimizer, flat: &mut Tensor, steps: usize) -> Vec<Vec<f64>> {
        let step = |_| {
            let gradient = self.gradient(flat);
            let _ = optimizer.step(flat, &gradient, 0.01, &Threads::one());
            Vec::try_from(&*flat).unwrap()
        };
        (0..steps).map(step).collect()
    }
}

/// Parameters 0, 7, 12, 17 and 20 after some steps, as computed by tests/python/nadam.py with
/// PyTorch 2.11.
const NADAM_TRAINED: [(usize, [f64; 5]); 5] = [
    (1, [0.0105645, 0.6457651, -0.0105645, -0.4051662, 0.2728140]),
    (2, [0.0183846, 0.6372751, -0.0179491, -0.3969986, 0.2646731]),
    (
        10,
        [0.0802364, 0.5699270, -0.0754441, -0.3340605, 0.1995091],
    ),
    (
        100,
        [0.3529106, -0.0720172, 0.0234296, -0.5463449, -0.4573142],
    ),
    (
        300,
        [0.3617979, -0.1754678, -0.0021020, -0.3750513, -0.4283360],
    ),
];

fn nadam_trained() -> Vec<Vec<f64>> {
    let problem = Problem::new();
    let config = OptimizerConfig {
        weight_decay: 0.1,
        clip_norm: 2.0,
        ..OptimizerConfig::default()
    };
    let mut optimizer = Optimizer::new(&config, &[], &problem.parameters, EXACT);
    problem.train(&mut optimizer, &mut problem.start(), 300)
}

/// Compares every step with PyTorch, if it is installed.
#[test]
fn nadam_stays_with_pytorchs_over_many_steps() {
    let found = nadam_trained();
    for (step, expected) in NADAM_TRAINED {
        for (place, expected) in [0, 7, 12, 17, 20].into_iter().zip(expected) {
            let off = found[step - 1][place] - expected;
            assert!(off.abs() < 1e-6, "step {step}, {place}: off by {off}");
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = root.join("tests/python/nadam.py");
    let run = [root.join(".venv/bin/python"), PathBuf::from("python3")]
        .into_iter()
        .filter_map(|python| Command::new(python).arg(&script).output().ok())
        .find(|output| output.status.success());
    let Some(output) = run else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    let expected: Vec<Vec<f64>> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(found.len(), expected.len());
    for (step, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            let off = found - expected;
            assert!(off.abs() < 1e-9, "step {}: off by {off}", step + 1);
        }
    }
}

const KINDS: [OptimizerKind; 3] = [
    OptimizerKind::Nadam,
    OptimizerKind::Muon,
    OptimizerKind::Soap,
];

#[test]
fn a_restored_optimizer_goes_on_bit_by_bit() {
    let mut problem = Problem::new();
    problem.parameters[0].name = "encoder.inner.weight".to_owned();
    for kind in KINDS {
        let config = OptimizerConfig {
            kind,
            soap_frequency: 4,
            ..OptimizerConfig::default()
        };
        let new = || Optimizer::new(&config, &[], &problem.parameters, EXACT);
        let (mut whole, mut flat) = (new(), problem.start());
        problem.train(&mut whole, &mut flat, 10);
        let (steps, memory, mut copy) = (whole.steps, whole.memory(), flat.copy());
        let expected = problem.train(&mut whole, &mut flat, 10);
        let mut restored = new();
        restored.restore(steps, &memory);
        let found = problem.train(&mut restored, &mut copy, 10);
        assert_eq!(found, expected, "{kind:?}");
    }
}

#[test]
fn another_optimizer_takes_over() {
    let mut problem = Problem::new();
    problem.parameters[0].name = "encoder.inner.weight".to_owned();
    let with = |kind| {
        let config = OptimizerConfig {
            kind,
            ..OptimizerConfig::default()
        };
        Optimizer::new(&config, &[], &problem.parameters, EXACT)
    };
    for (before, after) in KINDS
        .into_iter()
        .flat_map(|kind| KINDS.map(|other| (kind, other)))
    {
        let (mut first, mut flat) = (with(before), problem.start());
        problem.train(&mut first, &mut flat, 20);
        let loss = problem.loss(&flat).double_value(&[]);
        let mut second = with(after);
        second.restore(first.steps, &first.memory());
        problem.train(&mut second, &mut flat, 20);
        let later = problem.loss(&flat).double_value(&[]);
        assert!(later < loss, "{before:?} to {after:?}: {loss} to {later}");
    }
}

#[test]
fn frozen_parameters_stay_and_count_for_nothing() {
    let problem = Problem::new();
    let config = OptimizerConfig {
        weight_decay: 0.1,
        ..OptimizerConfig::default()
    };
    let frozen = ["inner.*".to_owned()];
    let mut free = Optimizer::new(&config, &[], &problem.parameters, EXACT);
    let mut flat = problem.start();
    problem.train(&mut free, &mut flat, 5);
    // Momentum from before the freeze must not move the frozen parameters either.
    let mut optimizer = Optimizer::new(&config, &frozen, &problem.parameters, EXACT);
    optimizer.restore(free.steps, &free.memory());
    let before: Vec<f64> = Vec::try_from(&flat).unwrap();
    let gradient = problem.gradient(&flat);
    let norm = optimizer.step(&mut flat, &gradient, 0.01, &Threads::one());
    let after: Vec<f64> = Vec::try_from(&flat).unwrap();
    assert_eq!(before[..15], after[..15]);
    assert!((15..21).all(|place| before[place] != after[place]));
    let outer = gradient.narrow(0, 15, 6).norm().double_value(&[]);
    assert!((norm.double_value(&[]) - outer).abs() < 1e-9);
}

#[test]
fn the_first_rule_that_matches_says_what_decays() {
    let problem = Problem::new();
    let rule = |pattern: &str, weight_decay| DecayRule {
        pattern: pattern.to_owned(),
        weight_decay,
    };
    let config = OptimizerConfig {
        weight_decay: 0.5,
        decay: vec![rule("inner.weight", 0.0), rule("inner.*", 0.25)],
        ..OptimizerConfig::default()
    };
    let mut optimizer = Optimizer::new(&config, &[], &problem.parameters, EXACT);
    let mut flat = Tensor::ones([21], (Kind::Double, Device::Cpu));
    let _ = optimizer.step(
        &mut flat,
        &Tensor::zeros([21], (Kind::Double, Device::Cpu)),
        1.0,
        &Threads::one(),
    );
    let left: Vec<f64> = Vec::try_from(&flat).unwrap();
    let expected = [[1.0; 12].as_slice(), &[0.75; 3], &[0.5; 6]].concat();
    assert_eq!(left, expected);
}

/// If the eigenvectors of the covariances are the matrix's own axes, SOAP equals Adam. This is
/// the case for a diagonal matrix with diagonal gradients.
#[test]
fn soap_runs_adam_in_the_eigenbasis() {
    let parameters = [parameter("encoder.x.weight", &[3, 3])];
    let config = OptimizerConfig {
        kind: OptimizerKind::Soap,
        clip_norm: 0.0,
        ..OptimizerConfig::default()
    };
    let mut optimizer = Optimizer::new(&config, &[], &parameters, EXACT);
    tch::manual_seed(4);
    let noise = Tensor::randn([3, 3], (Kind::Double, Device::Cpu));
    let (left, _) = Tensor::linalg_qr(&noise, "reduced");
    let (right, _) = Tensor::linalg_qr(&noise.transpose(0, 1), "reduced");
    let turned = |diagonal: [f64; 3]| {
        let diagonal = Tensor::from_slice(&diagonal).diag(0);
        left.matmul(&diagonal).matmul(&right)
    };
    let gradients = [[3.0, -2.0, 1.0], [2.0, 1.0, -0.5], [4.0, -1.0, 0.25]];
    let mut flat = Tensor::zeros([9], (Kind::Double, Device::Cpu));
    let (mut mean, mut square) = ([0.0f64; 3], [0.0f64; 3]);
    for (step, gradient) in gradients.into_iter().enumerate() {
        let before = flat.copy();
        let _ = optimizer.step(
            &mut flat,
            &turned(gradient).reshape([9]),
            1.0,
            &Threads::one(),
        );
        if step == 0 {
            // The first gradient only initializes the bases.
            continue;
        }
        let mut expected = [0.0; 3];
        for axis in 0..3 {
            mean[axis] = 0.9 * mean[axis] + 0.1 * gradient[axis];
            square[axis] = 0.98 * square[axis] + 0.02 * gradient[axis] * gradient[axis];
            let unbiased = |beta: f64| 1.0 - beta.powi(step as i32);
            expected[axis] = mean[axis] / unbiased(0.9) / (square[axis] / unbiased(0.98)).sqrt();
        }
        let off = (before - &flat).view([3, 3]) - turned(expected);
        let off = off.abs().max().double_value(&[]);
        assert!(off < 1e-6, "step {step}: off by {off}");
    }
}
