//! The losses of the paper's appendix, Lc0's moves left, KataGo's optimistic
//! policy, and distillation from a teacher.
//!
//! Each loss is a weighted mean over the samples that have its target; other
//! samples do not dilute it.

use super::config::{DistillationConfig, LossWeights};
use super::prepared_batch::PreparedBatch;
use super::teacher::TeacherOutputs;
use super::tensors::Targets;
use crate::network::chessformer::bucket_of;
use crate::network::{Output, OutputSet, Outputs};
use tch::{Device, Kind, Reduction, Tensor};

/// Temperature of the softened policy.
const SOFT_TEMPERATURE: f64 = 4.0;

/// Unit of the moves-left loss, in plies.
const MOVES_LEFT_UNIT: f64 = 20.0;

/// Error, in plies, from which the moves-left loss grows in a straight line.
const MOVES_LEFT_DELTA: f64 = 10.0;

/// The optimistic policy weights samples by sigmoid(3 · (z − 1.5)), as KataGo does:
/// z is how many predicted standard deviations the short-term value exceeded its
/// prediction by. This is the number of deviations at which the weight is one half.
const OPTIMISM_DEVIATIONS: f64 = 1.5;

/// Steepness of that sigmoid.
const OPTIMISM_SHARPNESS: f64 = 3.0;

/// Least variance of the short-term value: below it, noise of a hundredth would
/// count as a surprise.
const OPTIMISM_VARIANCE: f64 = 1e-4;

/// Losses; the accuracies that follow them are shares of samples.
const LOSSES: usize = 14;

/// The names of losses and accuracies, in the order of [`Losses::sums`], and the
/// network's output that each is of.
const TERMS: [(&str, Output); LOSSES + 2] = [
    ("policy", Output::Policy),
    ("policy_soft", Output::PolicySoft),
    ("policy_optimistic", Output::PolicyOptimistic),
    ("result", Output::Wdl),
    ("q", Output::Q),
    ("q_categorical", Output::QCategorical),
    ("q_error", Output::QError),
    ("short_term", Output::ShortTerm),
    ("short_term_categorical", Output::ShortTermCategorical),
    ("short_term_error", Output::ShortTermError),
    ("moves_left", Output::MovesLeft),
    ("teacher_policy", Output::Policy),
    ("teacher_result", Output::Wdl),
    ("teacher_q", Output::Q),
    ("policy_accuracy", Output::Policy),
    ("result_accuracy", Output::Wdl),
];

/// The names of [`TERMS`].
pub(super) const NAMES: [&str; TERMS.len()] = {
    let mut names = [""; TERMS.len()];
    let mut index = 0;
    while index < TERMS.len() {
        names[index] = TERMS[index].0;
        index += 1;
    }
    names
};

/// Index of the policy's accuracy in [`NAMES`].
pub(super) const POLICY_ACCURACY: usize = LOSSES;

/// The losses of a batch.
#[derive(Debug)]
pub(super) struct Losses {
    /// The weighted sum of the averages, f32 [].
    pub total: Tensor,
    /// By [`NAMES`], the sum over the samples of loss times weight, f32 [16],
    /// without gradient.
    pub sums: Tensor,
}

impl Losses {
    /// A copy without gradient.
    pub fn detached(&self) -> Losses {
        Losses {
            total: self.total.detach(),
            sums: self.sums.shallow_clone(),
        }
    }

    /// The losses of two parts of a batch together.
    pub fn plus(&self, other: &Losses) -> Losses {
        Losses {
            total: &self.total + &other.total,
            sums: &self.sums + &other.sums,
        }
    }
}

/// The weight of each loss in the total, by [`NAMES`].
#[derive(Debug)]
pub(super) struct TermWeights {
    values: [f64; NAMES.len()],
    /// The same as a tensor, f32 [16].
    tensor: Tensor,
    /// Temperature at which the policy is compared with the teacher's.
    temperature: f64,
}

