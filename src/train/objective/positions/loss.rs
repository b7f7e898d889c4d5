//! The losses in the appendix of the Chessformer paper, Lc0's moves-left loss, and the losses for
//! distillation from a teacher.

use super::teacher::TeacherOutputs;
use super::tensors::Targets;
use crate::network::chessformer::bucket_of;
use crate::network::{Output, OutputSet, Outputs};
use crate::train::config::{DistillationConfig, LossWeights};
use crate::train::objective::{Term, classification, hits, sum};
use tch::{Kind, Reduction, Tensor};

/// Temperature of the softened policy.
const SOFT_TEMPERATURE: f64 = 4.0;

/// Unit of the moves-left loss in plies.
const MOVES_LEFT_UNIT: f64 = 20.0;

/// Error in plies above which the moves-left loss is linear.
const MOVES_LEFT_DELTA: f64 = 10.0;

/// The definition of one term.
struct Row {
    name: &'static str,
    /// The network output that the term measures.
    output: Output,
    /// The term's weight in the total loss; 0 for an accuracy.
    weight: fn(&LossWeights, Option<&DistillationConfig>) -> f64,
    /// The weight of each sample that has the term's target, f32 `[B]`.
    known: fn(&Known) -> &Tensor,
    /// The term's value for each sample, f32 `[B]`; `None` if an input is missing.
    value: fn(&Reading) -> Option<Tensor>,
}

/// The definitions of all terms.
const ROWS: [Row; 15] = [
    Row {
        name: "policy",
        output: Output::Policy,
        weight: |loss, _| loss.policy,
        known: |known| &known.policy,
        value: |it| {
            let target = smoothed(it.targets, it.softening.labels);
            Some(cross_entropy(&it.logits, &target))
        },
    },
    Row {
        name: "policy_soft",
        output: Output::PolicySoft,
        weight: |loss, _| loss.policy_soft,
        known: |known| &known.several,
        value: |it| {
            let soft = it.outputs.get(Output::PolicySoft)?;
            let flattened = it.targets.policy.pow_tensor_scalar(1.0 / SOFT_TEMPERATURE);
            let target = &flattened / sum(&flattened).unsqueeze(1).clamp_min(1e-6);
            Some(cross_entropy(&it.targets.masked(soft), &target))
        },
    },
    Row {
        name: "result",
        output: Output::Wdl,
        weight: |loss, _| loss.result,
        known: |known| &known.result,
        value: |it| Some(classification(it.outputs.wdl(), &it.result)),
    },
    Row {
        name: "q",
        output: Output::Q,
        weight: |loss, _| loss.q,
        known: |known| &known.q,
        value: |it| it.q.scalar.as_ref().map(Tensor::shallow_clone),
    },
    Row {
        name: "q_categorical",
        output: Output::QCategorical,
        weight: |loss, _| loss.q_categorical,
        known: |known| &known.q,
        value: |it| it.q.categorical.as_ref().map(Tensor::shallow_clone),
    },
    Row {
        name: "q_error",
        output: Output::QError,
        weight: |loss, _| loss.q_error,
        known: |known| &known.q,
        value: |it| it.q.error.as_ref().map(Tensor::shallow_clone),
    },
    Row {
        name: "short_term",
        output: Output::ShortTerm,
        weight: |loss, _| loss.short_term,
        known: |known| &known.short_term,
        value: |it| it.short_term.scalar.as_ref().map(Tensor::shallow_clone),
    },
    Row {
        name: "short_term_categorical",
        output: Output::ShortTermCategorical,
        weight: |loss, _| loss.short_term_categorical,
        known: |known| &known.short_term,
        value: |it| {
            it.short_term
                .categorical
                .as_ref()
                .map(Tensor::shallow_clone)
        },
    },
    Row {
        name: "short_term_error",
        output: Output::ShortTermError,
        weight: |loss, _| loss.short_term_error,
        known: |known| &known.short_term,
        value: |it| it.short_term.error.as_ref().map(Tensor::shallow_clone),
    },
    Row {
        name: "moves_left",
        output: Output::MovesLeft,
        weight: |loss, _| loss.moves_left,
        known: |known| &known.moves_left,
        value: |it| {
            let plies = it.outputs.get(Output::MovesLeft)?;
            Some(moves_left(plies, &it.targets.moves_left))
        },
    },
    Row {
        name: "teacher_policy",
        output: Output::Policy,
        // At temperature t, gradients shrink by a factor of t².
        weight: |_, teacher| {
            teacher.map_or(0.0, |teacher| teacher.policy * teacher.temperature.powi(2))
        },
        known: |known| &known.teacher,
        value: |it| {
            let teacher = it.teacher?;
            let cooled = &it.logits / it.softening.temperature;
            Some(cross_entropy(&cooled, &teacher.policy))
        },
    },
    Row {
        name: "teacher_result",
        output: Output::Wdl,
        weight: |_, teacher| teacher.map_or(0.0, |teacher| teacher.result),
        known: |known| &known.teacher,
        value: |it| Some(cross_entropy(it.outputs.wdl(), &it.teacher?.wdl)),
    },
    Row {
        name: "teacher_q",
        output: Output::Q,
        weight: |_, teacher| teacher.map_or(0.0, |teacher| teacher.q),
        known: |known| &known.teacher_q,
        value: |it| {
            let target = it.teacher?.q.as_ref()?;
            Some((it.outputs.get(Output::Q)? - target).square())
        },
    },
    Row {
        name: "policy_accuracy",
        output: Output::Policy,
        weight: |_, _| 0.0,
        known: |known| &known.policy,
        value: |it| Some(hits(&it.logits, &it.targets.policy.argmax(-1, false))),
    },
    Row {
        name: "result_accuracy",
        output: Output::Wdl,
        weight: |_, _| 0.0,
        known: |known| &known.result,
        value: |it| Some(hits(it.outputs.wdl(), &it.result)),
    },
];

