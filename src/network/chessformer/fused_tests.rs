//! Fused blocks against the same composed of libtorch's operators, in double
//! precision: there are no kernels for it.

use super::config::NormKind;
use super::{Chessformer, ModelConfig, PositionConfig};
use crate::chess::Game;
use crate::encode::{Input, WIDTH};
use crate::network::{Architecture, Output, OutputSet, Outputs, Positions, Tap, Weights};
use shakmaty::Position;
use tch::{Device, Kind, Tensor};

/// Positions along a random game: more than a chunk of boards, and no multiple of
/// one.
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

fn config(norm: NormKind, attack_bias: bool) -> ModelConfig {
    let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
    config.layers = 2;
    (config.width, config.heads, config.feed_forward) = (96, 3, 64);
    config.norm = norm;
    config.position = PositionConfig::Gab {
        compress: 4,
        hidden: 16,
        generator: 32,
    };
    (config.attacks, config.attack_bias) = (attack_bias, attack_bias);
    config
}

/// A number that depends on all outputs, each in a way of its own.
fn loss(outputs: &Outputs) -> Tensor {
    let mixed = |x: &Tensor| {
        let signs = Tensor::arange(x.numel() as i64, (Kind::Double, Device::Cpu)).cos();
        (x.to_kind(Kind::Double).flatten(0, -1) * signs).sum(Kind::Double)
    };
    mixed(outputs.policy()) * 0.1
        + mixed(outputs.wdl())
        + mixed(outputs.get(Output::Q).unwrap())
        + mixed(outputs.get(Output::MovesLeft).unwrap()) * 0.1
}

/// The loss and the gradient of `flat`, f64 `[parameters]`, computed in `kind`.
fn gradient(model: &Chessformer, flat: &Tensor, rows: &Tensor, kind: Kind) -> (f64, Tensor) {
    let flat = flat.detach().copy().set_requires_grad(true);
    let weights = Weights::from_flat(&flat.to_kind(kind), model.parameters());
    let wanted = OutputSet::all().without(Output::PolicySoft);
    let positions = Positions::Rows(rows);
    let loss = loss(&model.forward(&weights, positions, wanted, &Tap::default()));
    loss.backward();
    (loss.double_value(&[]), flat.grad())
}

#[test]
fn fused_blocks_have_the_gradients_of_composed_ones() {
    // Of f32 and of bf16, relative to the length of a parameter's gradient.
    let tolerances = [(Kind::Float, 2e-5), (Kind::BFloat16, 0.1)];
    let cases = [
        (NormKind::Layer, true),
        (NormKind::Layer, false),
        (NormKind::Rms, true),
    ];
    for (norm, attack_bias) in cases {
        let model = Chessformer::new(&config(norm, attack_bias), Device::Cpu).unwrap();
        tch::manual_seed(3);
        let flat = model.initial_weights();
        // Biases and gains that are neither zeros nor ones; bf16 holds them exactly.
        let flat = (&flat + flat.randn_like() * 0.05).to_kind(Kind::BFloat16);
        let flat = flat.to_kind(Kind::Double);
        let rows = rows(11);
        let (expected_loss, expected) = gradient(&model, &flat, &rows, Kind::Double);
        let expected = Weights::from_flat(&expected, model.parameters());
        for (kind, tolerance) in tolerances {
            let (loss, found) = gradient(&model, &flat, &rows, kind);
            let off = (loss - expected_loss).abs() / expected_loss.abs();
            assert!(off < tolerance, "{kind:?}: {loss}, not {expected_loss}");
            let found = Weights::from_flat(&found, model.parameters());
            let pairs = found.tensors().iter().zip(expected.tensors());
            for (parameter, (found, expected)) in model.parameters().iter().zip(pairs) {
                let length = expected.norm().double_value(&[]);
                let off = (found - expected).norm().double_value(&[]) / length.max(1e-9);
                assert!(off < tolerance, "{kind:?} {}: off by {off}", parameter.name);
            }
        }
    }
}
