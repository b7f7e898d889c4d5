mod lens;

use super::*;
use crate::backend::{Backend, Batch, CodePolicy, DeviceChoice, Evaluations, Precision, Way};
use crate::inference::{TorchBackend, open_by};
use crate::network::chessformer::{ModelConfig, PositionConfig};
use crate::network::lc0::{
    HeadChoice, Lc0Config, PolicyConfig, PolicyHead, PolicyHeadConfig, Tower, ValueHead,
    ValueHeadConfig,
};
use crate::network::maia3::Maia3Config;
use crate::network::{self, About, Activation, Chessformer, Lc0, Maia3, Weights};
use crate::softmax::softmax;
use crate::torch::ExportPrecision;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use shakmaty::{CastlingMode, Role};
use tch::Device;

/// A position with Black to move, castling rights and a pinned knight.
const FEN: &str = "r3k2r/pp3ppp/2n5/1B1pP3/3P4/2N2N2/P4PPP/R3K2R b KQkq - 1 12";

fn chessformer(position: PositionConfig, elo: bool) -> Box<dyn network::Evaluator> {
    let mut config = ModelConfig::preset("cf-1m-gab").unwrap();
    (config.layers, config.width, config.heads) = (2, 32, 4);
    (config.attacks, config.attack_bias) = (!elo, !elo);
    config.elo = elo;
    config.position = position;
    Box::new(Chessformer::new(&config, Device::Cpu).unwrap())
}

/// Returns a tower that reads boards in a canonical orientation.
fn tower() -> Box<dyn network::Evaluator> {
    let value = ValueHeadConfig {
        features: 4,
        hidden: 8,
        wdl: true,
        error: false,
        buckets: None,
    };
    let tower = Tower {
        blocks: 2,
        filters: 8,
        squeeze: Some(4),
    };
    let config = Lc0Config {
        input_format: 3,
        activation: Activation::Relu,
        tower: Some(tower),
        attention: None,
        policy: PolicyConfig {
            embedding: None,
            heads: [(
                PolicyHead::Vanilla,
                PolicyHeadConfig::Convolutional { channels: 80 },
            )]
            .into(),
        },
        value: [(ValueHead::Winner, value)].into(),
        moves_left: None,
    };
    Box::new(Lc0::new(&config, HeadChoice::default(), Device::Cpu).unwrap())
}

fn maia3() -> Box<dyn network::Evaluator> {
    let mut config = Maia3Config::preset("maia3-3m").unwrap();
    (config.layers, config.width, config.heads) = (2, 32, 2);
    Box::new(Maia3::new(&config, Device::Cpu).unwrap())
}

fn network(architecture: Box<dyn network::Evaluator>) -> Network {
    tch::manual_seed(3);
    let flat = architecture.initial_weights();
    let flat = &flat + flat.randn_like() * 0.05;
    let about = About {
        correction: None,
        name: format!("random </script> {}", architecture.config().family()),
        search_value: if architecture.has(Output::Q) {
            "q"
        } else {
            "wdl"
        }
        .to_owned(),
        training: serde_json::Value::Null,
        licence: "unknown".to_owned(),
    };
    Network::new(architecture, &flat, about)
}

fn gab() -> PositionConfig {
    PositionConfig::Gab {
        compress: 4,
        hidden: 16,
        generator: 8,
    }
}

fn networks() -> [Network; 4] {
    [
        chessformer(gab(), false),
        chessformer(PositionConfig::Shaw, true),
        tower(),
        maia3(),
    ]
    .map(network)
}

fn game(fen: &str) -> Game {
    let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
    game.set_ratings(crate::chess::Ratings {
        white: Some(1200),
        black: Some(1900),
    });
    game
}

fn settings() -> Settings {
    Settings {
        mv: None,
        sample: vec![Game::default(), game(FEN)],
    }
}

/// Returns the value and the policy of a game according to the backend.
fn by_backend(backend: &TorchBackend, game: &Game) -> (f32, Vec<f32>) {
    let moves = game.position().legal_moves();
    let mut batch = Batch::default();
    batch
        .push(game, &moves, &backend.properties().encoder)
        .unwrap();
    let mut evaluations = Evaluations::default();
    backend.evaluate(&batch, &mut evaluations).unwrap();
    let mut policy = evaluations.logits(0).to_vec();
    softmax(&mut policy, 1.0);
    (evaluations.value(0).q, policy)
}

#[track_caller]
fn assert_close(found: f32, expected: f32) {
    assert!((found - expected).abs() < 1e-4, "{found}, not {expected}");
}

