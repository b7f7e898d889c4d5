//! Tests that operators reject inconsistent tensors, which would make kernels access memory out of
//! bounds.

use super::*;
use crate::encode::{POLICY_SIZE, WIDTH};
use std::panic::{AssertUnwindSafe, catch_unwind};

const BOARDS: i64 = 3;
const WIDE: i64 = 64;
const HEADS: i64 = 2;
const HIDDEN: i64 = 32;
const COMPRESS: i64 = 4;
const GENERATED: i64 = 32;
const ASKED: i64 = HEADS * GENERATED;

fn zeros(shape: &[i64]) -> Tensor {
    Tensor::zeros(shape, (Kind::Float, Device::Cpu))
}

fn whole_numbers(shape: &[i64], kind: Kind) -> Tensor {
    Tensor::zeros(shape, (kind, Device::Cpu))
}

fn all_zeros(shapes: &[&[i64]]) -> Vec<Tensor> {
    shapes.iter().map(|shape| zeros(shape)).collect()
}

/// Returns variants of a tensor: one with another size for each dimension, and one in another
/// dtype.
fn misfits(tensor: &Tensor) -> Vec<Tensor> {
    let mut misfits = Vec::new();
    for (axis, &size) in tensor.size().iter().enumerate() {
        let axis = axis as i64;
        misfits.push(tensor.narrow(axis, 0, size - 1));
        misfits.push(Tensor::cat(&[tensor, &tensor.narrow(axis, 0, 1)], axis));
    }
    let other = match tensor.kind() {
        Kind::Float => Kind::Double,
        _ => Kind::Int,
    };
    misfits.push(tensor.to_kind(other));
    misfits
}

/// Runs an operator on valid inputs, then replaces each input in turn by an invalid one. `is_fit`
/// receives the index of the input and the replacement, and returns whether the replacement is
/// valid after all.
fn refuses_misfits(
    operator: &dyn Fn(&[Tensor]),
    inputs: &[Tensor],
    is_fit: impl Fn(usize, &Tensor) -> bool,
) {
    // Without kernels, operators reject all inputs.
    let has_kernels = is_available(&zeros(&[1]), &[WIDE]);
    let refused = |inputs: &[Tensor]| catch_unwind(AssertUnwindSafe(|| operator(inputs))).is_err();
    assert_eq!(refused(inputs), !has_kernels);
    for (number, input) in inputs.iter().enumerate() {
        for misfit in misfits(input) {
            let mut changed: Vec<Tensor> = inputs.iter().map(Tensor::shallow_clone).collect();
            let shape = format!("input {number}: {:?} {misfit:?}", misfit.kind());
            let is_fit = has_kernels && is_fit(number, &misfit);
            changed[number] = misfit;
            assert_eq!(refused(&changed), !is_fit, "{shape}");
        }
    }
}

/// Returns whether only the number of boards differs.
fn of_other_boards(number: usize, misfit: &Tensor) -> bool {
    number == 0 && misfit.kind() == Kind::Float && misfit.size()[1..] == [64, WIDE]
}

fn dense(inputs: &[Tensor], weight: usize) -> Dense<'_> {
    Dense {
        weight: &inputs[weight],
        bias: &inputs[weight + 1],
    }
}

fn norm(inputs: &[Tensor], weight: usize) -> NormEnd<'_> {
    NormEnd {
        gain: 1.0,
        epsilon: 1e-5,
        weight: &inputs[weight],
        bias: Some(&inputs[weight + 1]),
    }
}

fn attend(inputs: &[Tensor], heads: i64) {
    let gab_norm = |weight: usize| (&inputs[weight], &inputs[weight + 1]);
    let block = Attention {
        heads,
        query_key: &inputs[1],
        value: &inputs[2],
        output: dense(inputs, 3),
        attacks: Some((&inputs[5], &inputs[6])),
        gab: Gab {
            squares: &inputs[7],
            summary: dense(inputs, 8),
            summary_norm: gab_norm(10),
            heads: dense(inputs, 12),
            heads_norm: gab_norm(14),
            epsilon: 1e-5,
            generator: &inputs[16],
        },
        norm: norm(inputs, 17),
    };
    let _ = block.forward(&inputs[0]);
}

