use super::*;
use crate::backend::{CodePolicy, Decoding};
use crate::chess::Game;
use crate::encode::{Input, POLICY_SIZE, Squares, WIDTH, policy_index};
use crate::network::Program;
use crate::network::chessformer::{ModelConfig, PositionConfig};
use crate::network::{About, Chessformer, Network, Parameter, open};
use crate::torch::ExportPrecision;
use shakmaty::Position;
use tch::{CModule, IValue, Kind};

fn config() -> DiffusionConfig {
    let mut trunk = ModelConfig::preset("cf-1m-gab").unwrap();
    (trunk.layers, trunk.width, trunk.heads, trunk.feed_forward) = (2, 32, 2, 32);
    trunk.attacks = true;
    trunk.attack_bias = true;
    trunk.position = PositionConfig::Gab {
        compress: 4,
        hidden: 16,
        generator: 8,
    };
    DiffusionConfig {
        horizon: 3,
        changed: 8,
        weighs: false,
        trunk,
        kind: (),
        noise: (),
        futures: (),
    }
}

fn build(config: &DiffusionConfig) -> Diffusion {
    Diffusion::new(config, Device::Cpu).unwrap()
}

/// Returns two sets of parameters: fresh ones, and random ones with which every input affects the
/// outputs.
fn parameters(model: &Diffusion) -> [Tensor; 2] {
    tch::manual_seed(4);
    let flat = model.initial_weights();
    let apart = &flat + Tensor::randn_like(&flat) * 0.1;
    [flat, apart]
}

fn trunk_of(model: &Diffusion) -> Chessformer {
    Chessformer::new(&model.config.trunk, Device::Cpu).unwrap()
}

fn weights(model: &Diffusion, flat: &Tensor) -> Weights {
    Weights::from_flat(flat, model.parameters())
}