#[test]
fn explanations_are_what_the_engine_computes() {
    let folder = tempfile::tempdir().unwrap();
    for network in networks() {
        let path = folder.path().join("net.pt");
        network.write(ExportPrecision::F32, &path).unwrap();
        let file = std::fs::read(&path).unwrap();
        let backend = open_by(
            Way::File,
            &file,
            CodePolicy::Checked,
            DeviceChoice::Cpu,
            Precision::F32,
            1,
        )
        .unwrap();
        let game = game(FEN);
        let found = explain(&network, &game, &settings()).unwrap();
        let (q, policy) = by_backend(&backend, &game);
        assert_close(found.evaluation.q, q);
        let of = |fen: &str, uci: &str| {
            let game = self::game(fen);
            let (q, policy) = by_backend(&backend, &game);
            let moves = game.position().legal_moves();
            let place = moves.iter().position(|&mv| game.format_move(mv) == uci);
            (q, place.map(|place| policy[place]))
        };
        let moves = game.position().legal_moves();
        assert_eq!(found.moves.len(), moves.len());
        for (&mv, prior) in moves.iter().zip(policy) {
            let uci = game.format_move(mv);
            let report = found.moves.iter().find(|it| it.uci == uci).unwrap();
            assert_close(report.prior, prior);
            let mut after = game.clone();
            after.play(mv);
            assert_close(report.q, -by_backend(&backend, &after).0);
        }
        let occlusion = &found.occlusion;
        let chosen = &found.moves[found.chosen];
        let pieces = game.position().board().occupied().count();
        assert_eq!(occlusion.pieces.len(), pieces - 2);
        assert_close(occlusion.q, of(&found.fen, &chosen.uci).0);
        for piece in &occlusion.pieces {
            let fen = piece.fen.as_ref().unwrap();
            assert_eq!(
                self::game(fen).position().board().occupied().count(),
                pieces - 1
            );
            let (q, prior) = of(fen, &chosen.uci);
            assert_close(piece.q.unwrap(), q);
            match prior.filter(|_| piece.square != chosen.from) {
                Some(prior) => assert_close(piece.prior.unwrap(), prior),
                None => assert_eq!(piece.prior, None),
            }
        }
    }
}

#[test]
fn what_is_inside_fits_together() {
    for network in networks() {
        let found = explain(&network, &game(FEN), &settings()).unwrap();
        let name = &found.network;
        // Networks with attention either read attacks or read ratings.
        let attacks = found.attention.as_ref().map(|it| it.attacks.is_some());
        let reads_ratings = attacks == Some(false);
        assert_eq!(
            found.ratings,
            reads_ratings.then_some([1900, 1200]),
            "{name}"
        );
        let Some(attention) = &found.attention else {
            assert!(name.ends_with("lc0") && found.heads.is_empty());
            continue;
        };
        for layer in &attention.layers {
            let bias = layer.bias.as_ref().unwrap();
            for ((products, bias), weights) in layer.products.iter().zip(bias).zip(&layer.weights) {
                for row in 0..SQUARES {
                    let row = SQUARES * row..SQUARES * (row + 1);
                    let pairs = products[row.clone()].iter().zip(&bias[row.clone()]);
                    let mut logits: Vec<f32> = pairs.map(|(one, other)| one + other).collect();
                    softmax(&mut logits, 1.0);
                    for (found, expected) in weights[row].iter().zip(logits) {
                        assert_close(*found, expected);
                    }
                }
            }
        }
        let heads: usize = attention
            .layers
            .iter()
            .map(|layer| layer.weights.len())
            .sum();
        assert_eq!(found.heads.len(), heads);
        for head in &found.heads {
            assert_eq!(head.relations.len(), Relation::ALL.len());
            let ablation = head.ablation.as_ref().unwrap();
            assert!(ablation.divergence > 0.0);
            let sample = ablation.sample.unwrap();
            assert_eq!(sample.positions, 1);
            assert!(sample.divergence > 0.0 && [0.0, 1.0].contains(&sample.changed));
        }
    }
}

#[test]
fn gradients_sum_to_the_difference() {
    for network in networks() {
        let game = game(FEN);
        let found = explain(&network, &game, &settings()).unwrap();
        let gradients = &found.gradients;
        for attribution in [&gradients.value, &gradients.mv] {
            let sum: f32 = attribution.squares.iter().sum();
            let difference = attribution.output - attribution.baseline;
            let missing = (difference - sum) / difference;
            assert!((missing - attribution.remainder).abs() < 1e-3);
            // The remainder is small unless the maximum number of steps was reached.
            let most = match gradients.steps == gradients::MOST {
                true => 5.0 * gradients::TOLERANCE,
                false => gradients::TOLERANCE,
            };
            let name = &found.network;
            assert!(
                attribution.remainder.abs() <= most,
                "{name}: {missing} missing"
            );
            let board = game.position().board();
            for (square, value) in shakmaty::Square::ALL.iter().zip(&attribution.squares) {
                let role = board.role_at(*square);
                if role.is_none() || role == Some(Role::King) {
                    assert_eq!(*value, 0.0, "{square}");
                }
            }
        }
        assert_close(gradients.value.output, found.evaluation.q);
        assert_close(gradients.mv.output.exp(), found.moves[0].prior);
    }
}

