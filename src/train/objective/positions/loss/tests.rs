//! Compares the losses of a batch of three samples with values computed by hand.

use super::*;
use crate::encode::POLICY_SIZE;
use crate::train::losses::{Losses, TermWeights};
use crate::train::objective::positions::PositionSamples;
use crate::train::prepared_batch::PreparedBatch;
use tch::Device;

const OPTIONS: (Kind, Device) = (Kind::Float, Device::Cpu);
/// Returns policy rows that begin with these entries and contain `rest` elsewhere.
fn policy(rows: &[&[f32]], rest: f32) -> Tensor {
    let mut numbers = Vec::new();
    for row in rows {
        numbers.extend_from_slice(row);
        numbers.resize(numbers.len() + POLICY_SIZE - row.len(), rest);
    }
    Tensor::from_slice(&numbers).view([rows.len() as i64, -1])
}

/// Returns targets. The first sample has all of them; the second has a single move and the result;
/// the third, with weight 2, has only q.
fn targets() -> Targets {
    Targets {
        legal: policy(&[&[1.0, 1.0, 1.0], &[1.0, 1.0], &[1.0]], 0.0).gt(0.5),
        policy: policy(&[&[0.25, 0.75], &[0.0, 1.0], &[]], 0.0),
        result: Tensor::from_slice(&[0i64, 2, -1]),
        q: Tensor::from_slice(&[0.5, f32::NAN, -1.0]),
        short_term: Tensor::from_slice(&[0.5, f32::NAN, f32::NAN]),
        moves_left: Tensor::from_slice(&[40.0, f32::NAN, f32::NAN]),
        weight: Tensor::from_slice(&[1f32, 1.0, 2.0]),
    }
}

fn outputs() -> Outputs {
    let scalar = || Tensor::from_slice(&[0.25f32, 0.0, 0.0]);
    let categorical = || Tensor::zeros([3, 32], OPTIONS);
    let error = || Tensor::from_slice(&[0.0625f32, 0.5, 0.5]);
    // Legal moves have equal logits, and illegal moves far larger ones.
    let policy = || policy(&[&[0.0; 3], &[0.0; 2], &[0.0]], 9.0);
    [
        (Output::Policy, policy()),
        (Output::PolicySoft, policy()),
        (Output::Wdl, Tensor::zeros([3, 3], OPTIONS)),
        (Output::Q, scalar()),
        (Output::QCategorical, categorical()),
        (Output::QError, error()),
        (Output::ShortTerm, scalar()),
        (Output::ShortTermCategorical, categorical()),
        (Output::ShortTermError, error()),
        (Output::MovesLeft, Tensor::from_slice(&[20f32, 5.0, 5.0])),
    ]
    .into_iter()
    .collect()
}

fn batch(teacher: Option<TeacherOutputs>) -> PreparedBatch<PositionSamples> {
    let targets = targets();
    let loss_weights = loss_weights(&targets, teacher.as_ref(), OutputSet::all());
    let samples = PositionSamples {
        rows: Tensor::zeros([3, 111], (Kind::Int64, Device::Cpu)),
        targets,
        teacher,
    };
    PreparedBatch::new(samples, loss_weights)
}

fn losses(
    outputs: &Outputs,
    batch: &PreparedBatch<PositionSamples>,
    loss: &LossWeights,
    teacher: Option<&DistillationConfig>,
) -> Losses {
    let weights = TermWeights::new(&terms(loss, teacher), Device::Cpu);
    let values = values(
        outputs,
        &batch.samples.targets,
        batch.samples.teacher.as_ref(),
        Softening::of(loss, teacher),
    );
    Losses::of(values, &weights, batch)
}

fn measure(batch: &PreparedBatch<PositionSamples>, weights: &LossWeights) -> (Losses, Vec<f64>) {
    let losses = losses(&outputs(), batch, weights, None);
    let averages = &losses.sums / batch.target_weight.clamp_min(1e-6);
    let averages = Vec::try_from(averages.to_kind(Kind::Double)).unwrap();
    (losses, averages)
}

/// Returns the index of a term.
fn place(name: &str) -> usize {
    ROWS.iter().position(|row| row.name == name).unwrap()
}

fn at(values: &[f64], name: &str) -> f64 {
    values[place(name)]
}

