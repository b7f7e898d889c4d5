use super::past::flipped;
use super::*;
use crate::backend::CodePolicy;
use crate::chess::Game;
use crate::encode::{Input, WIDTH, policy_index};
use crate::network::chessformer::{ModelConfig, PositionConfig};
use crate::network::{About, Architecture, ArchitectureConfig, Network, open, open_any};
use crate::torch::ExportPrecision;
use shakmaty::{CastlingMode, Position as _};
use tch::Kind;

/// The shipped tessera-xs network.
const SHIPPED: &[u8] = include_bytes!("../../../nets/tessera-xs.pt");

const STATES: [WorldState; 3] = [WorldState::Squares, WorldState::Token, WorldState::Dit];

fn config(state: WorldState) -> WorldConfig {
    let mut encoder = ModelConfig::preset("cf-1m-gab").unwrap();
    (encoder.layers, encoder.width) = (2, 32);
    encoder.position = PositionConfig::Gab {
        compress: 4,
        hidden: 16,
        generator: 8,
    };
    WorldConfig {
        encoder,
        state,
        blocks: 2,
        context: 3,
    }
}

/// Returns the structure, with weights so large that every input affects the outputs.
fn build(state: WorldState) -> (WorldModel, Weights) {
    tch::manual_seed(4);
    let world = WorldModel::new(&config(state), Device::Cpu).unwrap();
    let flat = world.initial_weights();
    let flat = &flat + Tensor::randn_like(&flat) * 0.2;
    let weights = Weights::from_flat(&flat, world.parameters());
    (world, weights)
}

/// Returns all weights, concatenated.
fn flat(weights: &Weights) -> Tensor {
    let all = weights.tensors().iter().map(|it| it.reshape([-1]));
    Tensor::cat(&all.collect::<Vec<Tensor>>(), 0)
}

/// Returns the network as it is stored in a file.
fn network(state: WorldState) -> Network<WorldModel> {
    let (world, weights) = build(state);
    let about = About {
        correction: None,
        name: "little".to_owned(),
        search_value: "q".to_owned(),
        training: serde_json::Value::Null,
        licence: "CC0-1.0".to_owned(),
    };
    Network::new(Box::new(world), &flat(&weights), about)
}

fn rows<'a>(games: impl IntoIterator<Item = &'a Game>) -> Tensor {
    let words = games.into_iter().flat_map(|game| {
        let input = Input::encode(game);
        bytemuck::cast_slice::<u64, i64>(input.words()).to_vec()
    });
    let words: Vec<i64> = words.collect();
    Tensor::from_slice(&words).view([-1, WIDTH as i64])
}

fn close(one: &Tensor, other: &Tensor) {
    assert_eq!(one.size(), other.size());
    let off = (one - other).abs().max().double_value(&[]);
    assert!(off < 1e-4, "off by {off}");
}

/// Returns the game after these moves in UCI notation, and the moves as policy indices.
fn play(fen: &str, moves: &str) -> (Game, Vec<i64>) {
    let mut game = Game::from_fen(fen, CastlingMode::Standard).unwrap();
    let mut entries = Vec::new();
    for mv in moves.split_whitespace() {
        let mv = game.parse_move(mv).unwrap();
        entries.push(policy_index(mv, game.position().turn()).into());
        game.play(mv);
    }
    (game, entries)
}

#[test]
fn at_the_start_it_plays_as_the_network_that_it_grew_from() {
    for state in STATES {
        let _guard = tch::no_grad_guard();
        let xs = open(SHIPPED, CodePolicy::Checked).unwrap();
        let ArchitectureConfig::Chessformer { model } = xs.architecture.config() else {
            panic!("no Chessformer");
        };
        let config = WorldConfig {
            encoder: model.clone(),
            ..config(state)
        };
        let world = WorldModel::new(&config, Device::Cpu).unwrap();
        let flat = world.initial_weights();
        let fresh = Weights::from_flat(&flat, world.parameters());
        let grown = grow(&model, &xs.parameters(), &world, &fresh).unwrap();
        let weights = Weights::from_flat(&grown, world.parameters());
        let start = Game::default();
        let (later, _) = play(
            "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3",
            "f1b5",
        );
        let rows = rows([&start, &later]);
        let tokens = world.encode(&weights, &rows);
        let latents = world.represent(&weights, &rows);
        assert_eq!(latents == tokens, state != WorldState::Token);
        assert_eq!(latents.size()[1..], config.latents());
        let mut found = world.evaluate(&weights, &tokens, OutputSet::all());
        let expected = xs.forward(Positions::Rows(&rows));
        for (output, expected) in xs.architecture.interface().outputs.iter().zip(expected) {
            assert_eq!(found.take(*output).unwrap(), expected, "{output:?}");
        }
        // A step and the encoder end with the same norm, so the heads read inputs of a familiar
        // distribution.
        let named = |name: &str| {
            let place = world.parameters().iter().position(|it| it.name == name);
            weights.tensors()[place.unwrap()].shallow_clone()
        };
        let last = match state {
            WorldState::Squares => "dynamics.1.feed_forward.norm",
            WorldState::Token => "fusion.expand.norm",
            WorldState::Dit => "dynamics.norm",
        };
        for part in ["weight", "bias"] {
            let of_step = named(&format!("{last}.{part}"));
            assert_eq!(
                of_step,
                named(&format!("encoder.3.feed_forward.norm.{part}"))
            );
            assert!(of_step.std(false).double_value(&[]) > 0.0);
        }
    }
}