#[test]
fn attention_refuses_what_does_not_fit() {
    let mut inputs = all_zeros(&[
        &[BOARDS, 64, WIDE],
        &[2 * WIDE, WIDE],
        &[WIDE, WIDE],
        &[WIDE, WIDE],
        &[WIDE],
        &[],
        &[HEADS, 2],
        &[COMPRESS, WIDE],
        &[HIDDEN, 64 * COMPRESS],
        &[HIDDEN],
        &[HIDDEN],
        &[HIDDEN],
        &[ASKED, HIDDEN],
        &[ASKED],
        &[ASKED],
        &[ASKED],
        &[4096, GENERATED],
        &[WIDE],
        &[WIDE],
    ]);
    inputs[5] = whole_numbers(&[BOARDS, 2, 64], Kind::Int64);
    refuses_misfits(&|inputs| attend(inputs, HEADS), &inputs, |_, _| false);
    for heads in [0, -1, 3, 4, WIDE, i64::MAX, i64::MIN] {
        let run = || attend(&inputs, heads);
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "{heads}");
    }
}

#[test]
fn the_feed_forward_refuses_what_does_not_fit() {
    let operator = |inputs: &[Tensor]| {
        let block = FeedForward {
            widen: dense(inputs, 1),
            narrow: dense(inputs, 3),
            norm: norm(inputs, 5),
        };
        let _ = block.forward(&inputs[0]);
    };
    let inputs = all_zeros(&[
        &[BOARDS, 64, WIDE],
        &[96, WIDE],
        &[96],
        &[WIDE, 96],
        &[WIDE],
        &[WIDE],
        &[WIDE],
    ]);
    refuses_misfits(&operator, &inputs, of_other_boards);
}

#[test]
fn dense_layers_refuse_what_does_not_fit() {
    let operator = |inputs: &[Tensor]| {
        let _ = DenseLayers([dense(inputs, 1), dense(inputs, 3)]).mish(&inputs[0]);
    };
    let inputs = all_zeros(&[&[BOARDS, 64, WIDE], &[5, WIDE], &[5], &[32, WIDE], &[32]]);
    refuses_misfits(&operator, &inputs, of_other_boards);
    // The operator does not support this many layers.
    let run = || DenseLayers([dense(&inputs, 1); 9]).mish(&inputs[0]);
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
}

#[test]
fn the_policy_refuses_what_does_not_fit() {
    let operator = |inputs: &[Tensor]| {
        let head = Policy {
            query: dense(inputs, 1),
            key: dense(inputs, 3),
            promotion: &inputs[5],
            places: &inputs[6],
        };
        let _ = head.forward(&inputs[0]);
    };
    let mut inputs = all_zeros(&[
        &[BOARDS, 64, WIDE],
        &[WIDE, WIDE],
        &[WIDE],
        &[WIDE, WIDE],
        &[WIDE],
        &[3, WIDE],
    ]);
    inputs.push(whole_numbers(&[POLICY_SIZE as i64], Kind::Int64));
    refuses_misfits(&operator, &inputs, of_other_boards);
    for place in [-1, 4096 + 192, i64::MAX] {
        inputs[6] = Tensor::full([POLICY_SIZE as i64], place, (Kind::Int64, Device::Cpu));
        let run = || operator(&inputs);
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "{place}");
    }
}

#[test]
fn the_embedding_refuses_what_does_not_fit() {
    let operator = |inputs: &[Tensor]| {
        let embedding = Embedding {
            dense: dense(inputs, 0),
            multiply: &inputs[2],
            add: &inputs[3],
        };
        let _ = embedding.forward(&features(&inputs[4], Some(&inputs[5]), &inputs[0]));
    };
    let mut inputs = all_zeros(&[&[WIDE, 160], &[WIDE], &[64, WIDE], &[64, WIDE]]);
    inputs.push(whole_numbers(&[BOARDS, WIDTH as i64], Kind::Int64));
    inputs.push(whole_numbers(&[BOARDS, 64, 22], Kind::Uint8));
    // Rows may be longer, and the number of attacker counts may differ.
    refuses_misfits(&operator, &inputs, |number, misfit| match number {
        4 => misfit.kind() == Kind::Int64 && misfit.size()[0] == BOARDS && misfit.size()[1] >= 110,
        5 => misfit.kind() == Kind::Uint8 && misfit.size()[..2] == [BOARDS, 64],
        _ => false,
    });
}

#[test]
fn a_step_of_nadam_refuses_what_does_not_fit() {
    let operator = |inputs: &[Tensor]| {
        let step = Nadam {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            correction: 1.0,
            fresh: 0.1,
            kept: 0.9,
        };
        let [mut mean, mut square, mut direction] =
            [1, 2, 3].map(|number: usize| inputs[number].shallow_clone());
        step.step(&inputs[0], [&mut mean, &mut square, &mut direction]);
    };
    let inputs = all_zeros(&[&[100], &[100], &[100], &[100]]);
    refuses_misfits(&operator, &inputs, |_, _| false);
}
