use super::*;
use crate::chess::Game;
use crate::data::examples::{Columns, Future, FuturePly, Instead, WithFuture};
use crate::data::legal::Legal;
use crate::data::loader::Cursor;
use crate::data::sample::{Policy, Sample};
use crate::encode::{Input, Squares, policy_index};
use crate::train::config::DiffusionTraining;
use crate::train::objective::IGNORED;
use shakmaty::Position;

const CONFIG: &str = r#"
name = "x"
steps = 1
batch = 4
[network]
family = "diffusion"
[network.model]
horizon = 3
[network.model.trunk]
layers = 1
width = 16
heads = 2
feed_forward = 16
position = { kind = "absolute" }
[data]
"#;

fn config(settings: &str) -> TrainConfig {
    let (before, after) = CONFIG.split_once("horizon = 3\n").unwrap();
    toml::from_str(&format!("{before}{settings}\n{after}")).unwrap()
}

fn plain() -> TrainConfig {
    config("horizon = 3")
}

/// Returns the positions of a game, each with as much of its future as exists.
fn examples() -> Vec<WithFuture> {
    let moves = "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5c6 d7c6";
    let mut game = Game::default();
    let (mut samples, mut plies) = (Vec::new(), Vec::new());
    for mv in moves.split(' ') {
        let mv = game.parse_move(mv).unwrap();
        let turn = game.position().turn();
        let played = policy_index(mv, turn);
        samples.push(Sample {
            input: Input::encode(&game),
            legal: Legal::of(&game.position().legal_moves(), turn),
            policy: Policy::Move(played),
            result: None,
            q: Some(0.5),
            short_term: None,
            moves_left: None,
            weight: 1.0,
        });
        game.play(mv);
        let board = Squares::of_board(game.position().board(), game.position().turn());
        plies.push(FuturePly { played, board });
    }
    let futures = (0..plies.len()).map(|from| plies[from..plies.len().min(from + 3)].to_vec());
    let with = |(sample, future)| WithFuture {
        sample,
        future,
        instead: None,
    };
    samples.into_iter().zip(futures).map(with).collect()
}

fn batch(examples: &[WithFuture], first: usize, global_batch: usize) -> Batch<HorizonColumns> {
    let mut columns = HorizonColumns::default();
    examples.iter().for_each(|example| columns.push(example));
    Batch {
        columns,
        next: Cursor::default(),
        global_batch,
        first,
    }
}

fn noise() -> Noise {
    let objective = HorizonObjective::for_validation(&plain(), Device::Cpu).unwrap();
    Noise::new(&objective.model.config, &DiffusionTraining::default(), 7)
}

fn squares(words: &[i64]) -> Squares {
    Squares::of_planes(bytemuck::cast_slice(words))
}

/// A board at one ply: the squares shown to the network, a mask, the present board and the true
/// board.
struct Board {
    shown: Squares,
    masked: u64,
    learned: u64,
    present: Squares,
    real: Option<Squares>,
}

fn boards(noised: &Noised, examples: &[WithFuture]) -> Vec<Board> {
    let board = |sample: usize, ply: usize| {
        let place = sample * 3 + ply - 1;
        let present = Squares::of_planes(examples[sample].sample.input.words());
        Board {
            shown: squares(&noised.pieces[place * 12..][..12]),
            masked: noised.marks[(sample * 4 + ply) * 6] as u64,
            learned: noised.learned[place] as u64,
            present: if ply % 2 == 1 {
                present.reversed()
            } else {
                present
            },
            real: examples[sample].future.get(ply - 1).map(|real| real.board),
        }
    };
    let samples = 0..examples.len();
    samples
        .flat_map(|sample| (1..=3).map(move |ply| board(sample, ply)))
        .collect()
}

#[test]
fn unknown_squares_show_the_present_and_are_learned() {
    let examples = examples();
    let noised = noise().apply(&batch(&examples, 0, 8));
    let mut seen = 0;
    for board in boards(&noised, &examples) {
        let Some(real) = board.real else {
            // Boards that do not exist are fully masked and are not targets.
            assert_eq!((board.shown, board.masked), (board.present, u64::MAX));
            assert_eq!(board.learned, 0);
            continue;
        };
        assert_eq!(board.masked, board.learned);
        assert_eq!(board.shown, real.with(board.masked, &board.present));
        seen += board.masked.count_zeros();
    }
    assert!(seen > 50, "{seen}");
    assert_eq!(noised.boards, [3., 3., 3., 3., 3., 3., 2., 1.]);
    assert_eq!(noised.later_moves, [2., 2., 2., 2., 2., 2., 1., 0.]);
    // Times are spread evenly, so one or two of the eight futures are fully masked.
    let mut shares = noised.noise.clone();
    shares.sort_by(f32::total_cmp);
    assert!(shares[0] < 0.4 && shares[6] > 0.7, "{shares:?}");
    assert_eq!((shares[5] < 1.0, shares[7]), (true, 1.0), "{shares:?}");
}

