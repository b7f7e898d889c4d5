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

fn weights(objective: &GameObjective) -> Weights {
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
    let objective = GameObjective::for_validation(&config(), Device::Cpu).unwrap();
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
        // A micro-batch is only as wide as its longest game.
        let part = together.narrow(place, 1);
        assert_eq!(part.tokens.size(), [1, together.lengths[place as usize]]);
        close(&values(&part), &whole.narrow(1, place, 1));
    }
}

#[test]
fn results_are_learned_where_they_are_known_and_not_told() {
    let mut config = config();
    let objective = GameObjective::new(&config, Device::Cpu).unwrap();
    let games = vec![game(5, Some(Wdl::Loss)), game(5, None)];
    let weights_of = |objective: &GameObjective| -> Vec<f32> {
        let (_, weights) = objective.prepare(batch(games.clone(), 0, 2)).unwrap();
        Vec::try_from(weights.select(0, 1)).unwrap()
    };
    assert_eq!(weights_of(&objective), [0.0, 0.0]);
    config.augment.hide_result = 1.0;
    let objective = GameObjective::new(&config, Device::Cpu).unwrap();
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
    let objective = GameObjective::new(&config, Device::Cpu).unwrap();
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
fn right_predictions_have_no_loss() {
    let objective = GameObjective::for_validation(&config(), Device::Cpu).unwrap();
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
    let next = Next {
        tokens: sure(&samples.next, classes),
        outcome: Some(sure(&outcome, 3)),
    };
    let outputs = GameOutputs { next, board: None };
    let values = objective.values(&outputs, &samples);
    for (value, expected) in values.iter().zip([0f32, 0.0, 1.0]) {
        close(value, &Tensor::from_slice(&[expected, expected]));
    }
}

/// Returns a legal game with this number of plies.
fn shuffle(plies: usize) -> GameTokens {
    let vocabulary = Vocabulary::Uci;
    let moves = ["g1f3", "g8f6", "f3g1", "f6g8"];
    let token = |text: &str| {
        let mut moves = 0..vocabulary.moves() as u16;
        moves.find(|&it| vocabulary.text(it).as_deref() == Some(text))
    };
    let moves = moves.into_iter().cycle().take(plies);
    let moves = moves.map(|mv| token(mv).unwrap());
    GameTokens {
        tokens: std::iter::once(vocabulary.start()).chain(moves).collect(),
        ratings: [0; 2],
        result: None,
    }
}

#[test]
fn the_rules_are_learned_where_they_are_told() {
    let mut config = config();
    config.loss.legality = 0.5;
    config.loss.board = 1.0;
    let error = config.check_keys().unwrap_err().to_string();
    assert!(error.contains("network.model.board"), "{error}");
    let text = CONFIG.replace("layers = 2", "layers = 2\nboard = true");
    let mut config: TrainConfig = toml::from_str(&text).unwrap();
    config.loss.legality = 0.5;
    config.loss.board = 1.0;
    let names: Vec<&str> = GameObjective::terms(&config)
        .iter()
        .map(|term| term.name)
        .collect();
    let rules = ["legality", "board", "board_accuracy"];
    assert_eq!(names[3..], rules);
    let objective = GameObjective::new(&config, Device::Cpu).unwrap();
    let weights = weights(&objective);
    let games = vec![shuffle(9), shuffle(4)];
    let (samples, loss_weights) = objective.prepare(batch(games.clone(), 0, 2)).unwrap();
    assert_eq!(loss_weights.size(), [6, 2]);
    let outputs = objective.forward(&weights, &samples);
    let values = objective.values(&outputs, &samples);
    assert_eq!(values.len(), names.len());
    for value in &values {
        let value: Vec<f64> = Vec::try_from(value).unwrap();
        assert!(
            value.iter().all(|it| it.is_finite() && *it >= 0.0),
            "{value:?}"
        );
    }
    // Compute the probability of the legal tokens after the first token separately.
    let (samples, _) = objective.prepare(batch(vec![shuffle(1)], 0, 1)).unwrap();
    let outputs = objective.forward(&weights, &samples);
    let probabilities = outputs.next.tokens.softmax(-1, Kind::Float).reshape([-1]);
    let start = crate::chess::Game::default();
    let legal = Vocabulary::Uci.legal_tokens(start.position());
    assert_eq!(legal.len(), 23);
    let mass: f64 = legal
        .iter()
        .map(|&token| probabilities.double_value(&[i64::from(token)]))
        .sum();
    let values = objective.values(&outputs, &samples);
    close(&values[3], &Tensor::from_slice(&[-mass.ln() as f32]));
    // Predictions that are certain of the right board.
    let squares = samples.rules.board.as_ref().unwrap();
    let outputs = GameOutputs {
        board: Some(squares.one_hot(13) * 50.0),
        ..outputs
    };
    let values = objective.values(&outputs, &samples);
    close(&values[4], &Tensor::from_slice(&[0f32]));
    close(&values[5], &Tensor::from_slice(&[1f32]));
}

#[test]
fn the_rules_have_a_gradient_that_is_a_number() {
    let text = CONFIG.replace("layers = 2", "layers = 2\nboard = true");
    let mut config: TrainConfig = toml::from_str(&text).unwrap();
    config.loss.legality = 1.0;
    let objective = GameObjective::new(&config, Device::Cpu).unwrap();
    let flat = objective.model.initial_weights().set_requires_grad(true);
    let weights = Weights::from_flat(&flat, objective.parameters());
    let games = vec![shuffle(9), shuffle(2)];
    let (samples, _) = objective.prepare(batch(games, 0, 2)).unwrap();
    let outputs = objective.forward(&weights, &samples);
    let values = objective.values(&outputs, &samples);
    (&values[3] + &values[4]).sum(Kind::Float).backward();
    let gradient = flat.grad();
    assert!(gradient.isfinite().all().int64_value(&[]) == 1);
    assert!(gradient.abs().max().double_value(&[]) > 0.0);
}