#[test]
fn squares_are_seen_where_the_row_has_them() {
    for network in networks() {
        let evaluator = Evaluator::new(&network).unwrap();
        for fen in [
            FEN,
            "8/5k2/8/3p4/8/2P5/1K6/6R1 w - - 0 1",
            "8/5k2/8/3p4/8/8/1K6/6R1 b - - 0 1",
        ] {
            let game = game(fen);
            let row = evaluator.rows(std::slice::from_ref(&game));
            let seen = evaluator.seen(&game);
            let (board, turn) = (game.position().board(), game.position().turn());
            for square in shakmaty::Square::ALL {
                let Some(piece) = board.piece_at(square) else {
                    continue;
                };
                let side = if piece.color == turn { 0 } else { 6 };
                let plane = side + piece.role as i64 - 1;
                let word = row.int64_value(&[0, plane]);
                assert_eq!(
                    word >> seen[usize::from(square)] & 1,
                    1,
                    "{square} of {fen}"
                );
            }
        }
    }
}

#[test]
fn a_head_is_ablated_without_touching_the_network() {
    let network = network(chessformer(gab(), false));
    let weights = network
        .architecture
        .without_head(&network.weights, 1, 2)
        .unwrap();
    let names = network.architecture.parameters();
    let same = |(one, other): (&tch::Tensor, &tch::Tensor)| one.equal(other);
    let pairs = network.weights.tensors().iter().zip(weights.tensors());
    let changed: Vec<_> = names
        .iter()
        .zip(pairs)
        .filter(|(_, pair)| !same(*pair))
        .collect();
    let [(parameter, (whole, without))] = &changed[..] else {
        panic!("{changed:?}");
    };
    assert_eq!(parameter.name, "encoder.1.attention.output.weight");
    let head_width = 32 / 4;
    for column in 0..32 {
        let is_zero =
            |tensor: &tch::Tensor| tensor.select(1, column).count_nonzero(0).int64_value(&[]) == 0;
        assert!(!is_zero(whole));
        assert_eq!(is_zero(without), column / head_width == 2);
    }
    let none = |layer, head| {
        network
            .architecture
            .without_head(&network.weights, layer, head)
    };
    assert!(none(2, 0).is_none() && none(0, 4).is_none());
    let tower = self::network(tower());
    let none: Option<Weights> = tower.architecture.without_head(&tower.weights, 0, 0);
    assert!(none.is_none());
}

#[test]
fn a_move_is_explained_on_demand() {
    let network = network(chessformer(gab(), false));
    let game = game(FEN);
    let mv = game.parse_move("e8g8").unwrap();
    let settings = Settings {
        mv: Some(mv),
        ..Settings::default()
    };
    let found = explain(&network, &game, &settings).unwrap();
    let chosen = &found.moves[found.chosen];
    assert_eq!(
        (chosen.san.as_str(), chosen.from, chosen.to),
        ("O-O", 60, 62)
    );
    assert_close(found.occlusion.prior, chosen.prior);
    // Without the rook, castling is impossible, as it is without the castling right.
    let rook = found
        .occlusion
        .pieces
        .iter()
        .find(|piece| piece.square == 63)
        .unwrap();
    assert_eq!((rook.piece, rook.prior), ('r', None));
    assert!(rook.fen.as_ref().unwrap().contains(" b KQq "));
}

#[test]
fn what_cannot_be_explained_says_why() {
    let network = network(tower());
    let mated = game("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3");
    let error = explain(&network, &mated, &Settings::default()).unwrap_err();
    assert!(error.to_string().contains("checkmate"), "{error}");
    let settings = Settings {
        mv: Some(Game::default().parse_move("e2e4").unwrap()),
        ..Settings::default()
    };
    let error = explain(&network, &game(FEN), &settings).unwrap_err();
    assert!(matches!(error, ExplainError::Illegal));
}