#[test]
fn moves_are_told_or_learned() {
    let examples = examples();
    let noised = noise().apply(&batch(&examples, 0, 8));
    let (mut told, mut learned) = (0, 0);
    for (sample, example) in examples.iter().enumerate() {
        let marks = |board: usize| &noised.marks[(sample * 4 + board) * 6 + 1..][..5];
        assert_eq!(marks(0), [0; 5], "the first move is not told");
        assert_eq!(marks(3), [0; 5]);
        for ply in 2..=3 {
            let wanted = noised.moves[sample * 2 + ply - 2];
            match example.future.get(ply - 1) {
                Some(real) if wanted == IGNORED => {
                    let expected = crate::network::diffusion::marks_of(0, Some(real.played));
                    assert!(
                        marks(ply - 1)
                            .iter()
                            .zip(&expected[1..])
                            .all(|(a, b)| *a as u64 == *b)
                    );
                    told += 1;
                }
                Some(real) => {
                    assert_eq!(wanted, i64::from(real.played));
                    assert_eq!(marks(ply - 1), [0; 5]);
                    learned += 1;
                }
                None => assert_eq!((wanted, marks(ply - 1)), (IGNORED, &[0; 5][..])),
            }
        }
    }
    assert!(told > 2 && learned > 2, "{told} {learned}");
}

#[test]
fn told_moves_have_their_value_and_no_policy() {
    let mut examples = examples();
    // Each sample but the last gets an alternative: the next sample's future, with this value.
    for place in 0..7 {
        examples[place].instead = Some(Instead {
            future: examples[place + 1].future.clone(),
            q: -0.25,
        });
    }
    let examples: Vec<WithFuture> = examples.into_iter().cycle().take(64).collect();
    let mut config = config("horizon = 3");
    config.diffusion.told = 0.5;
    let error = config.check_keys().unwrap_err();
    assert!(error.to_string().contains("weighs = true"), "{error}");
    let mut config = self::config("horizon = 3\nweighs = true");
    config.diffusion.told = 0.5;
    config.diffusion.future_q = 1.0;
    let objective = HorizonObjective::new(&config, Device::Cpu).unwrap();
    let noised = objective.noise.apply(&batch(&examples, 0, 64));
    let (mut others, mut targets) = (0, 0);
    let marks = |row: usize| &noised.marks[row * 4 * 6 + 1..][..5];
    let told_rows: Vec<usize> = noised.told.iter().map(|told| told.row).collect();
    for told in &noised.told {
        let example = &examples[told.row];
        let future = match (told.q, &example.instead) {
            (Some(q), Some(instead)) => {
                assert_eq!(q, -0.25);
                others += 1;
                &instead.future
            }
            (None, _) => {
                targets += 1;
                &example.future
            }
            (Some(_), None) => panic!("nothing was played instead"),
        };
        let expected = crate::network::diffusion::marks_of(0, Some(future[0].played));
        assert!(
            marks(told.row)
                .iter()
                .zip(&expected[1..])
                .all(|(a, b)| *a as u64 == *b)
        );
        let board = &noised.squares[told.row * 12..][..4];
        assert_eq!(
            bytemuck::cast_slice::<i64, u64>(board),
            future[0].board.words()
        );
    }
    assert!(others > 5 && targets > 12, "{others} {targets}");
    for row in (0..64).filter(|row| !told_rows.contains(row)) {
        assert_eq!(marks(row), [0; 5]);
    }
    let mut columns = batch(&examples, 0, 64).columns.positions;
    let plain = columns.clone();
    tell(&mut columns, &noised.told);
    let untold: Vec<i64> = (0..64)
        .filter(|row| !told_rows.contains(&(*row as usize)))
        .collect();
    assert_eq!(columns.policy.row, untold);
    for row in 0..64 {
        let told = noised.told.iter().find(|told| told.row == row);
        let expected = told.and_then(|told| told.q).unwrap_or(plain.q[row]);
        assert_eq!(columns.q[row], expected);
    }
    // Each board has the value that the given moves lead to, from the perspective of its side to
    // move.
    let (samples, weights) = objective.prepare(batch(&examples, 0, 64)).unwrap();
    let future = samples.future.as_ref().unwrap();
    let other = noised.told.iter().find(|told| told.q.is_some()).unwrap();
    let of_row = Vec::<f32>::try_from(future.q.get(other.row as i64)).unwrap();
    assert_eq!(of_row, [0.25, -0.25, 0.25]);
    let place = PositionObjective::terms(&config).len() as i64 + 2;
    assert_eq!(weights.double_value(&[place, other.row as i64]), 1.0);
    tch::manual_seed(1);
    let flat = objective.model.initial_weights();
    let network = Weights::from_flat(&flat, objective.parameters());
    let mut outputs = objective.forward(&network, &samples);
    if let Some(imagined) = &mut outputs.future {
        imagined.q = Some(&future.q + 0.5);
    }
    let value = &objective.values(&outputs, &samples)[place as usize];
    assert!((value.double_value(&[other.row as i64]) - 0.25).abs() < 1e-6);
    // In a validation, no first moves are given.
    let validation = HorizonObjective::for_validation(&config, Device::Cpu).unwrap();
    assert!(
        validation
            .noise
            .apply(&batch(&examples, 0, 64))
            .told
            .is_empty()
    );
}

