use super::*;
use crate::data::examples::{Examples, Moment, UnrollColumns};
use crate::data::label::{EvalRefersTo, TargetRules};
use crate::data::loader::{Batch, Cursor};
use crate::data::pgn::parse_game;
use crate::data::{Curve, examples::Columns};
use crate::encode::WIDTH;
use crate::train::distributed::World;
use crate::train::objective::{Diagnostics, Narrow};

const CONFIG: &str = r#"
name = "x"
steps = 1
batch = 4
[network]
family = "world"
[network.model.encoder]
layers = 2
width = 32
heads = 4
feed_forward = 32
position = { kind = "gab", compress = 4, hidden = 16, generator = 8 }
soft_policy = false
[data]
[unroll]
plies = 3
[loss]
policy_soft = 0.0
"#;

const MATE: &str = "[Result \"0-1\"]\n\n1. f3 {[%eval 0.1]} 1... e5 {[%eval 0.2]} 2. g4 \
                    {[%eval -0.3]} 2... Qh4# {[%eval #-1]} 0-1";

const STATES: [&str; 3] = ["squares", "token", "dit"];

fn config() -> TrainConfig {
    toml::from_str(CONFIG).unwrap()
}

/// Returns the configuration of a network with this kind of state.
fn config_with(state: &str) -> TrainConfig {
    let own = "[network.model]\nstate = \"STATE\"\n[network.model.encoder]";
    let own = own.replace("STATE", state);
    toml::from_str(&CONFIG.replace("[network.model.encoder]", &own)).unwrap()
}

/// Returns an objective on which [`Objective::begin`] has been called, and its weights.
fn begun(config: &TrainConfig, compares: bool) -> (UnrollObjective, Weights) {
    let objective = match compares {
        true => UnrollObjective::for_validation(config, Device::Cpu),
        false => UnrollObjective::new(config, Device::Cpu),
    };
    let mut objective = objective.unwrap();
    tch::manual_seed(3);
    let flat = objective.model.initial_weights();
    let flat = &flat + Tensor::randn_like(&flat) * 0.1;
    objective.begin(0, &flat);
    let weights = Weights::from_flat(&flat, objective.parameters());
    (objective, weights)
}

fn batch(objective: &UnrollObjective, pgn: &str) -> Batch<UnrollColumns> {
    let rules = TargetRules {
        evals: Some(EvalRefersTo::MovePlayed),
        played: false,
        noise: false,
        curve: Curve::Lichess,
        alternatives: None,
    };
    let examples = objective.examples(&config());
    let record = parse_game(pgn.as_bytes()).unwrap();
    let mut columns = UnrollColumns::default();
    let emit = |example| columns.push(&example);
    examples.of_record(&record, &rules, || true, emit).unwrap();
    Batch {
        global_batch: columns.len(),
        columns,
        next: Cursor::default(),
        first: 0,
    }
}

fn close(one: &Tensor, other: &Tensor) {
    assert_eq!(one.size(), other.size());
    let off = (one - other).abs().max().double_value(&[]);
    assert!(off < 1e-3, "{one} {other}");
}

fn place(objective_terms: &[Term], name: &str) -> usize {
    objective_terms
        .iter()
        .position(|it| it.name == name)
        .unwrap()
}