/// Without the knight, White, who has just moved, would be in check.
#[test]
fn positions_that_are_not_legal_are_left_out() {
    let network = network(tower());
    let game = game("k3r3/8/8/8/4N3/8/8/4K3 b - - 0 1");
    let found = explain(&network, &game, &Settings::default()).unwrap();
    let [knight, rook] = &found.occlusion.pieces[..] else {
        panic!("two pieces");
    };
    assert_eq!((knight.piece, knight.square), ('N', 28));
    assert_eq!((&knight.fen, knight.q, knight.prior), (&None, None, None));
    assert_eq!((rook.piece, rook.q.is_some()), ('r', true));
}

#[test]
fn a_page_is_whole_and_no_larger_than_it_may_be() {
    let [one, other, ..] = networks();
    let explained = [&one, &other].map(|it| explain(it, &game(FEN), &settings()).unwrap());
    let rendered = page(&explained, None);
    crate::page::assert_self_contained(&rendered.html);
    assert_eq!(rendered.left_out, [vec![], Vec::<usize>::new()]);
    let asked = page(&explained, Some(&[2]));
    assert_eq!(asked.left_out, [vec![1], vec![1]]);
    // This network is as large as Lc0's BT4 network.
    let [mut large, _] = explained;
    let maps = vec![vec![0.0; SQUARES * SQUARES]; 32];
    let layer = AttentionLayer {
        products: maps.clone(),
        bias: Some(maps.clone()),
        weights: maps,
    };
    let attention = large.attention.as_mut().unwrap();
    attention.layers = vec![layer; 15];
    let rendered = page(&[large], None);
    assert!(
        rendered.html.len() <= LARGEST_PAGE,
        "{}",
        rendered.html.len()
    );
    let left_out = &rendered.left_out[0];
    assert!(
        left_out.len() < 12 && !left_out.contains(&15),
        "{left_out:?}"
    );
}

#[test]
fn pictures_show_every_layer() {
    let network = network(chessformer(gab(), false));
    let found = explain(&network, &game(FEN), &settings()).unwrap();
    let pictures = pictures(&found);
    let names: Vec<&str> = pictures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), 1 + 4 + 2);
    assert!(names.contains(&"position.svg") && names.contains(&"attention-layer-2.svg"));
    for (name, picture) in &pictures {
        assert!(
            picture.starts_with("<svg") && picture.ends_with("</svg>\n"),
            "{name}"
        );
        assert_eq!(
            picture.matches("<g ").count(),
            picture.matches("</g>").count()
        );
    }
}

/// Returns positions from games of random legal moves.
fn random_positions(count: usize, seed: u64) -> Vec<Game> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut positions = Vec::new();
    let mut game = Game::default();
    while positions.len() < count {
        let moves = game.position().legal_moves();
        match moves.is_empty() || game.plies().len() > 40 {
            true => game = Game::default(),
            false => {
                game.play(moves[random.random_range(0..moves.len())]);
                positions.push(game.clone());
            }
        }
    }
    positions
}

fn fitted(network: &Network) -> Transcoder {
    let settings = FitSettings {
        layer: 2,
        features: 64,
        top_k: 8,
        steps: 300,
        rate: 3e-3,
        seed: 1,
    };
    let (positions, held_out) = (random_positions(60, 1), random_positions(20, 2));
    fit(network, &positions, &held_out, &settings, |_, _| {}).unwrap()
}

/// Returns the features' effects on all legal moves.
fn report(transcoder: &Transcoder, network: &Network, game: &Game) -> TranscoderReport {
    let moves = game.position().legal_moves();
    transcoder.report(network, game, &moves).unwrap()
}