/// Returns the terms with their weights in the total loss.
pub(in crate::train::objective) fn terms(
    loss: &LossWeights,
    teacher: Option<&DistillationConfig>,
) -> Vec<Term> {
    let term = |row: &Row| Term {
        name: row.name,
        weight: (row.weight)(loss, teacher),
    };
    ROWS.iter().map(term).collect()
}

/// Settings for softening targets and logits.
#[derive(Clone, Copy, Debug)]
pub(in crate::train::objective) struct Softening {
    /// Share of the policy target that is spread evenly over all legal moves.
    labels: f64,
    /// Temperature at which the policy is compared with the teacher's.
    temperature: f64,
}

impl Softening {
    pub fn of(loss: &LossWeights, teacher: Option<&DistillationConfig>) -> Softening {
        Softening {
            labels: loss.label_smoothing,
            temperature: teacher.map_or(1.0, |teacher| teacher.temperature),
        }
    }
}

/// For each kind of target, the weight of each sample that has the target, and 0 for the others,
/// f32 `[B]`.
struct Known {
    policy: Tensor,
    /// Policy targets with several moves; a temperature cannot soften a target with a single move.
    several: Tensor,
    result: Tensor,
    q: Tensor,
    short_term: Tensor,
    moves_left: Tensor,
    teacher: Tensor,
    teacher_q: Tensor,
}

impl Known {
    fn of(targets: &Targets, teacher: Option<&TeacherOutputs>) -> Known {
        let weight = &targets.weight;
        let where_true = |condition: &Tensor| weight * condition.to_kind(Kind::Float);
        let known = |target: &Tensor| where_true(&target.isnan().logical_not());
        let given = |is_given: bool| match is_given {
            true => weight.shallow_clone(),
            false => weight.zeros_like(),
        };
        let policy = where_true(&sum(&targets.policy).gt(0.5));
        let several = sum(&targets.policy.gt(0.0)).gt(1.5).to_kind(Kind::Float);
        Known {
            several: &policy * several,
            policy,
            result: where_true(&targets.result.ge(0)),
            q: known(&targets.q),
            short_term: known(&targets.short_term),
            moves_left: known(&targets.moves_left),
            teacher: given(teacher.is_some()),
            teacher_q: given(teacher.is_some_and(|teacher| teacher.q.is_some())),
        }
    }
}

