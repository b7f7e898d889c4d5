//! Compares grown networks with their originals.

use super::*;
use crate::chess::{Game, Ratings};
use crate::encode::{Input, WIDTH};
use crate::network::chessformer::{EmbeddingConfig, NormKind, PositionConfig};
use crate::network::{Architecture, Chessformer, Evaluator, Output, OutputSet, Pass, Positions};
use shakmaty::Position;
use tch::Device;

fn gab(compress: i64, hidden: i64, generator: i64) -> PositionConfig {
    PositionConfig::Gab {
        compress,
        hidden,
        generator,
    }
}

fn small(position: PositionConfig, norm: NormKind, embedding: EmbeddingConfig) -> ModelConfig {
    ModelConfig {
        layers: 2,
        width: 24,
        heads: 2,
        feed_forward: 20,
        norm,
        position,
        embedding,
        attacks: false,
        attack_bias: false,
        elo: false,
        value_features: 4,
        value_hidden: 12,
        buckets: 8,
        soft_policy: true,
        optimistic_policy: (),
    }
}

fn rows() -> Tensor {
    let mut game = Game::default();
    game.set_ratings(Ratings {
        white: Some(1100),
        black: None,
    });
    let mut words: Vec<i64> = Vec::new();
    for ply in 0..4 {
        words.extend(bytemuck::cast_slice::<u64, i64>(
            Input::encode(&game).words(),
        ));
        let moves = game.position().legal_moves();
        game.play(moves[(5 * ply + 3) % moves.len()]);
    }
    Tensor::from_slice(&words).view([-1, WIDTH as i64])
}

/// Returns a network's policy, soft policy, values and moves left, in one matrix.
fn evaluate(model: &Chessformer, flat: &Tensor) -> Tensor {
    let weights = Weights::from_flat(flat, model.parameters());
    let rows = rows();
    let pass = Pass::new(Positions::Rows(&rows), OutputSet::all());
    let outputs = model.forward(&weights, &pass);
    let of = |output| outputs.get(output).unwrap();
    let column = |output| of(output).unsqueeze(1);
    Tensor::cat(
        &[
            of(Output::Policy),
            of(Output::PolicySoft),
            of(Output::Wdl),
            &column(Output::Q),
            &column(Output::ShortTermError),
            of(Output::ShortTermCategorical),
            &(column(Output::MovesLeft) / 20.0),
        ],
        1,
    )
}

/// Returns the weights of a network that is grown from a network with the weights `flat`. New
/// parameters take their values from `fresh`.
fn grown(
    from: &ModelConfig,
    (old, flat): (&Chessformer, &Tensor),
    (new, fresh): (&Chessformer, &Tensor),
) -> Result<Tensor, GrowError> {
    let parameters = new.parameters();
    let fresh = Weights::from_flat(fresh, parameters);
    grow(from, &named(old, flat), &new.config, &fresh, parameters)
}

/// Returns random parameters. Gains and biases are random as well.
fn trained(model: &Chessformer, seed: i64) -> Tensor {
    tch::manual_seed(seed);
    let initial = model.initial_weights();
    let noise = Tensor::randn(initial.size(), (Kind::Float, Device::Cpu));
    initial + noise * 0.1
}

fn named(model: &Chessformer, flat: &Tensor) -> Vec<(String, Tensor)> {
    let weights = Weights::from_flat(flat, model.parameters());
    let names = model.parameters().iter().map(|p| p.name.clone());
    let tensors = weights.tensors().iter().map(Tensor::shallow_clone);
    names.zip(tensors).collect()
}

/// Returns how much the outputs of the grown network, and of a fresh network, differ from the old
/// network's.
fn differences(from: &ModelConfig, to: &ModelConfig) -> (f64, f64) {
    let _guard = tch::no_grad_guard();
    let old = Chessformer::new(from, Device::Cpu).unwrap();
    let new = Chessformer::new(to, Device::Cpu).unwrap();
    let flat = trained(&old, 3);
    let expected = evaluate(&old, &flat);
    let fresh = trained(&new, 4);
    let grown = grown(from, (&old, &flat), (&new, &fresh)).unwrap();
    assert_eq!(grown.size(), fresh.size());
    let off = |flat: &Tensor| {
        let off = (evaluate(&new, flat) - &expected).abs();
        off.max().double_value(&[])
    };
    (off(&grown), off(&fresh))
}

const GLOBAL: EmbeddingConfig = EmbeddingConfig::Global {
    board: 3,
    feed_forward: 10,
};