impl TermWeights {
    pub fn new(
        loss: &LossWeights,
        distillation: Option<&DistillationConfig>,
        device: Device,
    ) -> TermWeights {
        let teacher = |pick: fn(&DistillationConfig) -> f64| distillation.map_or(0.0, pick);
        let values = [
            loss.policy,
            loss.policy_soft,
            loss.policy_optimistic,
            loss.result,
            loss.q,
            loss.q_categorical,
            loss.q_error,
            loss.short_term,
            loss.short_term_categorical,
            loss.short_term_error,
            loss.moves_left,
            teacher(|teacher| teacher.policy * teacher.temperature.powi(2)),
            teacher(|teacher| teacher.result),
            teacher(|teacher| teacher.q),
            0.0,
            0.0,
        ];
        let tensor = Tensor::from_slice(&values.map(|value| value as f32));
        TermWeights {
            values,
            tensor: tensor.to_device(device),
            temperature: distillation.map_or(1.0, |teacher| teacher.temperature),
        }
    }
}

/// The weight of each sample in each of [`NAMES`], f32 [16, B]: the sample's
/// weight, or 0 where it lacks the target or the network lacks the output.
pub(super) fn loss_weights(
    targets: &Targets,
    teacher: Option<&TeacherOutputs>,
    outputs: OutputSet,
) -> Tensor {
    let weight = &targets.weight;
    let none = weight.zeros_like();
    let where_true = |condition: &Tensor| weight * condition.to_kind(Kind::Float);
    let known = |target: &Tensor| where_true(&target.isnan().logical_not());
    let given = |is_given: bool, weight: &Tensor| match is_given {
        true => weight.shallow_clone(),
        false => none.shallow_clone(),
    };
    let policy = where_true(&sum(&targets.policy).gt(0.5));
    // A temperature cannot soften a single move.
    let several = sum(&targets.policy.gt(0.0)).gt(1.5).to_kind(Kind::Float);
    let result = where_true(&targets.result.ge(0));
    let (q, short_term) = (known(&targets.q), known(&targets.short_term));
    let surprising = &policy * short_term.gt(0.0).to_kind(Kind::Float);
    let teacher_q = teacher.is_some_and(|teacher| teacher.q.is_some());
    let rows = [
        policy.shallow_clone(),
        &policy * several,
        surprising,
        result.shallow_clone(),
        q.shallow_clone(),
        q.shallow_clone(),
        q,
        short_term.shallow_clone(),
        short_term.shallow_clone(),
        short_term,
        known(&targets.moves_left),
        given(teacher.is_some(), weight),
        given(teacher.is_some(), weight),
        given(teacher_q, weight),
        policy,
        result,
    ];
    let rows = rows.into_iter().zip(TERMS);
    let rows = rows.map(|(weight, (_, output))| given(outputs.contains(output), &weight));
    Tensor::stack(&rows.collect::<Vec<_>>(), 0)
}

/// The losses of `outputs` on a batch.
pub(super) fn losses(
    outputs: &Outputs,
    batch: &PreparedBatch,
    weights: &TermWeights,
    label_smoothing: f64,
) -> Losses {
    let (targets, teacher) = (&batch.targets, batch.teacher.as_ref());
    let none = || targets.weight.zeros_like();
    let logits = targets.masked(outputs.policy());
    let of = |output, loss: &dyn Fn(&Tensor) -> Tensor| outputs.get(output).map_or_else(none, loss);
    let short_term = targets.short_term.nan_to_num(0.0, None, None);
    let q = targets.q.nan_to_num(0.0, None, None);
    let [q, q_categorical, q_error] = reward(
        outputs,
        [Output::Q, Output::QCategorical, Output::QError],
        &q,
    )
    .map(|loss| loss.unwrap_or_else(none));
    let [st, st_categorical, st_error] = reward(
        outputs,
        [
            Output::ShortTerm,
            Output::ShortTermCategorical,
            Output::ShortTermError,
        ],
        &short_term,
    )
    .map(|loss| loss.unwrap_or_else(none));
    let result = targets.result.clamp_min(0);
    let right = |logits: &Tensor, target: &Tensor| {
        logits
            .argmax(-1, false)
            .eq_tensor(target)
            .to_kind(Kind::Float)
    };
    let values = [
        cross_entropy(&logits, &smoothed(targets, label_smoothing)),
        of(Output::PolicySoft, &|soft| {
            let flattened = targets.policy.pow_tensor_scalar(1.0 / SOFT_TEMPERATURE);
            let target = &flattened / sum(&flattened).unsqueeze(1).clamp_min(1e-6);
            cross_entropy(&targets.masked(soft), &target)
        }),
        of(Output::PolicyOptimistic, &|optimistic| {
            let loss = cross_entropy(&targets.masked(optimistic), &targets.policy);
            surprise(outputs, &short_term).map_or_else(none, |surprise| loss * surprise)
        }),
        classification(outputs.wdl(), &result),
        q,
        q_categorical,
        q_error,
        st,
        st_categorical,
        st_error,
        of(Output::MovesLeft, &|plies| {
            moves_left(plies, &targets.moves_left)
        }),
        teacher.map_or_else(none, |teacher| {
            let cooled = &logits / weights.temperature;
            cross_entropy(&cooled, &teacher.policy)
        }),
        teacher.map_or_else(none, |teacher| cross_entropy(outputs.wdl(), &teacher.wdl)),
        match teacher.and_then(|teacher| teacher.q.as_ref()) {
            Some(q) => of(Output::Q, &|scalar| (scalar - q).square()),
            None => none(),
        },
        right(&logits, &targets.policy.argmax(-1, false)),
        right(outputs.wdl(), &result),
    ];
    // A loss of weight 0 needs no gradient.
    let values: Vec<Tensor> = values
        .into_iter()
        .zip(weights.values)
        .map(|(value, weight)| if weight == 0.0 { value.detach() } else { value })
        .collect();
    let weighted = Tensor::stack(&values, 0) * &batch.loss_weights;
    let sums = sum(&weighted);
    let averages = &sums / batch.target_weight.clamp_min(1e-6);
    Losses {
        total: (averages * &weights.tensor).sum(Kind::Float),
        sums: sums.detach(),
    }
}