/// Returns each sample's weight in each term, f32 [15, B], which is 0 if the sample lacks the
/// target or the network lacks the output.
pub(in crate::train::objective) fn loss_weights(
    targets: &Targets,
    teacher: Option<&TeacherOutputs>,
    outputs: OutputSet,
) -> Tensor {
    let known = Known::of(targets, teacher);
    let none = targets.weight.zeros_like();
    let rows = ROWS.iter().map(|row| match outputs.contains(row.output) {
        true => (row.known)(&known),
        false => &none,
    });
    Tensor::stack(&rows.collect::<Vec<_>>(), 0)
}

/// A batch with its outputs, and intermediate values that several terms use.
struct Reading<'a> {
    outputs: &'a Outputs,
    targets: &'a Targets,
    teacher: Option<&'a TeacherOutputs>,
    softening: Softening,
    /// Policy logits with illegal moves masked.
    logits: Tensor,
    /// The class of the result, or class 0 for samples without a result.
    result: Tensor,
    q: Reward,
    short_term: Reward,
}

/// Returns each term for each sample, as 15 tensors f32 `[B]`.
pub(in crate::train::objective) fn values(
    outputs: &Outputs,
    targets: &Targets,
    teacher: Option<&TeacherOutputs>,
    softening: Softening,
) -> Vec<Tensor> {
    let reading = Reading {
        logits: targets.masked(outputs.policy()),
        q: Reward::of(
            outputs,
            [Output::Q, Output::QCategorical, Output::QError],
            &targets.q,
        ),
        short_term: Reward::of(
            outputs,
            [
                Output::ShortTerm,
                Output::ShortTermCategorical,
                Output::ShortTermError,
            ],
            &targets.short_term,
        ),
        result: targets.result.clamp_min(0),
        outputs,
        targets,
        teacher,
        softening,
    };
    let value = |row: &Row| (row.value)(&reading).unwrap_or_else(|| targets.weight.zeros_like());
    ROWS.iter().map(value).collect()
}

/// Returns the cross-entropy `[B]` of logits [B, n] with probabilities [B, n].
fn cross_entropy(logits: &Tensor, target: &Tensor) -> Tensor {
    -sum(&(target * logits.log_softmax(-1, None::<Kind>)))
}

/// Returns the policy target, with a share spread over all legal moves.
fn smoothed(targets: &Targets, share: f64) -> Tensor {
    if share == 0.0 {
        return targets.policy.shallow_clone();
    }
    let legal = targets.legal.to_kind(Kind::Float);
    let even = &legal / sum(&legal).unsqueeze(1).clamp_min(1.0);
    &targets.policy * (1.0 - share) + even * share
}

/// Returns the Huber loss in plies; targets may be NaN.
fn moves_left(plies: &Tensor, target: &Tensor) -> Tensor {
    let target = target.nan_to_num(0.0, None, None);
    (plies / MOVES_LEFT_UNIT).huber_loss(
        &(target / MOVES_LEFT_UNIT),
        Reduction::None,
        MOVES_LEFT_DELTA / MOVES_LEFT_UNIT,
    )
}

/// The losses of a value head's outputs, if the network has them.
struct Reward {
    /// The loss of the value itself.
    scalar: Option<Tensor>,
    /// The loss of the value's bucket.
    categorical: Option<Tensor>,
    /// The loss of the value's predicted error.
    error: Option<Tensor>,
}

impl Reward {
    /// Returns the losses of these outputs; the target of a sample may be NaN.
    fn of(outputs: &Outputs, names: [Output; 3], target: &Tensor) -> Reward {
        let target = target.nan_to_num(0.0, None, None);
        let [scalar, categorical, error] = names.map(|output| outputs.get(output));
        let squared = scalar.map(|scalar| (scalar - &target).square());
        Reward {
            categorical: categorical.map(|logits| {
                let bucket = bucket_of(&target, logits.size()[1]);
                classification(logits, &bucket)
            }),
            // Detached, so that training does not make predictions worse to make their error easier
            // to predict.
            error: error
                .zip(squared.as_ref())
                .map(|(error, squared)| (error - squared.detach()).square()),
            scalar: squared,
        }
    }
}

#[cfg(test)]
mod tests;