#[test]
fn layers_are_added_without_a_trace() {
    for (position, norm, embedding) in [
        (
            PositionConfig::Absolute,
            NormKind::Rms,
            EmbeddingConfig::Token,
        ),
        (
            PositionConfig::Relative,
            NormKind::Layer,
            EmbeddingConfig::Token,
        ),
        (PositionConfig::Shaw, NormKind::Rms, GLOBAL),
        (gab(3, 8, 7), NormKind::Layer, GLOBAL),
    ] {
        let from = small(position, norm, embedding);
        for layers in [2, 3, 5] {
            let to = ModelConfig {
                layers,
                ..from.clone()
            };
            let (grown, fresh) = differences(&from, &to);
            // A norm with ε = 1e-3 slightly shrinks its input each time.
            let tolerance = if from.embedding == GLOBAL { 0.02 } else { 1e-4 };
            assert!(
                grown < tolerance,
                "{from:?} to {layers} layers: off by {grown}"
            );
            assert!(fresh > 0.5, "{fresh}");
        }
    }
}

/// Returns a configuration that exceeds `from` in every size.
fn larger(from: &ModelConfig, position: &PositionConfig, width: i64, heads: i64) -> ModelConfig {
    ModelConfig {
        layers: 3,
        width,
        heads,
        feed_forward: 33,
        position: position.clone(),
        value_features: 7,
        value_hidden: 20,
        ..from.clone()
    }
}

#[test]
fn a_network_grows_wider_without_a_trace() {
    for position in [
        (PositionConfig::Absolute, PositionConfig::Absolute),
        (PositionConfig::Relative, PositionConfig::Relative),
        (PositionConfig::Shaw, PositionConfig::Shaw),
        (gab(3, 8, 7), gab(5, 16, 14)),
    ] {
        let from = small(position.0, NormKind::Rms, EmbeddingConfig::Token);
        // The new network has more heads, then wider heads.
        for (width, heads) in [(48, 4), (40, 2)] {
            let to = larger(&from, &position.1, width, heads);
            let (grown, fresh) = differences(&from, &to);
            assert!(grown < 1e-3, "{to:?}: off by {grown}");
            assert!(fresh > 0.5, "{fresh}");
        }
    }
}

#[test]
fn layer_norms_grow_wider_without_a_trace() {
    for (position, embedding) in [
        (
            (PositionConfig::Absolute, PositionConfig::Absolute),
            EmbeddingConfig::Token,
        ),
        ((gab(3, 8, 7), gab(5, 16, 14)), EmbeddingConfig::Token),
        ((gab(3, 8, 7), gab(3, 8, 7)), GLOBAL),
    ] {
        let from = ModelConfig {
            attacks: true,
            attack_bias: true,
            elo: true,
            ..small(position.0, NormKind::Layer, embedding)
        };
        // The new network has more heads, then wider heads, then three times the width.
        for (width, heads) in [(48, 4), (48, 2), (72, 6)] {
            let to = larger(&from, &position.1, width, heads);
            let (grown, fresh) = differences(&from, &to);
            // A norm with ε = 1e-3 slightly shrinks its input each time.
            let tolerance = if from.embedding == GLOBAL { 0.02 } else { 1e-3 };
            assert!(grown < tolerance, "{to:?}: off by {grown}");
            assert!(fresh > 0.5, "{fresh}");
        }
    }
}

#[test]
fn attacks_and_ratings_are_added_without_a_trace_and_stay_when_a_network_grows() {
    for embedding in [EmbeddingConfig::Token, GLOBAL] {
        let plain = small(gab(3, 8, 7), NormKind::Rms, embedding);
        let told = ModelConfig {
            attacks: true,
            attack_bias: true,
            elo: true,
            ..plain.clone()
        };
        let wider = ModelConfig {
            width: 48,
            heads: 4,
            ..told.clone()
        };
        for (from, to) in [(&plain, &told), (&told, &wider), (&plain, &wider)] {
            let (grown, fresh) = differences(from, to);
            assert!(grown < 0.02 && fresh > 2.0, "{grown}, {fresh}");
        }
    }
}

#[test]
fn inexact_growth_starts_close() {
    let from = small(gab(3, 8, 7), NormKind::Layer, GLOBAL);
    let to = ModelConfig {
        layers: 3,
        width: 36,
        heads: 3,
        position: gab(3, 12, 10),
        ..from.clone()
    };
    let (grown, fresh) = differences(&from, &to);
    assert!(
        grown < fresh / 2.0,
        "off by {grown}, a fresh one by {fresh}"
    );
}

/// Every new parameter must be able to learn: most of its entries must change within four steps.
#[test]
fn new_weights_learn() {
    for norm in [NormKind::Rms, NormKind::Layer] {
        check_that_new_weights_learn(norm);
    }
}