#[test]
fn a_step_is_the_same_for_either_side() {
    for state in STATES {
        let _guard = tch::no_grad_guard();
        let (world, weights) = build(state);
        let white = "r3k2r/1P1p4/8/8/4p3/8/3P1PPP/R3K2R w KQkq - 0 1";
        let black = "r3k2r/3p1ppp/8/4P3/8/8/1p1P4/R3K2R b KQkq - 0 1";
        let (_, of_white) = play(white, "b7a8q e8e7 f2f4 e4f3 e1g1");
        let (_, of_black) = play(black, "b2a1q e1e2 f7f5 e5f6 e8g8");
        assert_eq!(of_white, of_black);
        let unroll = |fen: &str, moves: &[i64]| -> Vec<Tensor> {
            let (game, _) = play(fen, "");
            let mut rows = rows([&game]);
            // The rows of the two mirrored positions differ only in the side to move, so this word
            // is cleared.
            let _ = rows.narrow(1, crate::encode::BOARDS as i64 + 4, 1).zero_();
            rows = rows.contiguous();
            let mut latents = world.represent(&weights, &rows);
            let mut past = world.past();
            let step = |mv: &i64| {
                let moves = Tensor::from_slice(&[*mv]);
                latents = world.step(&weights, &latents, &moves, &mut past);
                latents.shallow_clone()
            };
            moves.iter().map(step).collect()
        };
        let (white, black) = (unroll(white, &of_white), unroll(black, &of_black));
        for (one, other) in white.iter().zip(&black) {
            close(one, other);
        }
        close(&flipped(&flipped(&white[0])), &white[0]);
    }
}

#[test]
fn moves_show_where_they_go_and_what_pawns_become() {
    for state in STATES {
        let _guard = tch::no_grad_guard();
        let (world, weights) = build(state);
        let (game, _) = play("8/P3k3/8/8/8/8/8/4K3 w - - 0 1", "");
        let latents = world.represent(&weights, &rows([&game]));
        let game = &game;
        let after = |mv: &str| {
            let mv = game.parse_move(mv).unwrap();
            let moves = Tensor::from_slice(&[i64::from(policy_index(mv, game.position().turn()))]);
            world.step(&weights, &latents, &moves, &mut world.past())
        };
        let all = ["a7a8q", "a7a8r", "a7a8b", "a7a8n", "e1d1", "e1d2"].map(after);
        for (place, one) in all.iter().enumerate() {
            for other in &all[..place] {
                let off = (one - other).abs().max().double_value(&[]);
                assert!(off > 1e-3);
            }
        }
    }
}