#[test]
#[ignore = "long: runs in tools/test --all"]
fn a_transcoder_learns_a_block_and_finds_what_predicts_a_theme() {
    let network = network(chessformer(gab(), false));
    let mut transcoder = fitted(&network);
    let about = &transcoder.about;
    assert!((0.3..1.0).contains(&about.explained_variance), "{about:?}");
    assert!((0.0..0.9).contains(&about.dead));
    assert_eq!((about.positions, about.held_out), (60, 20));
    assert_eq!(about.strongest.len(), 64);
    // In the position that activates a feature most, the report contains the stored activation.
    let (feature, strongest) = about
        .strongest
        .iter()
        .enumerate()
        .find_map(|(feature, it)| Some((feature, it.first()?.clone())))
        .unwrap();
    let held_out = random_positions(20, 2);
    let strongest_game = held_out
        .iter()
        .find(|game| fen(game.position()) == strongest.fen);
    let report = report(&transcoder, &network, strongest_game.unwrap());
    if let Some(active) = report.active.iter().find(|it| it.feature == feature) {
        assert_close(active.squares[strongest.square], strongest.activation);
    }
    for square in 0..SQUARES {
        let active = report.active.iter().filter(|it| it.squares[square] > 0.0);
        assert!(active.count() <= 8);
    }
    // Define the theme as the activity of the strongest feature of the first report.
    let feature = report.active[0].feature;
    let puzzles = random_positions(120, 3).into_iter().enumerate();
    let puzzles = puzzles.map(|(number, game)| {
        let report = self::report(&transcoder, &network, &game);
        let has = report.active.iter().take(3).any(|it| it.feature == feature);
        LabelledGame {
            game,
            themes: if has { vec!["fork".to_owned()] } else { vec![] },
            selects: number % 2 == 0,
        }
    });
    let puzzles: Vec<LabelledGame> = puzzles.collect();
    let found = predict_themes(&transcoder, &network, &puzzles).unwrap();
    for theme in &found {
        assert_eq!((theme.theme.as_str(), theme.puzzles), ("fork", 60));
        assert!(
            theme.feature < 64 && theme.precision >= theme.base_rate / 2.0,
            "{theme:?}"
        );
        assert!(theme.threshold.is_finite());
    }
    transcoder.about.themes = found;
    // The file contains all data of the transcoder and identifies its network.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    transcoder.write(&path).unwrap();
    let read = Transcoder::read(&path, &network).unwrap();
    assert_eq!(read.about.themes, transcoder.about.themes);
    let [one, other] = [&transcoder, &read].map(|it| self::report(it, &network, &game(FEN)));
    assert_eq!(
        serde_json::to_value(one).unwrap(),
        serde_json::to_value(other).unwrap()
    );
    let other = self::network(chessformer(PositionConfig::Relative, false));
    let error = Transcoder::read(&path, &other).unwrap_err();
    assert!(matches!(error, TranscoderError::OtherNetwork(_)), "{error}");
    let whole: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for (pointer, value) in [
        ("/format", serde_json::json!(2)),
        ("/width", serde_json::json!(1u64 << 40)),
        ("/width", serde_json::json!(31)),
        ("/about/features", serde_json::json!(63)),
        ("/about/top_k", serde_json::json!(0)),
        ("/about/strongest", serde_json::json!([])),
        ("/encoder", serde_json::json!("nonsense")),
        (
            "/decoder_bias",
            serde_json::json!(STANDARD.encode([255u8; 4 * 32])),
        ),
    ] {
        let mut changed = whole.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        std::fs::write(&path, changed.to_string()).unwrap();
        let error = Transcoder::read(&path, &network).unwrap_err();
        assert!(
            matches!(error, TranscoderError::Invalid(_)),
            "{pointer}: {error}"
        );
    }
}

/// The probabilities of the moves sum to 1, so they cannot all rise.
#[test]
fn a_feature_speaks_for_some_moves_and_against_others() {
    let network = network(chessformer(gab(), false));
    let transcoder = fitted(&network);
    let game = game(FEN);
    let found = report(&transcoder, &network, &game);
    assert!(found.present >= found.active.len() && found.ablated == found.present);
    let mut felt = 0;
    for feature in &found.active {
        let least = feature.moves.iter().copied().fold(f32::INFINITY, f32::min);
        let most = feature
            .moves
            .iter()
            .copied()
            .fold(f32::NEG_INFINITY, f32::max);
        // Smaller differences are lost in rounding.
        if most - least > 1e-4 {
            assert!(least < 0.0 && most > 0.0, "{least} to {most}");
            felt += 1;
        }
        assert!(feature.value.abs() < 2.0);
    }
    assert!(felt > 0);
    // Effects are listed in the order of the given moves.
    let moves = game.position().legal_moves();
    let one = transcoder.report(&network, &game, &moves[3..4]).unwrap();
    let both = one.active.iter().filter_map(|one| {
        let of_all = found.active.iter().find(|it| it.feature == one.feature)?;
        Some((one.moves[0], of_all.moves[3]))
    });
    for (one, of_all) in both {
        assert_close(one, of_all);
    }
    let illegal = Game::default().parse_move("e2e4").unwrap();
    let error = transcoder.report(&network, &game, &[illegal]).unwrap_err();
    assert!(matches!(error, ExplainError::Illegal), "{error}");
}

#[test]
fn a_layer_that_is_not_there_has_no_transcoder() {
    let network = network(tower());
    let settings = FitSettings {
        layer: 1,
        features: 4,
        top_k: 1,
        steps: 1,
        rate: 1e-3,
        seed: 1,
    };
    let games = [Game::default()];
    let error = fit(&network, &games, &games, &settings, |_, _| {}).unwrap_err();
    assert!(matches!(error, ExplainError::NoLayer(1)), "{error}");
}
