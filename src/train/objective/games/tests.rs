use super::*;
use crate::data::loader::Cursor;
use crate::encode::Vocabulary;

const CONFIG: &str = r#"
name = "x"
steps = 1
batch = 4
[network]
family = "gpt"
[network.model]
layers = 2
width = 32
heads = 4
feed_forward = 48
context = 32
[data]
"#;

fn config() -> TrainConfig {
    toml::from_str(CONFIG).unwrap()
}

fn weights(objective: &Games) -> Weights {
    tch::manual_seed(3);
    let flat = objective.model.initial_weights();
    let flat = &flat + Tensor::randn_like(&flat) * 0.1;
    Weights::from_flat(&flat, objective.parameters())
}

fn game(length: usize, result: Option<Wdl>) -> GameTokens {
    let tokens = (0..length as u16).map(|place| place * 37 % 1900);
    GameTokens {
        tokens: std::iter::once(Vocabulary::Uci.start())
            .chain(tokens)
            .collect(),
        ratings: [1500, 1800],
        result,
    }
}

fn batch(games: Vec<GameTokens>, first: usize, global_batch: usize) -> Batch<GameColumns> {
    Batch {
        columns: GameColumns { games },
        next: Cursor::default(),
        global_batch,
        first,
    }
}

fn close(one: &Tensor, other: &Tensor) {
    assert_eq!(one.size(), other.size());
    let off = (one - other).abs().max().double_value(&[]);
    assert!(off < 1e-4, "{one} {other}");
}

#[test]
fn a_game_is_learned_alike_alone_and_beside_longer_ones() {
    let objective = Games::for_validation(&config(), Device::Cpu).unwrap();
    let weights = weights(&objective);
    let values = |samples: &GameSamples| {
        let outputs = objective.forward(&weights, samples);
        Tensor::stack(&objective.values(&outputs, samples), 0)
    };
    let games = [9, 20, 3].map(|length| game(length, Some(Wdl::Win)));
    let (together, loss_weights) = objective.prepare(batch(games.to_vec(), 0, 3)).unwrap();
    assert_eq!(together.lengths, [20, 9, 3]);
    close(
        &loss_weights.select(0, 0),
        &Tensor::from_slice(&[20f32, 9.0, 3.0]),
    );
    let whole = values(&together);
    for (place, number) in [(0, 1), (1, 0), (2, 2)] {
        let (alone, _) = objective
            .prepare(batch(vec![games[number].clone()], 0, 1))
            .unwrap();
        close(&values(&alone), &whole.narrow(1, place, 1));
        // A micro-batch is as wide as its longest game.
        let part = together.narrow(place, 1);
        assert_eq!(part.tokens.size(), [1, together.lengths[place as usize]]);
        close(&values(&part), &whole.narrow(1, place, 1));
    }
}

#[test]
fn results_are_learned_where_they_are_known_and_not_told() {
    let mut config = config();
    let objective = Games::new(&config, Device::Cpu).unwrap();
    let games = vec![game(5, Some(Wdl::Loss)), game(5, None)];
    let weights_of = |objective: &Games| -> Vec<f32> {
        let (_, weights) = objective.prepare(batch(games.clone(), 0, 2)).unwrap();
        Vec::try_from(weights.select(0, 1)).unwrap()
    };
    assert_eq!(weights_of(&objective), [0.0, 0.0]);
    config.augment.hide_result = 1.0;
    let objective = Games::new(&config, Device::Cpu).unwrap();
    assert_eq!(weights_of(&objective), [5.0, 0.0]);
    let (samples, _) = objective.prepare(batch(games, 0, 2)).unwrap();
    assert_eq!(Vec::<i64>::try_from(&samples.result).unwrap(), [2, IGNORED]);
    assert_eq!(
        Vec::<i64>::try_from(samples.wanted.reshape([-1])).unwrap(),
        [0, 0]
    );
}

#[test]
fn chance_depends_on_the_place_alone() {
    let mut config = config();
    config.augment.hide_ratings = 0.5;
    config.augment.hide_result = 0.5;
    let objective = Games::new(&config, Device::Cpu).unwrap();
    let games: Vec<GameTokens> = (0..40).map(|_| game(4, Some(Wdl::Draw))).collect();
    let whole = objective.chances(&batch(games.clone(), 0, 40));
    let part = objective.chances(&batch(games[10..30].to_vec(), 10, 40));
    assert_eq!(whole[10..30], part);
    for hidden in [[false, false], [false, true], [true, false], [true, true]] {
        let is_so = |chance: &Chance| [chance.hides_ratings, chance.hides_result] == hidden;
        assert!(whole.iter().any(is_so));
    }
    assert!(whole.iter().all(|chance| chance.random_moves.is_none()));
}

#[test]
fn what_is_right_costs_nothing() {
    let objective = Games::for_validation(&config(), Device::Cpu).unwrap();
    let (samples, _) = objective
        .prepare(batch(
            vec![game(6, Some(Wdl::Win)), game(3, Some(Wdl::Draw))],
            0,
            2,
        ))
        .unwrap();
    let classes = Vocabulary::Uci.size() as i64;
    let sure = |target: &Tensor, classes: i64| target.clamp_min(0).one_hot(classes) * 50.0;
    let outcome = samples.result.unsqueeze(1).expand_as(&samples.next);
    let outputs = Next {
        tokens: sure(&samples.next, classes),
        outcome: Some(sure(&outcome, 3)),
    };
    let values = objective.values(&outputs, &samples);
    for (value, expected) in values.iter().zip([0f32, 0.0, 1.0]) {
        close(value, &Tensor::from_slice(&[expected, expected]));
    }
}
