//! The terms of a batch as sums and means.

use super::objective::Term;
use super::prepared_batch::PreparedBatch;
use tch::{Device, Kind, Tensor};

/// The losses of a batch.
#[derive(Debug)]
pub(super) struct Losses {
    /// The weighted sum of the averages, f32 [].
    pub total: Tensor,
    /// Of each term, the sum over the samples of value times weight, f32 `[L]`,
    /// without gradient.
    pub sums: Tensor,
}

impl Losses {
    /// The losses of a batch whose terms have these values, L tensors f32 `[B]`. Each
    /// term is a weighted mean over the samples that have its target; other samples
    /// do not dilute it.
    pub fn of<S>(values: Vec<Tensor>, weights: &TermWeights, batch: &PreparedBatch<S>) -> Losses {
        // A loss of weight 0 needs no gradient.
        let values: Vec<Tensor> = values
            .into_iter()
            .zip(&weights.values)
            .map(|(value, &weight)| if weight == 0.0 { value.detach() } else { value })
            .collect();
        let weighted = Tensor::stack(&values, 0) * &batch.loss_weights;
        let sums = weighted.sum_dim_intlist([1i64].as_slice(), false, Kind::Float);
        let averages = &sums / batch.target_weight.clamp_min(1e-6);
        Losses {
            total: (averages * &weights.tensor).sum(Kind::Float),
            sums: sums.detach(),
        }
    }

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

/// The weight of each term in the total.
#[derive(Debug)]
pub(super) struct TermWeights {
    values: Vec<f64>,
    /// The same as a tensor, f32 `[L]`.
    tensor: Tensor,
}

impl TermWeights {
    pub fn new(terms: &[Term], device: Device) -> TermWeights {
        let values: Vec<f64> = terms.iter().map(|term| term.weight).collect();
        let numbers: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        TermWeights {
            tensor: Tensor::from_slice(&numbers).to_device(device),
            values,
        }
    }
}