fn check_that_new_weights_learn(norm: NormKind) {
    let from = small(gab(3, 8, 7), norm, EmbeddingConfig::Token);
    let to = ModelConfig {
        layers: 4,
        width: 48,
        heads: 4,
        feed_forward: 40,
        ..from.clone()
    };
    let old = Chessformer::new(&from, Device::Cpu).unwrap();
    let new = Chessformer::new(&to, Device::Cpu).unwrap();
    let flat = trained(&old, 3);
    let start = grown(&from, (&old, &flat), (&new, &trained(&new, 4))).unwrap();
    let mut flat = start.copy().set_requires_grad(true);
    for step in 0..4 {
        evaluate(&new, &flat).square().mean(Kind::Float).backward();
        let gradient = flat.grad();
        let _guard = tch::no_grad_guard();
        // Steps of different sizes never cancel out.
        flat -= gradient.sign() * 1e-3 / f64::from(1 << step);
        flat.zero_grad();
    }
    let moved = (flat.detach() - start).ne(0.0).to_kind(Kind::Float);
    let weights = Weights::from_flat(&moved, new.parameters());
    for (parameter, moved) in new.parameters().iter().zip(weights.tensors()) {
        let read = !parameter.name.contains("q.categorical")
            && !parameter.name.contains("q.error")
            && !parameter.name.contains("short_term.scalar");
        let share = moved.mean(Kind::Float).double_value(&[]);
        // Half of the planes are empty in these positions, and half of the token features are new.
        let is_input = parameter.name == "embedding.project.weight";
        let least = if is_input { 0.4 } else { 0.5 };
        assert!(share > least || !read, "{}: {share}", parameter.name);
    }
}

/// Copies of a feature must diverge; otherwise the network would gain no width.
#[test]
fn copies_of_features_part() {
    let from = small(gab(3, 8, 7), NormKind::Layer, EmbeddingConfig::Token);
    let to = ModelConfig {
        width: 48,
        heads: 4,
        ..from.clone()
    };
    let old = Chessformer::new(&from, Device::Cpu).unwrap();
    let new = Chessformer::new(&to, Device::Cpu).unwrap();
    let flat = trained(&old, 3);
    let start = grown(&from, (&old, &flat), (&new, &trained(&new, 4))).unwrap();
    let flat = start.set_requires_grad(true);
    evaluate(&new, &flat).square().mean(Kind::Float).backward();
    let gradient = flat.grad();
    let gradients = Weights::from_flat(&gradient, new.parameters());
    for name in [
        "embedding.project.weight",
        "encoder.0.feed_forward.narrow.weight",
    ] {
        let place = new.parameters().iter().position(|p| p.name == name);
        let gradient = &gradients.tensors()[place.unwrap()];
        let [first, second] = [0, 24].map(|start| gradient.narrow(0, start, 24).flatten(0, -1));
        let along = (&first * &second).sum(Kind::Float) / (first.norm() * second.norm());
        let along = along.double_value(&[]).abs();
        assert!(along < 0.9, "{name}: gradients alike by {along}");
    }
}

#[test]
fn rejects_networks_that_do_not_contain_the_other() {
    let from = small(PositionConfig::Shaw, NormKind::Rms, EmbeddingConfig::Token);
    let model = Chessformer::new(&from, Device::Cpu).unwrap();
    let flat = trained(&model, 3);
    let refused = |to: ModelConfig| {
        let new = Chessformer::new(&to, Device::Cpu).unwrap();
        let error = grown(&from, (&model, &flat), (&new, &trained(&new, 4))).unwrap_err();
        error.to_string()
    };
    let with = |change: fn(&mut ModelConfig)| {
        let mut to = from.clone();
        change(&mut to);
        refused(to)
    };
    assert!(with(|to| to.norm = NormKind::Layer).contains("model.norm"));
    assert!(with(|to| to.position = PositionConfig::Relative).contains("model.position"));
    assert!(with(|to| to.layers = 1).contains("layers"));
    let mut told = from.clone();
    (told.attacks, told.attack_bias) = (true, true);
    let other = Chessformer::new(&told, Device::Cpu).unwrap();
    let error = grown(&told, (&other, &trained(&other, 3)), (&model, &flat)).unwrap_err();
    assert!(error.to_string().contains("model.attacks"), "{error}");
    let rated = ModelConfig {
        elo: true,
        ..from.clone()
    };
    let other = Chessformer::new(&rated, Device::Cpu).unwrap();
    let error = grown(&rated, (&other, &trained(&other, 3)), (&model, &flat)).unwrap_err();
    assert!(error.to_string().contains("model.elo"), "{error}");
    assert!(with(|to| to.feed_forward = 8).contains("feed_forward.widen"));
}