#[test]
fn chance_depends_on_the_place_alone() {
    let examples: Vec<WithFuture> = examples().into_iter().cycle().take(24).collect();
    let noise = noise();
    let whole = noise.apply(&batch(&examples, 0, 24));
    let part = noise.apply(&batch(&examples[5..13], 5, 24));
    assert_eq!(whole.pieces[5 * 36..13 * 36], part.pieces);
    assert_eq!(whole.moves[10..26], part.moves);
    assert_eq!(whole.noise[5..13], part.noise);
    let other = Noise { seed: 8, ..noise }.apply(&batch(&examples, 0, 24));
    assert_ne!(whole, other);
}

/// Returns logits that are certain of these classes.
fn sure(classes: &Tensor, count: i64) -> Tensor {
    classes.clamp_min(0).one_hot(count).to_kind(Kind::Float) * 50.0
}

#[test]
fn losses_are_zero_when_right_and_weighted_otherwise() {
    let config = plain();
    let objective = HorizonObjective::for_validation(&config, Device::Cpu).unwrap();
    let examples = examples();
    let (samples, weights) = objective.prepare(batch(&examples, 0, 8)).unwrap();
    let future = samples.future.as_ref().unwrap();
    tch::manual_seed(1);
    let flat = objective.model.initial_weights();
    let network = Weights::from_flat(&flat, objective.parameters());
    let mut outputs = objective.forward(&network, &samples);
    let count = outputs.present_terms();
    let values = |outputs: &HorizonOutputs| objective.values(outputs, &samples).split_off(count);
    let right = || DenoisedFuture {
        squares: sure(&future.squares, 13),
        moves: Some(sure(&future.moves, 1858)),
        q: Some(future.q.shallow_clone()),
    };
    outputs.future = Some(right());
    let own = weights.narrow(0, count as i64, 6);
    for (row, (value, expected)) in values(&outputs)
        .iter()
        .zip([0., 0., 0., 1., 1., 1.])
        .enumerate()
    {
        for place in 0..8 {
            if own.double_value(&[row as i64, place]) > 0.0 {
                let value = value.double_value(&[place]);
                assert!((value - expected).abs() < 1e-4, "{row} {place}: {value}");
            }
        }
    }
    // The last sample has one board and no move after the first. In accuracies, samples are
    // weighted by their numbers of targets.
    let row = |number: i64| Vec::<f32>::try_from(own.get(number)).unwrap();
    assert_eq!((row(0)[7], row(1)[7], row(1)[0]), (1.0, 0.0, 1.0));
    assert_eq!(
        row(3)[0] as f64,
        future.learned.get(0).sum(Kind::Float).double_value(&[])
    );
    // One masked square of the first sample is predicted wrongly.
    let learned = &future.learned * &future.changed;
    for (mask, factor) in [
        (&learned, 8.0),
        (&(&future.learned * (1.0 - &future.changed)), 1.0),
    ] {
        let place = mask.get(0).reshape([-1]).argmax(0, false).int64_value(&[]);
        let wrong = right();
        let logits = wrong.squares.get(0).view([-1, 13]).get(place);
        let class = future.squares.get(0).view([-1]).int64_value(&[place]);
        let _ = logits.shallow_clone().fill_(0.0);
        let _ = logits.get((class + 1) % 13).fill_(50.0);
        outputs.future = Some(wrong);
        let found = values(&outputs)[0].double_value(&[0]);
        let noised = objective.noise.apply(&batch(&examples, 0, 8));
        let expected = 50.0 * factor * f64::from(noised.weight[0]) / (64.0 * 3.0);
        assert!(
            (found / expected - 1.0).abs() < 1e-3,
            "{found}, not {expected}"
        );
    }
}

