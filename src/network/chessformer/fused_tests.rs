//! Compares fused blocks with the same blocks composed of libtorch's operators. In training, the
//! reference is f64, for which there are no kernels. In play, it is computed with the CPU's
//! instruction sets disabled.

use super::{Chessformer, ModelConfig, PositionConfig};
use crate::chess::Game;
use crate::encode::{Input, WIDTH};
use crate::network::Program;
use crate::network::config::chessformer::{EmbeddingConfig, NormKind};
use crate::network::{
    About, Architecture, Evaluator, Network, Output, OutputSet, Outputs, Pass, Positions, Weights,
};
use crate::torch::ComputeType;
use crate::torch::fused::{self, ALL_SETS, Block as _};
use shakmaty::Position;
use tch::{Device, Kind, Tensor};

/// Returns positions along a random game. `count` should exceed a chunk's size without being a
/// multiple of that size.
fn rows(count: usize) -> Tensor {
    let mut game = Game::default();
    let mut words: Vec<i64> = Vec::new();
    for ply in 0..count {
        words.extend(bytemuck::cast_slice::<u64, i64>(
            Input::encode(&game).words(),
        ));
        let moves = game.position().legal_moves();
        game.play(moves[(ply * 7 + 3) % moves.len()]);
    }
    Tensor::from_slice(&words).view([-1, WIDTH as i64])
}

/// The parameters that differ between the networks below.
struct Case {
    name: &'static str,
    width: i64,
    heads: i64,
    compress: i64,
    hidden: i64,
    edit: fn(&mut ModelConfig),
}

const CASES: [Case; 6] = [
    Case {
        name: "with attacks",
        width: 96,
        heads: 3,
        compress: 4,
        hidden: 32,
        edit: |config| (config.attacks, config.attack_bias) = (true, true),
    },
    Case {
        name: "without attacks",
        width: 96,
        heads: 3,
        compress: 4,
        hidden: 32,
        edit: |_| {},
    },
    Case {
        name: "root mean square norms, two policies",
        width: 64,
        heads: 2,
        compress: 8,
        hidden: 64,
        edit: |config| {
            config.norm = NormKind::Rms;
            config.soft_policy = true;
            (config.attacks, config.attack_bias) = (false, true);
        },
    },
    Case {
        name: "one head, a wide summary, odd numbers of features",
        width: 32,
        heads: 1,
        compress: 5,
        hidden: 96,
        edit: |config| {
            config.value_features = 5;
            config.attacks = true;
        },
    },
    Case {
        name: "an embedding without a kernel",
        width: 64,
        heads: 2,
        compress: 4,
        hidden: 32,
        edit: |config| {
            config.embedding = EmbeddingConfig::Global {
                board: 4,
                feed_forward: 64,
            };
            (config.attacks, config.attack_bias) = (true, true);
        },
    },
    Case {
        name: "heads too narrow for the kernels",
        width: 64,
        heads: 4,
        compress: 4,
        hidden: 32,
        edit: |config| (config.attacks, config.attack_bias) = (true, true),
    },
];

impl Case {
    fn model(&self) -> Chessformer {
        let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
        (config.layers, config.width, config.heads) = (2, self.width, self.heads);
        (config.feed_forward, config.norm) = (64, NormKind::Layer);
        config.soft_policy = false;
        config.position = PositionConfig::Gab {
            compress: self.compress,
            hidden: self.hidden,
            generator: 32,
        };
        (self.edit)(&mut config);
        Chessformer::new(&config, Device::Cpu).unwrap()
    }
}

/// Returns all outputs by name, f64.
fn named(outputs: &Outputs) -> Vec<(&'static str, Tensor)> {
    let all = Output::ALL.into_iter();
    let all = all.filter_map(|output| Some((output.name(), outputs.get(output)?)));
    all.map(|(name, x)| (name, x.to_kind(Kind::Double)))
        .collect()
}