/// Sums along the last dimension, f32.
fn sum(tensor: &Tensor) -> Tensor {
    tensor.sum_dim_intlist([-1i64].as_slice(), false, Kind::Float)
}

/// Of probabilities [B, n] and logits [B, n], `[B]`.
fn cross_entropy(logits: &Tensor, target: &Tensor) -> Tensor {
    -sum(&(target * logits.log_softmax(-1, None::<Kind>)))
}

/// Cross-entropy of logits [B, n] with classes i64 `[B]`.
fn classification(logits: &Tensor, class: &Tensor) -> Tensor {
    logits.cross_entropy_loss::<Tensor>(class, None, Reduction::None, -100, 0.0)
}

/// The policy's target with a share of it spread over all legal moves.
fn smoothed(targets: &Targets, share: f64) -> Tensor {
    if share == 0.0 {
        return targets.policy.shallow_clone();
    }
    let legal = targets.legal.to_kind(Kind::Float);
    let even = &legal / sum(&legal).unsqueeze(1).clamp_min(1.0);
    &targets.policy * (1.0 - share) + even * share
}

/// Weights of the optimistic policy's loss: how far the short-term value exceeded
/// its prediction, from 0 to 1. None of a network without that prediction and its
/// error.
fn surprise(outputs: &Outputs, short_term: &Tensor) -> Option<Tensor> {
    let predicted = outputs.get(Output::ShortTerm)?.detach();
    let error = outputs.get(Output::ShortTermError)?.detach();
    let deviation = (error + OPTIMISM_VARIANCE).sqrt();
    let deviations = (short_term - predicted) / deviation;
    Some(((deviations - OPTIMISM_DEVIATIONS) * OPTIMISM_SHARPNESS).sigmoid())
}

/// Huber loss of plies, some of which are NaN.
fn moves_left(plies: &Tensor, target: &Tensor) -> Tensor {
    let target = target.nan_to_num(0.0, None, None);
    (plies / MOVES_LEFT_UNIT).huber_loss(
        &(target / MOVES_LEFT_UNIT),
        Reduction::None,
        MOVES_LEFT_DELTA / MOVES_LEFT_UNIT,
    )
}

/// The losses of a reward head's outputs: of the reward, its bucket and its
/// expected error, where the network has them.
fn reward(outputs: &Outputs, names: [Output; 3], target: &Tensor) -> [Option<Tensor>; 3] {
    let [scalar, categorical, error] = names.map(|output| outputs.get(output));
    let squared = scalar.map(|scalar| (scalar - target).square());
    let categorical = categorical.map(|logits| {
        let bucket = bucket_of(target, logits.size()[1]);
        classification(logits, &bucket)
    });
    // The prediction must not be bent to make its error predictable.
    let error = error
        .zip(squared.as_ref())
        .map(|(error, squared)| (error - squared.detach()).square());
    [squared, categorical, error]
}

#[cfg(test)]
mod tests;