#[test]
fn samples_without_futures_teach_their_policy() {
    let mut examples = examples();
    examples.truncate(2);
    examples[0].future = Future::new();
    for settings in ["horizon = 3", "horizon = 0", "horizon = 1"] {
        let objective = HorizonObjective::for_validation(&config(settings), Device::Cpu).unwrap();
        let (samples, weights) = objective.prepare(batch(&examples, 0, 2)).unwrap();
        tch::manual_seed(1);
        let flat = objective.model.initial_weights();
        let network = Weights::from_flat(&flat, objective.parameters());
        let outputs = objective.forward(&network, &samples);
        let values = Tensor::stack(&objective.values(&outputs, &samples), 0);
        assert_eq!(values.size(), weights.size(), "{settings}");
        assert_eq!(values.isnan().any().int64_value(&[]), 0, "{settings}");
        let first = outputs.present_terms() as i64;
        let boards = Vec::<f32>::try_from(weights.get(first)).unwrap();
        let expected = if settings == "horizon = 0" { 0.0 } else { 1.0 };
        assert_eq!(boards, [0.0, expected], "{settings}");
        assert_eq!(weights.double_value(&[0, 0]), 1.0);
    }
}

#[test]
fn samples_know_what_the_network_imagines() {
    let mut config = plain();
    config.diffusion.own = 1.0;
    config.diffusion.own_steps = 4;
    let objective = HorizonObjective::new(&config, Device::Cpu).unwrap();
    let examples = examples();
    let (samples, weights) = objective.prepare(batch(&examples, 0, 8)).unwrap();
    let future = samples.future.as_ref().unwrap();
    tch::manual_seed(1);
    let flat = objective.model.initial_weights();
    let network = Weights::from_flat(&flat, objective.parameters());
    // Everything is known, as in the last step of decoding.
    let rows = &samples.positions.rows;
    let known = objective.with_own(&network, rows, future);
    let imagined = objective.model.imagine(&network, rows, objective.own);
    assert_eq!(
        (&known.pieces, &known.marks),
        (&imagined.pieces, &imagined.marks)
    );
    assert_eq!(Vec::<f32>::try_from(&known.noise).unwrap(), [0.0; 8]);
    assert_ne!(known.pieces, future.known.pieces);
    // These samples train the policy, but nothing about the future.
    let first = PositionObjective::terms(&config).len() as i64;
    assert_eq!(weights.get(0).double_value(&[3]), 1.0);
    let learned = weights.narrow(0, first, 6).abs().max().double_value(&[]);
    assert_eq!(learned, 0.0);
    // With a smaller share, the remaining samples keep their true futures.
    config.diffusion.own = 0.4;
    let objective = HorizonObjective::new(&config, Device::Cpu).unwrap();
    let noised = objective.noise.apply(&batch(&examples, 0, 8));
    assert!((1..8).contains(&noised.own.len()), "{:?}", noised.own);
    let (samples, _) = objective.prepare(batch(&examples, 0, 8)).unwrap();
    let (rows, future) = (&samples.positions.rows, samples.future.as_ref().unwrap());
    let known = objective.with_own(&network, rows, future);
    for row in 0..8 {
        let is_told = known.pieces.get(row) == future.known.pieces.get(row);
        assert_eq!(is_told, !noised.own.contains(&row), "{row}");
    }
}

impl HorizonOutputs {
    /// Returns the number of terms that concern the present position.
    fn present_terms(&self) -> usize {
        PositionObjective::terms(&plain()).len()
    }
}
