//! Compares folded networks with the unfolded networks.

use super::*;
use crate::chess::Game;
use crate::encode::{Input, RATINGS, WIDTH};
use crate::network::chessformer::{EmbeddingConfig, ModelConfig, NormKind, PositionConfig};
use crate::network::{About, Architecture, Network};
use shakmaty::Position;

/// Returns positions along a game, with known and unknown ratings and various 50-move counts.
fn rows(count: usize) -> Tensor {
    let mut game = Game::default();
    let mut words: Vec<i64> = Vec::new();
    for ply in 0..count {
        let mut row = *Input::encode(&game).words();
        row[RATINGS] = [0, 1, 1737, 5000, 6000][ply % 5];
        row[RATINGS + 1] = [2400, 0, 100][ply % 3];
        row[RATINGS - 2] += [0, 99, 150, 700][ply % 4];
        words.extend(bytemuck::cast_slice::<u64, i64>(&row));
        let moves = game.position().legal_moves();
        game.play(moves[(ply * 7 + 3) % moves.len()]);
    }
    Tensor::from_slice(&words).view([-1, WIDTH as i64])
}

type Case = (&'static str, fn(&mut ModelConfig));

const CASES: [Case; 6] = [
    ("attacks", |_| ()),
    ("no attacks", |config| {
        (config.attacks, config.attack_bias) = (false, false);
    }),
    ("pairs alone, root mean square norms", |config| {
        config.norm = NormKind::Rms;
        config.attacks = false;
    }),
    ("counts alone, odd features", |config| {
        config.value_features = 5;
        config.attack_bias = false;
        config.soft_policy = true;
    }),
    ("ratings", |config| config.elo = true),
    ("a global embedding", |config| {
        config.embedding = EmbeddingConfig::Global {
            board: 4,
            feed_forward: 48,
        };
    }),
];

/// Returns a network whose biases and gains are neither zeros nor ones.
fn network((name, edit): Case) -> Network {
    let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
    (config.layers, config.width, config.heads) = (3, 64, 2);
    (config.attacks, config.attack_bias) = (true, true);
    config.norm = NormKind::Layer;
    config.position = PositionConfig::Gab {
        compress: 8,
        hidden: 32,
        generator: 16,
    };
    edit(&mut config);
    let model = Chessformer::new(&config, Device::Cpu).unwrap();
    tch::manual_seed(3);
    let flat = model.initial_weights();
    let flat = &flat + flat.randn_like() * 0.05;
    let about = About {
        correction: None,
        name: name.to_owned(),
        search_value: "wdl".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    };
    Network::new(Box::new(model), &flat, about)
}

fn fold(network: &Network, kind: Kind) -> Option<Folded> {
    let model: &Chessformer = network.downcast().unwrap();
    model.fold(&network.weights, kind, Device::Cpu)
}

fn fold_with_kernel(network: &Network) -> Option<Folded> {
    let model: &Chessformer = network.downcast().unwrap();
    let folded = model.fold_with_kernel(&network.weights, Device::Cpu);
    folded.unwrap()
}

#[test]
fn folded_networks_compute_what_their_blocks_do() {
    let rows = rows(20);
    let kinds = [
        (Kind::Float, 2e-5),
        (Kind::BFloat16, 0.05),
        (Kind::Half, 0.01),
    ];
    for (kind, tolerance) in kinds {
        for case in CASES {
            let network = network(case);
            let expected = network.freeze(Kind::Float).unwrap().forward(&rows).unwrap();
            let kernel = match kind {
                Kind::Half => fold_with_kernel(&network),
                _ => None,
            };
            let is_global = case.0 == "a global embedding";
            assert_eq!(
                kernel.is_some(),
                kind == Kind::Half && !is_global,
                "{}",
                case.0
            );
            for folded in fold(&network, kind).into_iter().chain(kernel) {
                let found = folded.forward(&rows).unwrap();
                assert_eq!(found.len(), expected.len());
                for (place, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    assert_eq!(found.size(), expected.size());
                    let off = (found - expected).norm() / expected.norm();
                    let off = off.double_value(&[]);
                    assert!(
                        off < tolerance,
                        "{}, {folded:?}, {kind:?}, {place}: {off}",
                        case.0
                    );
                }
            }
        }
    }
}

/// In CUDA, warps and lanes run at the same time. If one depended on another within a step, the
/// order in which the CPU runs them would matter.
#[test]
fn the_kernels_warps_and_lanes_do_not_depend_on_each_other() {
    let network = network(CASES[0]);
    let mut folded = fold_with_kernel(&network).unwrap();
    let words = folded.words_of(&rows(3)).unwrap();
    let mut tokens = |is_reversed, heads_per_pass| {
        let Encoder::Kernel(encoder) = &mut folded.encoder else {
            panic!("the network suits the kernel")
        };
        encoder.run_on_cpu(is_reversed, heads_per_pass);
        encoder.forward(&words).unwrap()
    };
    let expected = tokens(false, 2);
    assert!(tokens(true, 2).equal(&expected));
    assert!(tokens(false, 1).equal(&expected));
}

#[test]
fn rows_that_lack_words_are_an_error() {
    let folded = fold(&network(CASES[0]), Kind::Float).unwrap();
    let short = rows(2).narrow(1, 0, 109);
    let error = folded.forward(&short).unwrap_err().to_string();
    assert!(error.contains("109 words in place of 110"), "{error}");
    folded.forward(&rows(2).narrow(1, 0, 110)).unwrap();
}

#[test]
fn only_networks_with_generated_biases_fold() {
    for position in [PositionConfig::Shaw, PositionConfig::Relative] {
        let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
        config.position = position;
        let model = Chessformer::new(&config, Device::Cpu).unwrap();
        let weights = Weights::from_flat(&model.initial_weights(), model.parameters());
        assert!(model.fold(&weights, Kind::Float, Device::Cpu).is_none());
    }
}