fn games() -> Vec<Game> {
    let mut game = Game::default();
    let moves = ["e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "g8f6", "e1g1"];
    let after = |mv: &str| {
        game.play(game.parse_move(mv).unwrap());
        game.clone()
    };
    moves.map(after).to_vec()
}

fn rows() -> Tensor {
    let rows: Vec<i64> = games()
        .iter()
        .flat_map(|game| bytemuck::cast::<_, [i64; WIDTH]>(Input::encode(game)))
        .collect();
    Tensor::from_slice(&rows).view([-1, WIDTH as i64])
}

fn all() -> OutputSet {
    OutputSet::all()
}

fn off(one: &Tensor, other: &Tensor) -> f64 {
    assert_eq!(one.size(), other.size());
    (one - other).abs().max().double_value(&[])
}

#[test]
fn it_begins_as_the_chessformer_that_it_is_grown_from() {
    let _guard = tch::no_grad_guard();
    let model = build(&config());
    let [fresh, apart] = parameters(&model);
    let trunk = trunk_of(&model);
    let count: i64 = trunk.parameters().iter().map(Parameter::count).sum();
    let own = apart.narrow(0, 0, count);
    let new = fresh.narrow(0, count, fresh.size()[0] - count);
    let grown = weights(&model, &Tensor::cat(&[&own, &new], 0));
    let rows = rows();
    let pass = Pass::new(Positions::Rows(&rows), all());
    let alone = Weights::from_flat(&own, trunk.parameters());
    let expected = trunk.forward(&alone, &pass);
    let found = model.forward(&grown, &pass);
    for output in [Output::Policy, Output::Wdl, Output::Q, Output::MovesLeft] {
        let [found, expected] = [&found, &expected].map(|it| it.get(output).unwrap());
        assert!(off(found, expected) < 1e-5, "{output:?}");
    }
    // The predicted future covers all plies, and its moves are those after the first.
    let futures = model.unknown(&rows);
    let future = model
        .denoise(&grown, &rows, &futures, all(), false)
        .future
        .unwrap();
    assert_eq!(future.squares.size(), [7, 3, 64, 13]);
    assert_eq!(future.moves.unwrap().size(), [7, 2, 1858]);
}

/// Files may still contain removed keys, but only with the one value that remains.
#[test]
fn values_that_were_removed_are_named() {
    let written = serde_json::to_value(config()).unwrap();
    assert!(written.get("noise").is_none());
    let read = |key: &str, value: &str| {
        let mut written = written.clone();
        written[key] = value.into();
        serde_json::from_value::<DiffusionConfig>(written).map_err(|error| error.to_string())
    };
    for (key, left, gone) in [
        ("kind", "grid", "sequence"),
        ("noise", "absorbing", "uniform"),
        ("futures", "states+moves", "moves"),
    ] {
        assert_eq!(read(key, left), Ok(config()));
        let error = read(key, gone).unwrap_err();
        assert!(error.contains(&format!("leave `{key}` out")), "{error}");
    }
}

#[test]
fn planes_say_what_rows_say() {
    let _guard = tch::no_grad_guard();
    let model = build(&config());
    let weights = weights(&model, &parameters(&model)[1]);
    let rows = rows();
    let planes = model.interface().planes_of(&rows);
    let evaluate = |positions| model.forward(&weights, &Pass::new(positions, all()));
    let by_rows = evaluate(Positions::Rows(&rows));
    let by_planes = evaluate(Positions::Planes(&planes));
    for output in [Output::Policy, Output::Wdl, Output::Q] {
        let [by_rows, by_planes] = [&by_rows, &by_planes].map(|it| it.get(output).unwrap());
        assert!(off(by_rows, by_planes) < 1e-4, "{output:?}");
    }
}

#[test]
fn without_a_horizon_it_is_its_trunk() {
    let config = DiffusionConfig {
        horizon: 0,
        ..config()
    };
    let model = build(&config);
    assert_eq!(model.parameters(), trunk_of(&model).parameters());
    assert_eq!(model.unknown(&rows()).pieces.size(), [7, 0, 12]);
    let beyond = DiffusionConfig {
        horizon: 8,
        ..config
    };
    let error = Diffusion::new(&beyond, Device::Cpu).unwrap_err();
    assert!(error.to_string().contains("horizon is 8"), "{error}");
}

#[test]
fn unknown_boards_are_the_present_as_their_movers_see_it() {
    let model = build(&config());
    let rows = rows();
    let futures = model.unknown(&rows);
    let constants = &model.constants;
    let all = constants.rows(&rows, &futures.pieces, 110);
    assert_eq!(all.size(), [28, 110]);
    for (place, game) in (0..).zip(games()) {
        let input = Input::encode(&game);
        let present = Squares::of_planes(input.words());
        let turned = present.reversed();
        let words = |ply: i64| Vec::<i64>::try_from(all.get(place * 4 + ply)).unwrap();
        assert_eq!(words(0), bytemuck::cast::<_, [i64; WIDTH]>(input)[..110]);
        for ply in 1..4 {
            let words = words(ply);
            let board = Squares::of_planes(bytemuck::cast_slice(&words));
            let expected = if ply % 2 == 1 { turned } else { present };
            assert_eq!(board, expected, "{ply}");
            // The history repeats only this board, without marks for repetitions.
            assert!(words[..104].chunks(13).all(|it| it == &words[..13]));
            assert_eq!(words[12], 0);
            let black = u64::from(input.turn().is_black()) as i64;
            assert_eq!(words[108], (black + ply) % 2);
        }
        // The two sides' castling rights swap with the side to move.
        let rights = |ply: i64| words(ply)[104..108].to_vec();
        let flip = |word: i64| word.swap_bytes();
        let (now, next) = (rights(0), rights(1));
        let expected = [now[2], now[3], now[0], now[1]].map(flip);
        assert_eq!((next, rights(2)), (expected.to_vec(), now));
    }
    let marks = Vec::<i64>::try_from(futures.marks.get(0).reshape([-1])).unwrap();
    let masked = [0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0];
    assert_eq!(marks[..12], masked);
    assert_eq!(Vec::<f32>::try_from(&futures.noise).unwrap(), [1.0; 7]);
}

#[test]
fn everything_learns() {
    let model = build(&config());
    let [_, apart] = parameters(&model);
    let flat = apart.set_requires_grad(true);
    let weights = weights(&model, &flat);
    let rows = rows();
    let mut futures = model.unknown(&rows);
    // On every board, a1 is masked and has all marks of a move, except that the board after the
    // second ply has no marked move.
    let known = futures.marks.ones_like();
    let _ = known.narrow(1, 2, 1).narrow(2, 1, 5).zero_();
    futures.marks = known;
    let imagined = model.denoise(&weights, &rows, &futures, all(), true);
    let future = imagined.future.unwrap();
    let square = |tensor: &Tensor| tensor.square().mean(None::<Kind>);
    let mut loss = square(&future.squares) + square(&future.moves.unwrap());
    for output in Output::ALL.into_iter().filter(|&it| model.has(it)) {
        loss += square(imagined.present.get(output).unwrap());
    }
    loss.backward();
    let gradient = Weights::from_flat(&flat.grad(), model.parameters());
    for (parameter, gradient) in model.parameters().iter().zip(gradient.tensors()) {
        let reached = gradient.abs().sum(None::<Kind>).double_value(&[]);
        assert!(reached > 0.0, "{}", parameter.name);
    }
}

#[test]
fn known_squares_appear_on_every_board() {
    let _guard = tch::no_grad_guard();
    let model = build(&config());
    let weights = weights(&model, &parameters(&model)[1]);
    let rows = rows();
    let denoise = |futures: &Futures| {
        let imagined = model.denoise(&weights, &rows, futures, all(), false);
        let future = imagined.future.unwrap();
        [
            imagined.present.policy().copy(),
            future.squares,
            future.moves.unwrap(),
        ]
    };
    let before = denoise(&model.unknown(&rows));
    let changes: [fn(&mut Futures); 3] = [
        |futures| {
            let _ = futures.noise.fill_(0.5);
        },
        // Reveals all squares of the board after the second ply, then the move that is played from
        // it.
        |futures| {
            let _ = futures.marks.narrow(1, 2, 1).narrow(2, 0, 1).fill_(0);
        },
        |futures| {
            let _ = futures.marks.narrow(1, 2, 1).narrow(2, 1, 1).fill_(1 << 12);
        },
    ];
    for change in changes {
        let mut futures = model.unknown(&rows);
        change(&mut futures);
        for (before, after) in before.iter().zip(denoise(&futures)) {
            let off = (before - after)
                .abs()
                .flatten(1, -1)
                .amax([1i64].as_slice(), false);
            assert!(off.min().double_value(&[]) > 1e-6);
        }
    }
}

#[test]
fn its_file_plays_its_first_step() {
    let _guard = tch::no_grad_guard();
    let folder = tempfile::tempdir().unwrap();
    let model = build(&config());
    let flat = parameters(&model)[1].shallow_clone();
    let about = About {
        correction: None,
        name: "test".to_owned(),
        search_value: "q".to_owned(),
        training: serde_json::Value::Null,
        licence: "unknown".to_owned(),
    };
    let network = Network::new(Box::new(model) as Box<dyn Evaluator>, &flat, about);
    let path = folder.path().join("test.pt");
    network.write(ExportPrecision::F32, &path).unwrap();
    let file = std::fs::read(&path).unwrap();
    crate::torch::open(&file, CodePolicy::Checked).unwrap();
    let opened = open(&file, CodePolicy::Checked).unwrap();
    let script = CModule::load(&path).unwrap();
    for count in [1, 7] {
        let rows = rows().narrow(0, 0, count).narrow(1, 0, 110);
        let expected = network.forward(Positions::Rows(&rows));
        let again = opened.forward(Positions::Rows(&rows));
        let IValue::Tuple(found) = script.forward_is(&[IValue::Tensor(rows)]).unwrap() else {
            panic!("not a tuple");
        };
        assert_eq!((again.len(), found.len()), (expected.len(), expected.len()));
        for ((expected, again), found) in expected.iter().zip(again).zip(found) {
            let IValue::Tensor(found) = found else {
                panic!("not a tensor");
            };
            assert!(off(expected, &again) == 0.0);
            assert!(off(expected, &found) < 1e-4);
        }
    }
}

fn decoding(steps: usize, horizon: usize) -> Decoding {
    Decoding {
        horizon,
        ..Decoding::step_by_step(steps)
    }
}

#[test]
fn futures_are_revealed_step_by_step() {
    let _guard = tch::no_grad_guard();
    let model = build(&config());
    let weights = weights(&model, &parameters(&model)[1]);
    let rows = rows();
    let plain = model.forward(&weights, &Pass::new(Positions::Rows(&rows), all()));
    let (once, predicted) = model.decode(&weights, &rows, decoding(1, 0), all(), |_, _| {});
    assert!(off(once.policy(), plain.policy()) < 1e-5);
    assert_eq!((predicted.len(), predicted[0].boards.len()), (7, 3));
    for steps in [2, 5, 10] {
        let mut unknown: Vec<u32> = Vec::new();
        let count = |states: &[Revealed]| -> u32 {
            let squares = states.iter().flat_map(|state| &state.boards);
            let moves = states.iter().flat_map(|state| &state.moves);
            squares.map(|it| it.unknown.count_ones()).sum::<u32>()
                + moves.map(|it| u32::from(!it.is_known)).sum::<u32>()
        };
        let seen = |step: usize, states: &[Revealed]| {
            assert_eq!(step, unknown.len() + 1);
            unknown.push(count(states));
        };
        let (last, predicted) = model.decode(&weights, &rows, decoding(steps, 0), all(), seen);
        assert_eq!(unknown.len(), steps);
        assert_eq!(unknown[steps - 2..], [0; 2]);
        assert!(unknown.is_sorted_by(|a, b| a >= b), "{unknown:?}");
        // The predicted future changes the move.
        assert!(off(last.policy(), plain.policy()) > 1e-5);
        // Results do not depend on other positions in the batch.
        let (alone, of_one) = model.decode(
            &weights,
            &rows.narrow(0, 4, 1),
            decoding(steps, 0),
            all(),
            |_, _| {},
        );
        assert!(off(alone.policy(), &last.policy().narrow(0, 4, 1)) < 1e-4);
        assert_eq!(of_one[0].boards, predicted[4].boards);
    }
}

/// The given move determines the prediction and its value. The values determine the move to play.
#[test]
fn candidates_are_weighed_by_what_they_lead_to() {
    let _guard = tch::no_grad_guard();
    let model = build(&DiffusionConfig {
        weighs: true,
        ..config()
    });
    let weights = weights(&model, &parameters(&model)[1]);
    let rows = rows();
    let decode_rows = |rows: &Tensor, steps: usize, trust: u16| {
        let decoding = Decoding {
            trust,
            ..decoding(steps, 2)
        };
        model.decode(&weights, rows, decoding, all(), |_, _| {})
    };
    let decode = |steps: usize, trust: u16| decode_rows(&rows, steps, trust);
    let logits =
        |outputs: &Outputs| -> Vec<f32> { Vec::try_from(outputs.policy().reshape([-1])).unwrap() };
    let q = |outputs: &Outputs| outputs.get(Output::Q).unwrap().shallow_clone();
    let (unaided, _) = decode(1, 50);
    let before = logits(&unaided);
    for steps in [2, 5, 40] {
        let (outputs, predicted) = decode(steps, 50);
        assert_eq!((predicted.len(), predicted[0].boards.len()), (7, 2));
        // The value is that of the best candidate, not that of the position.
        assert!(off(&q(&outputs), &q(&unaided)) > 1e-6);
        let after = logits(&outputs);
        for (row, game) in games().iter().enumerate() {
            let turn = game.position().turn();
            let legal = game.position().legal_moves();
            let mut legal: Vec<usize> = legal
                .iter()
                .map(|&mv| policy_index(mv, turn).into())
                .collect();
            let at = |index: usize| row * POLICY_SIZE + index;
            legal.sort_by(|&a, &b| before[at(b)].total_cmp(&before[at(a)]));
            let likeliest = &legal[..legal.len().min(steps - 1)];
            let changed = (0..POLICY_SIZE).filter(|&it| before[at(it)] != after[at(it)]);
            let changed: Vec<usize> = changed.collect();
            assert!(changed.iter().all(|it| likeliest.contains(it)));
            assert!(!changed.is_empty());
        }
        // Doubling the trust in values doubles the changes to the logits.
        let twice = logits(&decode(steps, 100).0);
        let moved =
            |after: &[f32]| -> Vec<f32> { after.iter().zip(&before).map(|(a, b)| a - b).collect() };
        let pairs = moved(&twice).into_iter().zip(moved(&after));
        assert!(
            pairs
                .into_iter()
                .all(|(two, one)| (two - 2.0 * one).abs() < 1e-3)
        );
        // Results do not depend on other positions in the batch.
        let (alone, of_one) = decode_rows(&rows.narrow(0, 4, 1), steps, 50);
        assert!(off(alone.policy(), &outputs.policy().narrow(0, 4, 1)) < 1e-4);
        assert_eq!(of_one[0].boards, predicted[4].boards);
    }
    // If the trust is 0, futures are revealed step by step.
    let (revealed, _) = decode(5, 0);
    assert!(off(&q(&revealed), &q(&decode(5, 50).0)) > 1e-6);
    // A row that does not encode a position has no candidates.
    let padded = Tensor::cat(&[&rows, &rows.narrow(0, 0, 1).zeros_like()], 0);
    let (outputs, predicted) = decode_rows(&padded, 5, 50);
    assert_eq!((outputs.policy().size()[0], predicted.len()), (8, 8));
}

#[test]
fn fewer_plies_can_be_imagined() {
    let _guard = tch::no_grad_guard();
    let model = build(&config());
    let weights = weights(&model, &parameters(&model)[1]);
    for (asked, found) in [(0, 3), (1, 1), (2, 2), (9, 3)] {
        let decoding = decoding(3, asked);
        let (_, predicted) = model.decode(&weights, &rows(), decoding, all(), |_, _| {});
        let lengths = (predicted[0].boards.len(), predicted[0].moves.len());
        assert_eq!(lengths, (found, found - 1));
    }
    let none = build(&DiffusionConfig {
        horizon: 0,
        ..config()
    });
    let weights = self::weights(&none, &parameters(&none)[1]);
    let (outputs, predicted) = none.decode(&weights, &rows(), decoding(5, 0), all(), |_, _| {});
    assert_eq!(outputs.policy().size(), [7, 1858]);
    assert!(predicted[6].boards.is_empty());
}

/// In play, the layers use kernels with packed weights.
#[test]
fn a_played_network_imagines_in_every_format() {
    let model = build(&config());
    let flat = parameters(&model)[1].shallow_clone();
    let about = About {
        correction: None,
        name: "test".to_owned(),
        search_value: "q".to_owned(),
        training: serde_json::Value::Null,
        licence: "unknown".to_owned(),
    };
    let network = Network::new(Box::new(model) as Box<dyn Evaluator>, &flat, about);
    let rows = rows();
    let denoise = |kind: Kind, int8: bool, steps: usize| {
        let dtype = crate::torch::ComputeType { kind, int8 };
        let frozen = network.freeze(dtype).unwrap();
        let (outputs, predicted) = frozen.forward_with_futures(&rows, Some(steps)).unwrap();
        (outputs[0].to_kind(Kind::Float), predicted)
    };
    let (exact, predicted) = denoise(Kind::Float, false, 1);
    assert_eq!(predicted.len(), 7);
    for (kind, int8) in [(Kind::BFloat16, false), (Kind::BFloat16, true)] {
        let (rounded, _) = denoise(kind, int8, 1);
        let spread = exact.std(true).double_value(&[]);
        let off = (&rounded - &exact)
            .abs()
            .mean(Kind::Float)
            .double_value(&[]);
        assert!(off < 0.1 * spread, "{kind:?}: {off} of {spread}");
        let (_, predicted) = denoise(kind, int8, 4);
        assert_eq!(predicted[3].boards.len(), Decoding::default().horizon);
    }
}

#[test]
fn decoding_corrects_the_bias_towards_change() {
    let model = build(&config());
    let calibration = model.calibration(&rows(), 2);
    assert_eq!(calibration.size(), [7, 2, 64, 13]);
    let at = |ply: i64, square: i64, class: i64| {
        let found = calibration.double_value(&[0, ply - 1, square, class]);
        (found - 8f64.ln()).abs() < 1e-6
    };
    // After 1. e4, White's view shows Black's pawn on e7. Black's view is flipped, so the square is
    // empty.
    let (e1, e7, e8, king, other_king, other_pawn) = (4, 52, 60, 6, 12, 7);
    assert!(at(1, e1, king) && at(1, e8, other_king) && at(1, e7, other_pawn));
    assert!(at(2, e1, king) && at(2, e8, other_king) && at(2, e7, 0));
    let total = calibration.sum(Kind::Float).double_value(&[]);
    assert!((total / 8f64.ln() - 7.0 * 2.0 * 64.0).abs() < 1e-2);
    let unweighed = build(&DiffusionConfig {
        changed: 1,
        ..config()
    });
    assert_eq!(
        unweighed
            .calibration(&rows(), 2)
            .abs()
            .max()
            .double_value(&[]),
        0.0
    );
}