/// Returns the outputs, computed in `kind`, and the gradient, f64 `[parameters]`, at `flat` of a
/// scalar that depends differently on each output.
fn gradient(
    model: &Chessformer,
    flat: &Tensor,
    rows: &Tensor,
    kind: Kind,
) -> (Vec<(&'static str, Tensor)>, Tensor) {
    let flat = flat.detach().copy().set_requires_grad(true);
    let weights = Weights::from_flat(&flat.to_kind(kind), model.parameters());
    let pass = Pass::new(Positions::Rows(rows), OutputSet::all());
    let outputs = named(&model.forward(&weights, &pass));
    let mixed = |(_, x): &(&str, Tensor)| {
        let signs = Tensor::arange(x.numel() as i64, (Kind::Double, Device::Cpu)).cos();
        (x.flatten(0, -1) * signs).sum(Kind::Double) / x.size()[0] as f64
    };
    let loss: Tensor = outputs.iter().map(mixed).sum();
    loss.backward();
    (outputs, flat.grad())
}

/// Returns the error of a tensor relative to the norm of the expected tensor, or to `least` if the
/// norm is smaller.
fn off(found: &Tensor, expected: &Tensor, least: f64) -> f64 {
    let length = expected.norm().double_value(&[]).max(least);
    (found - expected).norm().double_value(&[]) / length
}

/// Returns whether the CPU has kernels for this dtype when the given number of its fastest
/// instruction sets is disabled.
fn has_kernels(kind: Kind, sets: usize) -> bool {
    let like = Tensor::zeros([1], (kind, Device::Cpu));
    fused::without_fastest(sets, || fused::is_available(&like, &[]))
}

/// Returns f64 weights that bf16 represents exactly. Biases and gains are neither zeros nor ones.
fn weights(model: &Chessformer) -> Tensor {
    tch::manual_seed(3);
    let flat = model.initial_weights();
    let flat = (&flat + flat.randn_like() * 0.05).to_kind(Kind::BFloat16);
    flat.to_kind(Kind::Double)
}

#[test]
fn fused_blocks_have_the_outputs_and_gradients_of_composed_ones() {
    let tolerances = [(Kind::Float, 2e-5), (Kind::BFloat16, 0.1)];
    let rows = rows(11);
    for case in &CASES {
        let model = case.model();
        let flat = weights(&model);
        let (expected_outputs, expected) = gradient(&model, &flat, &rows, Kind::Double);
        // The minimum norm prevents nearly vanishing gradients from failing the relative tolerance.
        let least = expected.norm().double_value(&[]) * 0.01;
        let expected = Weights::from_flat(&expected, model.parameters());
        for (kind, tolerance) in tolerances {
            for sets in (0..ALL_SETS).filter(|&sets| has_kernels(kind, sets)) {
                let what = format!("{}, {kind:?}, without {sets} sets", case.name);
                let (outputs, found) =
                    fused::without_fastest(sets, || gradient(&model, &flat, &rows, kind));
                for ((name, found), (_, expected)) in outputs.iter().zip(&expected_outputs) {
                    let off = off(found, expected, 0.0);
                    assert!(off < tolerance, "{what}, {name}: off by {off}");
                }
                let found = Weights::from_flat(&found, model.parameters());
                let pairs = found.tensors().iter().zip(expected.tensors());
                for (parameter, (found, expected)) in model.parameters().iter().zip(pairs) {
                    let off = off(found, expected, least);
                    assert!(off < tolerance, "{what}, {}: off by {off}", parameter.name);
                }
            }
        }
    }
}

fn about(case: &Case) -> About {
    About {
        correction: None,
        name: case.name.to_owned(),
        search_value: "wdl".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    }
}

fn network(case: &Case) -> Network {
    let model = case.model();
    let flat = weights(&model);
    Network::new(Box::new(model), &flat, about(case))
}

/// Returns the outputs of a network in this dtype, and whether it multiplies in int8.
fn played(network: &Network, dtype: impl Into<ComputeType>, rows: &Tensor) -> (Vec<Tensor>, bool) {
    let frozen = network.freeze(dtype).unwrap();
    let outputs = frozen.forward(rows).unwrap();
    // The second call reuses the values that the first call cached.
    assert_eq!(frozen.forward(rows).unwrap(), outputs);
    (outputs, frozen.multiplies_in_int8())
}

#[test]
fn frozen_networks_are_as_exact_with_fused_blocks_as_without() {
    let rows = rows(40);
    for case in &CASES {
        let network = network(case);
        let evaluate =
            |kind: Kind, sets| fused::without_fastest(sets, || played(&network, kind, &rows).0);
        let exact = evaluate(Kind::Float, ALL_SETS);
        // In f32, libtorch computes the matrix multiplications, so the outputs are equal.
        assert_eq!(evaluate(Kind::Float, 0), exact, "{}", case.name);
        let off = |outputs: &[Tensor]| {
            let pairs = outputs.iter().zip(&exact);
            pairs
                .map(|(found, exact)| off(found, exact, 0.0))
                .sum::<f64>()
        };
        let composed = evaluate(Kind::BFloat16, ALL_SETS);
        for sets in (0..ALL_SETS).filter(|&sets| has_kernels(Kind::BFloat16, sets)) {
            let fused = evaluate(Kind::BFloat16, sets);
            let what = format!("{}, without {sets} sets", case.name);
            assert_ne!(fused, composed, "{what}");
            let (fused, composed) = (off(&fused), off(&composed));
            assert!(
                fused < 1.2 * composed,
                "{what}: off by {fused}, not {composed}"
            );
        }
    }
}

/// With every instruction set, int8 layers stay within the error of eight bits, or seven without
/// VNNI. Networks whose widths int8 does not support use the other dtype.
#[test]
fn frozen_networks_come_near_in_int8() {
    let rows = rows(40);
    for case in &CASES {
        let network = network(case);
        let evaluate = |dtype: ComputeType| {
            let (outputs, does) = played(&network, dtype, &rows);
            assert_eq!(does, dtype.int8 && case.width % 64 == 0, "{}", case.name);
            outputs
        };
        let exact = fused::without_fastest(ALL_SETS, || evaluate(Kind::Float.into()));
        for sets in 0..ALL_SETS {
            let compared = fused::without_fastest(sets, || {
                let int8 = fused::int8()?.dtype;
                Some((int8, evaluate(int8), evaluate(int8.kind.into())))
            });
            let Some((dtype, int8, plain)) = compared else {
                continue;
            };
            let what = format!("{}, without {sets} sets", case.name);
            if case.width % 64 == 0 {
                assert_ne!(int8, plain, "{what}");
            } else if dtype.kind == Kind::BFloat16 {
                assert_eq!(int8, plain, "{what}");
            }
            for (found, exact) in int8.iter().zip(&exact) {
                let off = off(found, exact, 0.0);
                assert!(off < 0.05, "{what}: off by {off}");
            }
        }
    }
}

/// Sums do not overflow when all weights and tokens have the largest integer values, and a NaN
/// input remains NaN in the output.
#[test]
fn layers_in_int8_are_right_at_their_extremes() {
    let ramp = Tensor::linspace(-1, 1, 64, (Kind::Float, Device::Cpu));
    let evaluate = |dtype: ComputeType, sign: f64, tokens: Tensor| {
        let cast = |tensor: &Tensor| tensor.to_kind(dtype.kind);
        // Rows of ones with the same sign, negative in half of the rows.
        let ones = (ramp.sign() * sign).view([64, 1]).expand([64, 64], false);
        let (weight, bias) = (&cast(&ones.contiguous()), &cast(&ramp.zeros_like()));
        let block = fused::FeedForward {
            widen: fused::Dense { weight, bias },
            narrow: fused::Dense { weight, bias },
            norm: fused::NormEnd {
                gain: 1.0,
                epsilon: 1e-5,
                weight: &cast(&(&ramp + 2.0)),
                bias: Some(bias),
            },
        };
        let packed = block.pack(dtype.int8);
        let y = block.infer(&cast(&tokens), &packed, dtype.int8);
        y.to_kind(Kind::Double)
    };
    let tokens = Tensor::ones([2, 64, 64], (Kind::Float, Device::Cpu));
    for sets in 0..ALL_SETS {
        for (sign, token) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0)] {
            let compared = fused::without_fastest(sets, || {
                let dtype = fused::int8()?.dtype;
                let odd = &tokens * token;
                let _ = odd.get(1).get(3).get(5).fill_(f64::NAN);
                Some((
                    evaluate(dtype, sign, &tokens * token),
                    evaluate(dtype.kind.into(), sign, &tokens * token),
                    evaluate(dtype, sign, odd),
                ))
            });
            let Some((found, exact, odd)) = compared else {
                continue;
            };
            let off = off(&found, &exact, 0.0);
            assert!(
                off < 0.01,
                "without {sets} sets, {sign} times {token}: off by {off}"
            );
            let is_nan =
                odd.isnan()
                    .to_kind(Kind::Int64)
                    .sum_dim_intlist([2].as_slice(), false, None);
            let expected = Tensor::zeros([2, 64], (Kind::Int64, Device::Cpu));
            let _ = expected.get(1).get(3).fill_(64);
            assert_eq!(is_nan, expected, "without {sets} sets");
        }
    }
}
