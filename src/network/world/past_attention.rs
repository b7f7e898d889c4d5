//! Attention to the past, in which each square, or a board's single token, attends to itself in
//! earlier steps.

use super::past::Past;
use crate::network::layers::{Linear, Norm};
use crate::network::parameters::{Builder, Dense, Initial, Slot, Weights};
use crate::network::size::Part;
use tch::{Kind, Tensor};

/// Epsilon of the norm.
const EPSILON: f64 = 1e-5;

/// Attention of each square to itself in the new step and in earlier steps. There are few steps, so
/// elementwise products are faster than matrix multiplications.
#[derive(Debug)]
pub(super) struct PastAttention {
    heads: i64,
    norm: Norm,
    /// The projection to queries, keys and values.
    projection: Linear,
    /// [context, heads]: the bias for a step, indexed by the step's age. The new step has age 0.
    age: Slot,
    output: Linear,
}

impl PastAttention {
    /// Adds the block's parameters. Initially, the block adds nothing to its input.
    pub fn build(builder: &mut Builder, width: i64, heads: i64, context: i64) -> PastAttention {
        let dense = |output| Dense::per_token(width, output).without_bias();
        PastAttention {
            heads,
            norm: builder.norm("norm", width, true, EPSILON),
            projection: builder.linear("qkv", dense(3 * width), Part::Main),
            age: builder.add("age", &[context, heads], Initial::Zeros),
            output: builder.linear("output", dense(width).with_gain(0.0), Part::Main),
        }
    }

    /// Computes attention for squares [B, squares, width]. The keys and values of the new step are
    /// appended to the block's past.
    pub fn forward(&self, weights: &Weights, x: &Tensor, past: &mut Past, block: usize) -> Tensor {
        let joint = self
            .projection
            .forward(weights, &self.norm.forward(weights, x));
        let parts = joint.unflatten(-1, [3, self.heads, -1]).unbind(2);
        let [query, key, value]: [Tensor; 3] = parts.try_into().expect("three were joined");
        let new = [key, value].map(|part| part.unsqueeze(2));
        let absent = past.absent();
        let [keys, values] = past.extend(block, new);
        let scale = 1.0 / (query.size()[3] as f64).sqrt();
        let sum = |tensor: Tensor, axis: i64| {
            tensor.sum_dim_intlist([axis].as_slice(), false, None::<Kind>)
        };
        let products = sum(query.unsqueeze(2) * keys, -1) * scale;
        // The count is computed from a tensor, because a constant would restrict a trace to one
        // number of steps.
        let count = keys.select(4, 0).select(3, 0).select(1, 0).select(0, 0);
        let age = (count.ones_like().cumsum(0, Kind::Int64) - 1).flip([0]);
        let worth = weights[self.age].index_select(0, &age);
        let mut logits = products + worth;
        if let Some(absent) = absent {
            logits = logits.masked_fill(&absent, f64::NEG_INFINITY);
        }
        let shares = logits.softmax(2, None::<Kind>);
        let seen = sum(shares.unsqueeze(-1) * values, 2);
        self.output.forward(weights, &seen.flatten(2, 3))
    }
}
