//! Sums and averages the terms of a batch.

use super::objective::Term;
use super::prepared_batch::PreparedBatch;
use tch::{Device, Kind, Tensor};

/// The losses of a batch.
#[derive(Debug)]
pub(super) struct Losses {
    /// The weighted sum of the terms' averages, f32 [].
    pub total: Tensor,
    /// For each term, the sum of value times weight over the samples, f32 `[L]`, without gradient.
    pub sums: Tensor,
}

impl Losses {
    /// Returns the losses of a batch, given the terms' values as L tensors f32 `[B]`. Each term is
    /// a weighted mean over the samples that have its target, so samples without the target do not
    /// dilute the mean.
    pub fn of<S>(values: Vec<Tensor>, weights: &TermWeights, batch: &PreparedBatch<S>) -> Losses {
        // A loss with weight 0 needs no gradient.
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

    /// Returns a copy without a gradient.
    pub fn detached(&self) -> Losses {
        Losses {
            total: self.total.detach(),
            sums: self.sums.shallow_clone(),
        }
    }

    /// Returns the losses of two parts of a batch combined.
    pub fn plus(&self, other: &Losses) -> Losses {
        Losses {
            total: &self.total + &other.total,
            sums: &self.sums + &other.sums,
        }
    }
}

/// The weight of each term in the total loss.
#[derive(Debug)]
pub(super) struct TermWeights {
    values: Vec<f64>,
    /// The unbalanced weights as a tensor, f32 `[L]`.
    plain: Tensor,
    /// The balanced weights, which are the ones in use.
    tensor: Tensor,
}

impl TermWeights {
    pub fn new(terms: &[Term], device: Device) -> TermWeights {
        let values: Vec<f64> = terms.iter().map(|term| term.weight).collect();
        let numbers: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        let plain = Tensor::from_slice(&numbers).to_device(device);
        TermWeights {
            tensor: plain.shallow_clone(),
            plain,
            values,
        }
    }

    /// Sets the factor by which each term's weight is multiplied, f32 `[L]`.
    pub fn balance(&mut self, factors: &Tensor) {
        self.tensor = &self.plain * factors;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_weights_scale_gradients_and_leave_the_sums() {
        let terms = [("policy", 2.0), ("q", 3.0), ("accuracy", 0.0)];
        let terms = terms.map(|(name, weight)| Term { name, weight });
        let mut weights = TermWeights::new(&terms, Device::Cpu);
        let batch = PreparedBatch::new((), Tensor::ones([3, 2], (Kind::Float, Device::Cpu)));
        let gradient = |weights: &TermWeights| -> (Vec<f32>, Tensor) {
            let leaf = Tensor::ones([3], (Kind::Float, Device::Cpu)).set_requires_grad(true);
            let values = leaf.unbind(0).into_iter();
            let values = values.map(|value| value.expand([2], false)).collect();
            let losses = Losses::of(values, weights, &batch);
            losses.total.backward();
            (Vec::try_from(leaf.grad()).unwrap(), losses.sums)
        };
        let (plain, sums) = gradient(&weights);
        assert_eq!(plain, [2.0, 3.0, 0.0]);
        for factors in [[0.5f32, 2.0, 1.0], [1.0, 4.0, 1.0]] {
            weights.balance(&Tensor::from_slice(&factors));
            let (balanced, same) = gradient(&weights);
            assert_eq!(balanced, [2.0 * factors[0], 3.0 * factors[1], 0.0]);
            assert_eq!(sums, same);
        }
    }
}