#[test]
fn time_goes_one_way_and_the_past_is_remembered() {
    for state in STATES {
        let _guard = tch::no_grad_guard();
        let (world, weights) = build(state);
        let (game, _) = play("r3k2r/1P1p4/8/8/4p3/8/3P1PPP/R3K2R w KQkq - 0 1", "");
        let start = world.represent(&weights, &rows([&game]));
        let unroll = |moves: &[i64]| -> Vec<Tensor> {
            let mut past = world.past();
            let mut latents = start.shallow_clone();
            let step = |mv: &i64| {
                let moves = Tensor::from_slice(&[*mv]);
                latents = world.step(&weights, &latents, &moves, &mut past);
                latents.shallow_clone()
            };
            moves.iter().map(step).collect()
        };
        let whole = unroll(&[10, 20, 30, 40, 50]);
        let other = unroll(&[10, 20, 31, 41, 51]);
        // Later moves do not affect earlier results.
        for ply in 0..2 {
            assert_eq!(whole[ply], other[ply]);
        }
        assert_ne!(whole[2], other[2]);
        // The result also depends on the past: compare the same latents and move without it.
        let mut past = world.past();
        let alone = world.step(
            &weights,
            &whole[1],
            &Tensor::from_slice(&[30i64]),
            &mut past,
        );
        let off = (&alone - &whole[2]).abs().max().double_value(&[]);
        assert!(off > 1e-3, "{off}");
        // Boards in the same batch do not affect each other.
        let both = Tensor::cat(&[&start, &start.flip([1])], 0);
        let mut past = world.past();
        let mut latents = both;
        for mv in [10i64, 20, 30, 40] {
            let moves = Tensor::from_slice(&[mv, 1800 - mv]);
            latents = world.step(&weights, &latents, &moves, &mut past);
        }
        close(&latents.narrow(0, 0, 1), &whole[3]);
    }
}

#[test]
fn everything_is_learned() {
    for state in STATES {
        let (world, weights) = build(state);
        let flat = flat(&weights).detach().set_requires_grad(true);
        let weights = Weights::from_flat(&flat, world.parameters());
        let mut past = world.past();
        let mut latents = world.represent(&weights, &rows([&Game::default()]));
        // The pawn captures and promotes to a queen, or it advances.
        for mv in [1798i64, 300] {
            latents = world.step(&weights, &latents, &Tensor::from_slice(&[mv]), &mut past);
        }
        // The tokens are scaled down so that no head saturates.
        let tokens = world.expand(&weights, &latents) * 0.1;
        let outputs = world.evaluate(&weights, &tokens, OutputSet::all());
        let rules = world.rules(&weights, &tokens);
        let of_heads = Output::ALL
            .into_iter()
            .filter_map(|output| outputs.get(output));
        let all = of_heads.chain([&rules.end, &rules.legality, &rules.board]);
        let loss: Tensor = all
            .map(|it| (it.sin() * Tensor::randn_like(it)).sum(Kind::Float))
            .sum();
        loss.backward();
        let gradient = Weights::from_flat(&flat.grad(), world.parameters());
        for (parameter, gradient) in world.parameters().iter().zip(gradient.tensors()) {
            let reached = gradient.abs().sum(None::<Kind>).double_value(&[]);
            assert!(reached > 0.0, "{state:?}: {}", parameter.name);
        }
    }
}

#[test]
fn its_file_does_what_it_does() {
    for state in STATES {
        let _guard = tch::no_grad_guard();
        let network = network(state);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("little.pt");
        let metadata = network.write(ExportPrecision::F32, &path).unwrap();
        let methods: Vec<&String> = metadata.methods.keys().collect();
        assert_eq!(methods, ["forward", "predict", "represent", "step"]);
        let file = std::fs::read(&path).unwrap();
        // A world model evaluates positions like any other network.
        let (start, rows) = (Game::default(), rows([&Game::default()]));
        assert!(start.position().turn().is_white());
        let evaluator = open(&file, CodePolicy::Checked).unwrap();
        let (world, weights) = (&network.architecture, &network.weights);
        let latents = world.represent(weights, &rows);
        let tokens = world.encode(weights, &rows);
        let mut expected = world.evaluate(weights, &tokens, OutputSet::all());
        let found = evaluator.forward(Positions::Rows(&rows));
        for (output, found) in world.interface().outputs.into_iter().zip(found) {
            close(&found, &expected.take(output).unwrap());
        }
        let opened = open_any(&file, CodePolicy::Checked).unwrap();
        let opened = opened.downcast::<WorldModel>().unwrap();
        assert_eq!(opened.architecture.config, config(state));
        // Steps also work through Python's interface.
        let module = tch::CModule::load(&path).unwrap();
        let run = |method: &str, inputs: &[Tensor]| -> Vec<Tensor> {
            let inputs: Vec<tch::IValue> = inputs
                .iter()
                .map(|it| tch::IValue::Tensor(it.shallow_clone()))
                .collect();
            match module.method_is(method, &inputs).unwrap() {
                tch::IValue::Tuple(all) => all
                    .into_iter()
                    .map(|it| match it {
                        tch::IValue::Tensor(tensor) => tensor,
                        other => panic!("{other:?}"),
                    })
                    .collect(),
                tch::IValue::Tensor(tensor) => vec![tensor],
                other => panic!("{other:?}"),
            }
        };
        let twice = Tensor::cat(&[&rows, &rows, &rows], 0);
        let represented = run("represent", &[twice]).swap_remove(0);
        close(&represented.narrow(0, 0, 1), &latents);
        let ([squares, width], heads) = (config(state).latents(), config(state).encoder.heads);
        let none = Tensor::zeros(
            [2, 3, squares, 0, heads, width / heads],
            (Kind::Float, Device::Cpu),
        );
        let (mut keys, mut values) = (none.copy(), none);
        let mut past = world.past();
        let (mut expected, mut found) = (represented.shallow_clone(), represented);
        for mv in [10i64, 400, 1000, 1850] {
            let moves = Tensor::from_slice(&[mv, mv - 7, 5]);
            expected = world.step(weights, &expected, &moves, &mut past);
            // Keep at most two earlier steps, because the context of 3 steps includes the new one.
            let kept = keys.size()[3].min(2);
            let last = |it: &Tensor| it.narrow(3, it.size()[3] - kept, kept);
            let inputs = [found, moves, last(&keys), last(&values)];
            let returned: [Tensor; 3] = run("step", &inputs).try_into().unwrap();
            [found, keys, values] = returned;
            close(&found, &expected);
        }
        let predicted = run("predict", &[found]);
        let rules = world.rules(weights, &world.expand(weights, &expected));
        close(&predicted[3], &rules.end);
        close(&predicted[4], &rules.legality);
        close(&predicted[5], &rules.board);
    }
}