#[test]
fn averages_are_over_the_samples_that_carry_the_target() {
    let batch = batch(None);
    let target_weight: Vec<f64> = Vec::try_from(batch.target_weight.to_kind(Kind::Double)).unwrap();
    let target_count: Vec<f64> = Vec::try_from(batch.target_count.to_kind(Kind::Double)).unwrap();
    for (name, weight, count) in [
        ("policy", 2.0, 2.0),
        ("policy_soft", 1.0, 1.0),
        ("result", 2.0, 2.0),
        ("q", 3.0, 2.0),
        ("short_term_error", 1.0, 1.0),
        ("moves_left", 1.0, 1.0),
        ("teacher_policy", 0.0, 0.0),
    ] {
        assert_eq!(
            (at(&target_weight, name), at(&target_count, name)),
            (weight, count),
            "{name}"
        );
    }
    let (losses, averages) = measure(&batch, &LossWeights::default());
    let near = |name, expected: f64| {
        let found = at(&averages, name);
        assert!(
            (found - expected).abs() < 1e-6,
            "{name}: {found}, not {expected}"
        );
    };
    let (two, three) = (2f64.ln(), 3f64.ln());
    near("policy", f64::midpoint(two, three));
    near("policy_soft", three);
    near("result", three);
    near("q", (0.0625 + 2.0) / 3.0);
    near("q_categorical", 32f64.ln());
    near("q_error", (0.0 + 2.0 * 0.25) / 3.0);
    near("short_term", 0.0625);
    near("short_term_error", 0.0);
    // An error of 20 plies, in the linear part of the Huber loss.
    near("moves_left", 0.5 * (1.0 - 0.5 * 0.5));
    // In a tie the first class counts, which is wrong for the policies and correct (a win) for the
    // result.
    near("policy_accuracy", 0.0);
    near("result_accuracy", 0.5);
    let expected = at(&averages, "policy")
        + 8.0 * three
        + three
        + at(&averages, "q")
        + 0.1 * 2.0 * 32f64.ln()
        + at(&averages, "q_error")
        + 0.0625
        + at(&averages, "moves_left");
    assert!((losses.total.double_value(&[]) - expected).abs() < 1e-5);
}

#[test]
fn smoothing_spreads_over_legal_moves() {
    let smoothed = smoothed(&targets(), 0.3);
    let row: Vec<f32> = Vec::try_from(smoothed.get(0).narrow(0, 0, 4)).unwrap();
    for (found, expected) in row.into_iter().zip([0.275, 0.625, 0.1, 0.0]) {
        assert!((found - expected).abs() < 1e-6);
    }
    let row: Vec<f32> = Vec::try_from(smoothed.get(1).narrow(0, 0, 3)).unwrap();
    for (found, expected) in row.into_iter().zip([0.15, 0.85, 0.0]) {
        assert!((found - expected).abs() < 1e-6);
    }
}

#[test]
fn a_teacher_who_agrees_teaches_nothing_more() {
    let mut outputs = outputs();
    for output in [Output::Policy, Output::Wdl] {
        let leaf = outputs.get(output).unwrap().copy().set_requires_grad(true);
        outputs.set(output, leaf);
    }
    let config = DistillationConfig {
        net: "teacher.pt".into(),
        temperature: 2.0,
        policy: 1.0,
        result: 1.0,
        q: 1.0,
    };
    let silent = LossWeights {
        policy: 0.0,
        policy_soft: 0.0,
        result: 0.0,
        q: 0.0,
        q_categorical: 0.0,
        q_error: 0.0,
        short_term: 0.0,
        short_term_categorical: 0.0,
        short_term_error: 0.0,
        moves_left: 0.0,
        ..LossWeights::default()
    };
    let agreed = TeacherOutputs {
        policy: targets()
            .masked(&(outputs.policy().detach() / 2.0))
            .softmax(-1, Kind::Float),
        wdl: Tensor::full([3, 3], 1.0 / 3.0, OPTIONS),
        q: outputs.get(Output::Q).map(Tensor::copy),
    };
    let learned = batch(Some(agreed));
    let found = losses(&outputs, &learned, &silent, Some(&config));
    found.total.backward();
    for logits in [outputs.policy(), outputs.wdl()] {
        assert!(logits.grad().abs().max().double_value(&[]) < 1e-7);
    }
    // Every sample has a teacher's targets, weighted by its weight.
    let place = place("teacher_policy");
    assert_eq!(learned.target_weight.double_value(&[place as i64]), 4.0);
    let expected = (3f64.ln() + 2f64.ln()) / 4.0 * 4.0 + 3f64.ln();
    assert!((found.total.double_value(&[]) - expected).abs() < 1e-5);
}

#[test]
fn missing_outputs_have_no_loss() {
    let mut outputs = outputs();
    let kept = [Output::Policy, Output::Wdl];
    for output in Output::ALL.into_iter().filter(|it| !kept.contains(it)) {
        outputs.take(output);
    }
    let mut batch = batch(None);
    batch.loss_weights = loss_weights(&batch.samples.targets, None, kept.into_iter().collect());
    batch.target_weight = sum(&batch.loss_weights);
    let found = losses(&outputs, &batch, &LossWeights::default(), None);
    let (two, three) = (2f64.ln(), 3f64.ln());
    let expected = f64::midpoint(two, three) + three;
    assert!((found.total.double_value(&[]) - expected).abs() < 1e-5);
}
