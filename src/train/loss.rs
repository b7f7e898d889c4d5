//! The losses of the paper's appendix, and Lc0's moves left.
//!
//! Each is an average over the samples that carry its target, weighted by the
//! samples' weights; samples without the target do not dilute it.

use super::config::LossWeights;
use super::tensors::Targets;
use crate::model::{Outputs, RewardOutputs, bucket_of};
use tch::{Kind, Reduction, Tensor};

/// Temperature of the softened policy.
const SOFT_TEMPERATURE: f64 = 4.0;

/// Unit of the moves-left loss, in plies.
const MOVES_LEFT_UNIT: f64 = 20.0;

/// Error, in plies, from which the moves-left loss grows in a straight line.
const MOVES_LEFT_DELTA: f64 = 10.0;

/// A logit that no softmax notices.
const MASKED: f64 = -1e9;

/// What is measured, in the order of [`Losses::values`]. The last two are
/// shares of samples, not losses.
pub(super) const NAMES: [&str; 12] = [
    "policy",
    "policy_soft",
    "result",
    "q",
    "q_categorical",
    "q_error",
    "short_term",
    "short_term_categorical",
    "short_term_error",
    "moves_left",
    "policy_accuracy",
    "result_accuracy",
];

/// The losses of a batch.
#[derive(Debug)]
pub(super) struct Losses {
    /// The weighted sum, f32 [].
    pub total: Tensor,
    /// The averages by [`NAMES`], f32 [12], without gradient.
    pub values: Tensor,
    /// Weight of the samples that carried each target, f32 [12].
    pub carried: Tensor,
}

/// An average, and the weight of the samples it is over.
struct Average {
    value: Tensor,
    carried: Tensor,
}

/// Averages `values` [B] over `weight` [B], zero where nothing weighs.
fn average(values: &Tensor, weight: &Tensor) -> Average {
    let carried = weight.sum(Kind::Float);
    let sum = (values * weight).sum(Kind::Float);
    Average {
        value: sum / carried.clamp_min(1e-6),
        carried,
    }
}

/// Measures `outputs` against `targets`.
pub(super) fn losses(outputs: &Outputs, targets: &Targets, weights: &LossWeights) -> Losses {
    let mut parts: Vec<(f64, Average)> = Vec::with_capacity(NAMES.len());

    let illegal = targets.legal.logical_not();
    let policy = outputs.policy.masked_fill(&illegal, MASKED);
    let logarithms = policy.log_softmax(-1, None::<Kind>);
    let cross_entropy = |target: &Tensor, logarithms: &Tensor| {
        -(target * logarithms).sum_dim_intlist([-1i64].as_slice(), false, None::<Kind>)
    };
    let known = targets
        .policy
        .sum_dim_intlist([-1i64].as_slice(), false, None::<Kind>)
        .gt(0.5);
    let policy_weight = &targets.weight * known.to_kind(Kind::Float);
    let values = cross_entropy(&targets.policy, &logarithms);
    parts.push((weights.policy, average(&values, &policy_weight)));

    parts.push((
        weights.policy_soft,
        match &outputs.policy_soft {
            Some(soft) => {
                let logarithms = soft
                    .masked_fill(&illegal, MASKED)
                    .log_softmax(-1, None::<Kind>);
                let flattened = targets.policy.pow_tensor_scalar(1.0 / SOFT_TEMPERATURE);
                let sum = flattened.sum_dim_intlist([-1i64].as_slice(), true, None::<Kind>);
                // A temperature cannot soften a single move.
                let several = targets
                    .policy
                    .gt(0.0)
                    .sum_dim_intlist([-1i64].as_slice(), false, None::<Kind>)
                    .gt(1);
                let weight = &policy_weight * several.to_kind(Kind::Float);
                let target = flattened / sum.clamp_min(1e-6);
                average(&cross_entropy(&target, &logarithms), &weight)
            }
            None => average(&targets.weight.zeros_like(), &targets.weight.zeros_like()),
        },
    ));

    let result_known = targets.result.ge(0);
    let result_weight = &targets.weight * result_known.to_kind(Kind::Float);
    let result = targets.result.clamp_min(0);
    let values =
        outputs
            .wdl
            .cross_entropy_loss::<Tensor>(&result, None, Reduction::None, -100, 0.0);
    parts.push((weights.result, average(&values, &result_weight)));

    let q = [weights.q, weights.q_categorical, weights.q_error];
    parts.extend(
        q.into_iter()
            .zip(reward(&outputs.q, &targets.q, &targets.weight)),
    );
    let short_term = [
        weights.short_term,
        weights.short_term_categorical,
        weights.short_term_error,
    ];
    let averages = reward(&outputs.short_term, &targets.short_term, &targets.weight);
    parts.extend(short_term.into_iter().zip(averages));

    let (plies, weight) = carried(&targets.moves_left, &targets.weight);
    let values = (&outputs.moves_left / MOVES_LEFT_UNIT).huber_loss(
        &(plies / MOVES_LEFT_UNIT),
        Reduction::None,
        MOVES_LEFT_DELTA / MOVES_LEFT_UNIT,
    );
    parts.push((weights.moves_left, average(&values, &weight)));

    let right = policy
        .argmax(-1, false)
        .eq_tensor(&targets.policy.argmax(-1, false));
    parts.push((0.0, average(&right.to_kind(Kind::Float), &policy_weight)));
    let right = outputs.wdl.argmax(-1, false).eq_tensor(&result);
    parts.push((0.0, average(&right.to_kind(Kind::Float), &result_weight)));

    let total = parts.iter().filter(|(weight, _)| *weight != 0.0).fold(
        Tensor::zeros_like(&parts[0].1.value),
        |sum, (weight, part)| sum + &part.value * *weight,
    );
    let stack = |pick: fn(&Average) -> &Tensor| {
        let picked: Vec<&Tensor> = parts.iter().map(|(_, part)| pick(part)).collect();
        Tensor::stack(&picked, 0).detach()
    };
    Losses {
        total,
        values: stack(|part| &part.value),
        carried: stack(|part| &part.carried),
    }
}

/// Targets with NaN taken out, and the weights with zero in those places.
fn carried(target: &Tensor, weight: &Tensor) -> (Tensor, Tensor) {
    let weight = weight * target.isnan().logical_not().to_kind(Kind::Float);
    (target.nan_to_num(0.0, None, None), weight)
}

/// The three losses of a reward head.
fn reward(outputs: &RewardOutputs, target: &Tensor, weight: &Tensor) -> [Average; 3] {
    let (target, weight) = carried(target, weight);
    let squared = (&outputs.scalar - &target).square();
    let bucket = bucket_of(&target, outputs.categorical.size()[1]);
    let categorical =
        outputs
            .categorical
            .cross_entropy_loss::<Tensor>(&bucket, None, Reduction::None, -100, 0.0);
    // The prediction must not be bent to make its error predictable.
    let error = (&outputs.error - squared.detach()).square();
    [
        average(&squared, &weight),
        average(&categorical, &weight),
        average(&error, &weight),
    ]
}