#[test]
fn ends_are_absorbing_and_what_is_unknown_has_no_weight() {
    let config = config();
    let (objective, _) = begun(&config, false);
    let (samples, by_sample) = objective.prepare(batch(&objective, MATE)).unwrap();
    let terms = UnrollObjective::terms(&config);
    let weights = |name: &str| -> Vec<Vec<f32>> {
        let of_term = samples.weights.get(place(&terms, name) as i64);
        let rows = of_term.unbind(0).into_iter();
        rows.map(|row| Vec::try_from(row).unwrap()).collect()
    };
    // The fourth example starts one move before the mate.
    let gone = vec![1.0, 1.0, 0.0, 0.0];
    assert_eq!(weights("policy")[3], [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(weights("legality")[3], [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(weights("illegal")[3], [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(weights("q")[3], gone);
    assert_eq!(weights("board")[3], gone);
    assert_eq!(weights("latent")[3], [0.0, 1.0, 0.0, 0.0]);
    assert_eq!(weights("end")[3], [1.0; 4]);
    let ended = samples.ended.view([4, 4]).get(3);
    assert_eq!(
        Vec::<bool>::try_from(ended).unwrap(),
        [false, true, true, true]
    );
    assert_eq!(by_sample.size(), [terms.len() as i64, 4]);
    // An aborted game has no targets after its last position.
    let (samples, by_sample) = objective.prepare(batch(&objective, "1. e4 e5 *")).unwrap();
    let last = samples.weights.select(1, 1).select(1, 2);
    assert_eq!(last.sum(Kind::Float).double_value(&[]), 0.0);
    let end = by_sample.get(place(&terms, "end") as i64);
    assert_eq!(Vec::<f32>::try_from(end).unwrap(), [3.0, 2.0]);
}

#[test]
fn boards_are_seen_by_the_side_to_move() {
    let config = config();
    let (objective, _) = begun(&config, false);
    let (samples, _) = objective.prepare(batch(&objective, MATE)).unwrap();
    assert_eq!(samples.rows.size(), [16, WIDTH as i64]);
    let at = |row: i64, square: i64| samples.board.int64_value(&[row, square]);
    // Our king is on e1 and theirs on e8, whichever side is to move.
    for row in 0..4 {
        assert_eq!((at(row, 4), at(row, 60)), (6, 12));
    }
    // After 1. f3, Black sees White's pawn on f6, and the pawn on f7 is gone.
    assert_eq!((at(1, 45), at(1, 53)), (7, 0));
    let changed = |row: i64| -> Vec<i64> {
        let squares = samples.changed.get(row).nonzero().squeeze_dim(1);
        Vec::try_from(squares).unwrap()
    };
    assert_eq!(changed(0), Vec::<i64>::new());
    assert_eq!(changed(1), [45, 53]);
    // After 1... e5, from White's perspective: f2, f3, e5 and e7.
    assert_eq!(changed(2), [13, 21, 36, 52]);
}

#[test]
fn examples_are_learned_alike_alone_and_side_by_side() {
    for state in STATES {
        let config = config_with(state);
        let (objective, weights) = begun(&config, false);
        let (samples, by_sample) = objective.prepare(batch(&objective, MATE)).unwrap();
        let values = |samples: &UnrollSamples| {
            let outputs = objective.forward(&weights, samples);
            Tensor::stack(&objective.values(&outputs, samples), 0)
        };
        let whole = values(&samples) * by_sample.gt(0.0).to_kind(Kind::Float);
        assert!(whole.isfinite().all().int64_value(&[]) == 1);
        for number in 0..4 {
            let part = samples.narrow(number, 1);
            let known = by_sample.narrow(1, number, 1).gt(0.0).to_kind(Kind::Float);
            close(&(values(&part) * known), &whole.narrow(1, number, 1));
        }
    }
}

#[test]
fn a_curriculum_begins_with_the_same_first_move() {
    for state in STATES {
        let mut config = config_with(state);
        let (whole, weights) = begun(&config, false);
        config.unroll.every = 10;
        let (first, _) = begun(&config, false);
        let batch = || batch(&whole, MATE);
        let of = |objective: &UnrollObjective| {
            let (samples, by_sample) = objective.prepare(batch()).unwrap();
            let outputs = objective.forward(&weights, &samples);
            let plies = samples.plies();
            let latents = outputs.latents.unflatten(0, [4, plies + 1]);
            (latents.narrow(1, 0, 2), by_sample, plies)
        };
        let ((all, _, plies), (few, by_sample, fewer)) = (of(&whole), of(&first));
        assert_eq!((plies, fewer), (3, 1));
        close(&all, &few);
        let terms = UnrollObjective::terms(&config);
        let end = by_sample.get(place(&terms, "end") as i64);
        assert_eq!(Vec::<f32>::try_from(end).unwrap(), [2.0; 4]);
        // A validation always unrolls to the maximum depth.
        let (validation, _) = begun(&config, true);
        let (samples, _) = validation.prepare(batch()).unwrap();
        assert_eq!(samples.plies(), 3);
    }
}

#[test]
fn latents_are_to_be_those_of_the_averaged_weights() {
    for state in STATES {
        let config = config_with(state);
        let (mut objective, weights) = begun(&config, true);
        let (samples, _) = objective.prepare(batch(&objective, MATE)).unwrap();
        let before = objective.forward(&weights, &samples);
        let truth = before.truth.as_ref().unwrap().policy().view([4, 4, -1]);
        // Each example starts at the position after the first move of the previous example.
        close(&truth.get(0).get(1), &truth.get(1).get(0));
        let other = objective.model.initial_weights();
        objective.begin(0, &other);
        let after = objective.forward(&weights, &samples);
        assert_ne!(before.latent, after.latent);
        close(before.outputs.policy(), after.outputs.policy());
    }
}

/// The loss on later boards reaches the encoder through the latents; the loss on the first board
/// reaches the encoder directly.
#[test]
fn every_parameter_learns_from_what_is_foretold() {
    for state in STATES {
        let config = config_with(state);
        let (objective, weights) = begun(&config, false);
        let flat: Vec<Tensor> = weights
            .tensors()
            .iter()
            .map(|it| it.flatten(0, -1))
            .collect();
        let flat = Tensor::cat(&flat, 0).detach().set_requires_grad(true);
        let weights = Weights::from_flat(&flat, objective.parameters());
        let (samples, by_sample) = objective.prepare(batch(&objective, MATE)).unwrap();
        let outputs = objective.forward(&weights, &samples);
        let values = Tensor::stack(&objective.values(&outputs, &samples), 0);
        let known = by_sample.gt(0.0).to_kind(Kind::Float);
        (values * known).sum(Kind::Float).backward();
        let gradient = Weights::from_flat(&flat.grad(), objective.parameters());
        for (parameter, gradient) in objective.parameters().iter().zip(gradient.tensors()) {
            let is_learned = ["embedding.", "encoder.", "fusion.", "dynamics.", "rules."]
                .iter()
                .any(|part| parameter.name.starts_with(part));
            let reached = gradient.abs().sum(Kind::Float).double_value(&[]);
            assert!(reached > 0.0 || !is_learned, "{state}: {}", parameter.name);
        }
    }
}

#[test]
fn terms_are_balanced_only_where_that_is_wanted() {
    let mut config = config();
    assert!(UnrollObjective::balanced(&config).is_empty());
    let plain = UnrollObjective::terms(&config);
    let written = toml::to_string(&config.unroll).unwrap();
    assert!(!written.contains("harmony"), "{written}");
    config.unroll.harmony = true;
    assert_eq!(UnrollObjective::terms(&config), plain);
    let groups = UnrollObjective::balanced(&config);
    assert_eq!(groups[1].terms, ["illegal", "end", "legality", "board"]);
    assert_eq!(groups[2].terms, ["latent"]);
    // Every loss belongs to one group.
    for term in plain.iter().filter(|term| term.weight > 0.0) {
        let having = groups
            .iter()
            .filter(|group| group.terms.contains(&term.name));
        assert_eq!(having.count(), 1, "{}", term.name);
    }
}

#[test]
fn validations_tell_depths_apart() {
    let config = config();
    let (objective, weights) = begun(&config, true);
    let (samples, _) = objective.prepare(batch(&objective, MATE)).unwrap();
    let mut outputs = tch::no_grad(|| objective.forward(&weights, &samples));
    // The predicted boards are correct except at the last depth, where they copy the first board.
    let copied = objective.boards.copied(&samples.board.view([4, 4, 64]));
    let told = samples.board.view([4, 4, 64]).narrow(1, 0, 3);
    let told = Tensor::cat(&[told, copied.narrow(1, 3, 1)], 1).flatten(0, 1);
    outputs.rules.board = told.one_hot(SQUARE_CLASSES as i64).to_kind(Kind::Float);
    outputs.rules.end = samples.ended.to_kind(Kind::Float) - 0.5;
    outputs.rules.legality = samples.targets.legal.to_kind(Kind::Float) - 0.5;
    let mut depths = Depths::new(Device::Cpu);
    depths.add(&outputs, &samples);
    let found = depths.finish(&World::alone()).unwrap();
    let rows = found["depths"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    let number = |depth: usize, name: &str| rows[depth][name].as_f64();
    for (depth, row) in rows.iter().enumerate() {
        assert_eq!(row["depth"], depth);
        let exact = if depth < 3 { 1.0 } else { 0.0 };
        assert_eq!(number(depth, "boards_exact"), Some(exact));
        assert_eq!(number(depth, "legal_recall"), Some(1.0));
        assert_eq!(number(depth, "legal_precision"), Some(1.0));
    }
    assert_eq!(number(0, "changed_squares"), None);
    assert_eq!(number(3, "changed_squares"), Some(0.0));
    assert_eq!(number(3, "squares"), number(3, "copy_squares"));
    // At depth 0 no game has ended; after one move, one of the four games has.
    assert_eq!(number(0, "end_recall"), None);
    assert_eq!(number(1, "end_recall"), Some(1.0));
    assert_eq!(number(0, "same_choice"), Some(1.0));
    assert_eq!(number(0, "value_drift"), Some(0.0));
    assert!(number(2, "feature_spread").unwrap() > 0.0);
    assert_eq!(Moment::Playing as i8, 0);
}
