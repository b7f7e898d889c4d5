//! Tests of micro-batches, parts of batches, and a teacher.

use super::*;
use crate::data::loader::Batch;
use crate::network::chessformer::ModelConfig;
use crate::network::{About, Architecture, Chessformer, Evaluator, Network};
use crate::torch::ExportPrecision;
use crate::train::config::{DistillationConfig, LossWeights};
use crate::train::distributed::World;
use crate::train::objective::{PositionObjective, positions};

/// Returns samples, some of which lack targets.
pub(in crate::train) fn batch() -> Batch {
    let mut batch = positions::batch();
    let count = batch.len();
    let columns = &mut batch.columns;
    for row in 0..count {
        columns.result[row] = row as i64 % 4 - 1;
        columns.weight[row] = 0.5 + (row % 3) as f32 * 0.25;
        columns.q[row] = (row as f32).sin();
        if row % 5 < 2 {
            columns.short_term[row] = f32::NAN;
        }
        if row > 30 {
            columns.moves_left[row] = f32::NAN;
        }
    }
    batch
}

/// Returns the configuration of a tiny network with additional keys.
pub(in crate::train) fn config(text: &str) -> TrainConfig {
    let config = format!(
        "name = \"tiny\"\nsteps = 1\nbatch = 41\n{text}\n\
         [model]\nlayers = 1\nwidth = 16\nheads = 2\nfeed_forward = 16\n\
         position = {{ kind = \"relative\" }}\n[data]"
    );
    toml::from_str(&config).unwrap()
}

/// Returns small random parameters.
pub(in crate::train) fn parameters(model: &dyn Architecture) -> Tensor {
    tch::manual_seed(2);
    model.initial_weights()
}

fn leaves(model: &dyn Architecture, parameters: &Tensor) -> Buckets {
    Buckets::new(parameters, model.parameters(), &World::alone()).unwrap()
}

fn model(config: &ModelConfig) -> Box<dyn Evaluator> {
    Box::new(Chessformer::new(config, Device::Cpu).unwrap())
}

type Prepared = PreparedBatch<<PositionObjective as Objective>::Samples>;

fn learner(config: &TrainConfig) -> Learner<PositionObjective> {
    let objective = PositionObjective::for_validation(config, Device::Cpu).unwrap();
    Learner::new(config, objective, Device::Cpu)
}

fn gradient(config: &TrainConfig, batches: &[Prepared]) -> (Tensor, f64) {
    let model = model(config.model.as_ref().unwrap());
    let mut leaves = leaves(&*model, &parameters(&*model));
    let learner = learner(config);
    let mut watch = Stopwatch::new(Device::Cpu);
    let totals = batches.iter().map(|batch| {
        learner
            .backward(&leaves, batch, &mut watch)
            .total
            .double_value(&[])
    });
    let total = totals.sum();
    let gradient = leaves.gradient(&World::alone()).unwrap();
    (gradient.shallow_clone(), total)
}

fn prepare(config: &TrainConfig, batch: Batch) -> Prepared {
    learner(config).prepare(batch).unwrap()
}

fn assert_same((left, left_total): &(Tensor, f64), (right, right_total): &(Tensor, f64)) {
    assert!((left_total - right_total).abs() < 1e-5);
    let off = (left - right).abs().max().double_value(&[]);
    let size = left.abs().max().double_value(&[]);
    assert!(off < 1e-5 * size, "off by {off} of {size}");
}

#[test]
fn micro_batches_add_up_to_the_whole_batch() {
    let joined = config("");
    let whole = gradient(&joined, &[prepare(&joined, batch())]);
    for count in [2, 7] {
        let cut = config(&format!("accumulate = {count}"));
        assert_same(&whole, &gradient(&cut, &[prepare(&cut, batch())]));
    }
}

/// With several processes, each takes a part of the batch's samples, and the target weights are
/// summed over all processes.
#[test]
fn parts_with_summed_target_weights_add_up_too() {
    let config = config("");
    let joined = prepare(&config, batch());
    let mut parts = [(0, 13), (13, 28)].map(|(start, count)| joined.narrow(start, count));
    let own = parts.each_ref().map(|part| {
        part.loss_weights
            .sum_dim_intlist([1i64].as_slice(), false, Kind::Float)
    });
    for part in &mut parts {
        part.target_weight = &own[0] + &own[1];
    }
    let whole = gradient(&config, &[prepare(&config, batch())]);
    assert_same(&whole, &gradient(&config, &parts));
}

#[test]
fn a_student_comes_to_agree_with_its_teacher() {
    let config = config("");
    let model = model(config.model.as_ref().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("teacher.pt");
    let about = About {
        correction: None,
        name: "teacher".to_owned(),
        search_value: "q".to_owned(),
        training: serde_json::Value::Null,
        licence: "GPL-3.0-or-later".to_owned(),
    };
    tch::manual_seed(8);
    let flat = model.initial_weights() * 1.5;
    let teacher = Network::new(self::model(config.model.as_ref().unwrap()), &flat, about);
    teacher.write(ExportPrecision::F32, &path).unwrap();
    let mut taught = config.clone();
    taught.distillation = Some(DistillationConfig {
        net: path,
        temperature: 1.0,
        policy: 1.0,
        result: 1.0,
        q: 1.0,
    });
    // Without the teacher, the batch's own targets would lead to a different result.
    taught.loss = LossWeights {
        policy: 0.0,
        policy_soft: 0.0,
        result: 0.0,
        q: 0.0,
        q_categorical: 0.0,
        ..LossWeights::default()
    };
    let mut parameters = parameters(&*model);
    let mut leaves = leaves(&*model, &parameters);
    let objective = PositionObjective::new(&taught, Device::Cpu).unwrap();
    let learner = Learner::new(&taught, objective, Device::Cpu);
    let prepared = learner.prepare(batch()).unwrap();
    let losses = |parameters: &Tensor| -> Vec<f32> {
        let (_, losses) = learner.evaluate(parameters, &prepared);
        Vec::try_from((losses.sums / &prepared.target_weight).narrow(0, 10, 3)).unwrap()
    };
    let before = losses(&parameters);
    let mut watch = Stopwatch::new(Device::Cpu);
    for _ in 0..15 {
        learner.backward(&leaves, &prepared, &mut watch);
        let _guard = tch::no_grad_guard();
        parameters -= leaves.gradient(&World::alone()).unwrap().sign() * 0.002;
        leaves.zero();
    }
    let after = losses(&parameters);
    assert!(
        after
            .iter()
            .zip(&before)
            .all(|(after, before)| after < before),
        "{before:?} {after:?}"
    );

    let mut teacher = taught.distillation.unwrap();
    teacher.net = "nothing.pt".into();
    taught.distillation = Some(teacher);
    let error = PositionObjective::new(&taught, Device::Cpu).unwrap_err();
    assert!(error.to_string().contains("nothing.pt"), "{error}");
}