/// Stored boards give the same results as unstored latents, for every prefix of a line and after
/// takebacks.
#[test]
fn boards_that_are_kept_go_on_as_if_all_were_computed_again() {
    for state in STATES {
        let _guard = tch::no_grad_guard();
        let network = network(state);
        let (world, weights) = (&network.architecture, &network.weights);
        let frozen = FrozenWorld::new(world, weights, Kind::Float.into(), Device::Cpu).unwrap();
        let rows = rows([&Game::default()]);
        let lines: [&[i64]; 3] = [&[10, 400, 1000, 1850, 3], &[10, 400, 77], &[10, 1200]];
        let root = frozen.look(&rows).kept;
        // The boards, by the moves that lead to them, as in a search tree.
        let mut known: Vec<(Vec<i64>, Tensor)> = vec![(Vec::new(), root)];
        for line in lines {
            let mut latents = world.represent(weights, &rows);
            let mut past = world.past();
            for ply in 0..line.len() {
                latents = world.step(
                    weights,
                    &latents,
                    &Tensor::from_slice(&line[ply..=ply]),
                    &mut past,
                );
                let board = |length: usize| {
                    let before = &line[..length];
                    let found = known.iter().find(|(moves, _)| moves == before);
                    found.unwrap().1.shallow_clone()
                };
                // The oldest step comes first. The context of 3 steps leaves room for two earlier
                // steps. The other row of the batch has no earlier steps.
                let ages: Vec<usize> = (0..=ply.min(1)).rev().collect();
                let of_age = |&age: &usize| {
                    let kept = board(ply - age).select(0, 0).narrow(0, 1, 4).unsqueeze(1);
                    match (age % 2, kept.size()[2]) {
                        (0, 64) => kept.unflatten(2, [8, 8]).flip([2]).flatten(2, 3),
                        _ => kept,
                    }
                };
                let back: Vec<Tensor> = ages.iter().map(of_age).collect();
                let back = Tensor::stack(&back, 3);
                let back = Tensor::cat(&[&back, &back], 1);
                let absent = ages.iter().map(|&age| ply == age);
                let absent: Vec<bool> = absent.chain(ages.iter().map(|_| true)).collect();
                let absent = Tensor::from_slice(&absent).view([2, -1]);
                let from = board(ply).select(1, 0).repeat([2, 1, 1]);
                let moves = Tensor::from_slice(&[line[ply], line[ply]]);
                let seen = frozen.step(&from, &back, &absent, &moves);
                let kept = seen.kept.narrow(0, 0, 1);
                close(&kept.select(1, 0), &latents);
                let rules = world.rules(weights, &world.expand(weights, &latents));
                close(&seen.rules.legality.narrow(0, 0, 1), &rules.legality);
                if ply > 0 {
                    let other = seen.kept.narrow(0, 1, 1).select(1, 0);
                    assert!((other - &latents).abs().max().double_value(&[]) > 1e-4);
                }
                known.push((line[..=ply].to_vec(), kept));
            }
        }
    }
}
