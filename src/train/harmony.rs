//! Balances groups of losses, as in HarmonyDream (Ma et al. 2024).
//!
//! In the rectified form of that paper, a group i of terms whose weighted losses sum to L_i
//! contributes L_i / σ_i + log(1 + σ_i) to the total loss, and the scale σ_i is learned with the
//! network. Here, σ_i is computed instead: it minimizes the contribution if L_i equals its
//! exponential mean L over all previous steps, which gives σ = (L + √(L² + 4 L)) / 2. All replicas
//! and processes therefore use the same scale in a step. Checkpoints store the means. The logarithm
//! does not affect the network's gradient and is omitted from the total.

use super::distributed::{GroupError, World};
use super::objective::{Group, Term};
use serde_json::{Map, Value, json};
use tch::{Device, Kind, Tensor};

/// Decay of a running mean per step.
const KEPT: f64 = 0.99;

/// Initial value of the means. It gives a scale of 1, as at the start in HarmonyDream.
const START: f64 = 0.5;

/// Lower bound of the means.
const LEAST: f64 = 1e-6;

/// The scales of G groups of L terms.
#[derive(Debug)]
pub(super) struct Harmony {
    names: Vec<&'static str>,
    /// Marks the terms of each group, f32 [G, L]: 1 or 0.
    members: Tensor,
    /// The terms' weights, f32 `[L]`.
    weights: Tensor,
    /// The mean loss of each group, f32 `[G]`.
    means: Tensor,
}

impl Harmony {
    /// Returns the scales of these groups, or `None` if the list is empty.
    pub fn new(groups: &[Group], terms: &[Term], device: Device) -> Option<Harmony> {
        if groups.is_empty() {
            return None;
        }
        let members = groups.iter().flat_map(|group| {
            let is_member = |term: &Term| f32::from(u8::from(group.terms.contains(&term.name)));
            terms.iter().map(is_member)
        });
        let members: Vec<f32> = members.collect();
        let weights: Vec<f32> = terms.iter().map(|term| term.weight as f32).collect();
        let count = groups.len() as i64;
        Some(Harmony {
            names: groups.iter().map(|group| group.name).collect(),
            members: Tensor::from_slice(&members)
                .view([count, -1])
                .to_device(device),
            weights: Tensor::from_slice(&weights).to_device(device),
            means: Tensor::full([count], START, (Kind::Float, device)),
        })
    }

    /// Returns the scale σ of each group, f32 `[G]`.
    fn sigma(&self) -> Tensor {
        let loss = self.means.clamp_min(LEAST);
        ((loss.square() + &loss * 4.0).sqrt() + &loss) * 0.5
    }

    /// Returns the scale σ of each group by name, for the metrics.
    pub fn scales(&self) -> Map<String, Value> {
        let scales = self.names.iter().zip(numbers(&self.sigma()));
        scales
            .map(|(name, scale)| ((*name).to_owned(), json!(scale)))
            .collect()
    }

    /// Returns the factor for each term's weight, f32 `[L]`: 1 / σ of the term's group, or 1 if the
    /// term belongs to no group.
    pub fn factors(&self) -> Tensor {
        let of_groups = self.members.transpose(0, 1).mv(&self.sigma().reciprocal());
        let has_group = self
            .members
            .sum_dim_intlist([0i64].as_slice(), false, Kind::Float);
        of_groups + (1.0 - has_group)
    }

    /// Updates the means with the losses of a step. `sums` contains each term's weighted sum over
    /// the samples of this process, and `target_weight` the total weight of those samples, both f32
    /// `[L]`. If no sample has a target for any term of a group, the group's mean does not change.
    ///
    /// # Errors
    /// [`GroupError`] if another process is gone.
    pub fn learn(
        &mut self,
        sums: &Tensor,
        target_weight: &Tensor,
        world: &World,
    ) -> Result<(), GroupError> {
        let _guard = tch::no_grad_guard();
        let both = Tensor::stack(&[sums, target_weight], 0);
        world.sum(&both, "summing losses to balance")?;
        let (sums, target_weight) = (both.get(0), both.get(1));
        let averages = sums / target_weight.clamp_min(1e-6);
        let found = self.members.mv(&(averages * &self.weights));
        let is_known = self.members.mv(&target_weight).gt(0.0);
        let moved = self.means.lerp(&found, 1.0 - KEPT);
        self.means = moved.where_self(&is_known, &self.means);
        Ok(())
    }

    /// Returns the means, for a checkpoint.
    pub fn means(&self) -> Vec<f64> {
        numbers(&self.means)
    }

    /// Restores the means from a checkpoint. If the number of groups has changed, all means start
    /// at their initial value.
    pub fn restore(&mut self, means: &[f64]) {
        let device = self.means.device();
        self.means = match means.len() as i64 == self.means.size()[0] {
            true => Tensor::from_slice(means)
                .to_kind(Kind::Float)
                .to_device(device),
            false => Tensor::full_like(&self.means, START),
        };
    }
}

/// Returns the elements of a vector.
fn numbers(vector: &Tensor) -> Vec<f64> {
    let vector = vector.to_device(Device::Cpu).to_kind(Kind::Double);
    Vec::try_from(vector).expect("a vector of floats")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harmony() -> Harmony {
        let terms = [
            ("policy", 1.0),
            ("q", 0.5),
            ("board", 0.1),
            ("free", 3.0),
            ("accuracy", 0.0),
        ];
        let terms = terms.map(|(name, weight)| Term { name, weight });
        let groups = [
            ("heads", vec!["policy", "q", "accuracy"]),
            ("rules", vec!["board"]),
        ];
        let groups = groups.map(|(name, terms)| Group { name, terms });
        assert!(Harmony::new(&[], &terms, Device::Cpu).is_none());
        Harmony::new(&groups, &terms, Device::Cpu).unwrap()
    }

    fn learn(harmony: &mut Harmony, sums: [f32; 5], weights: [f32; 5]) {
        let [sums, weights] = [sums, weights].map(|it| Tensor::from_slice(&it));
        harmony.learn(&sums, &weights, &World::alone()).unwrap();
    }

    fn near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            let off = (found - expected).abs();
            assert!(off < 1e-4 * expected.abs(), "{found}, not {expected}");
        }
    }

    #[test]
    fn scales_make_the_papers_sum_least() {
        let mut harmony = harmony();
        near(&numbers(&harmony.sigma()), &[1.0, 1.0]);
        let names: Vec<String> = harmony.scales().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["heads", "rules"]);
        for means in [[0.01, 0.1], [0.5, 1.0], [3.0, 200.0]] {
            harmony.restore(&means);
            for (loss, scale) in means.into_iter().zip(numbers(&harmony.sigma())) {
                let sum = |scale: f64| loss / scale + (1.0 + scale).ln();
                assert!(sum(scale) < sum(scale * 1.01), "{loss} {scale}");
                assert!(sum(scale) < sum(scale / 1.01), "{loss} {scale}");
            }
            let [one, other] = numbers(&harmony.sigma()).try_into().unwrap();
            let factors = numbers(&harmony.factors());
            let (one, other) = (1.0 / one, 1.0 / other);
            near(&factors, &[one, one, other, 1.0, one]);
        }
    }

    #[test]
    fn means_follow_the_weighted_losses_of_their_groups() {
        let mut harmony = harmony();
        // The mean losses are 3 for the policy, 4 for q and 20 for the board.
        let (sums, weights) = ([6.0, 4.0, 40.0, 9.0, 7.0], [2.0, 1.0, 2.0, 1.0, 1.0]);
        learn(&mut harmony, sums, weights);
        let moved = |mean: f64, loss: f64| mean + (loss - mean) * (1.0 - KEPT);
        let expected = [moved(START, 3.0 + 0.5 * 4.0), moved(START, 0.1 * 20.0)];
        near(&harmony.means(), &expected);
        // The board has no targets in this step.
        learn(
            &mut harmony,
            [6.0, 0.0, 0.0, 0.0, 0.0],
            [2.0, 0.0, 0.0, 0.0, 1.0],
        );
        let expected = [moved(expected[0], 3.0), expected[1]];
        near(&harmony.means(), &expected);
        for _ in 0..2000 {
            learn(&mut harmony, sums, weights);
        }
        near(&harmony.means(), &[5.0, 2.0]);
    }

    #[test]
    fn restored_means_continue_bit_for_bit() {
        let step = |harmony: &mut Harmony, number: i32| {
            let loss = (number as f32).sin() + 1.5;
            learn(harmony, [loss, 0.3, loss, 1.0, 1.0], [1.3; 5]);
        };
        let mut whole = harmony();
        (0..9).for_each(|number| step(&mut whole, number));
        let mut first = harmony();
        (0..4).for_each(|number| step(&mut first, number));
        let kept = serde_json::to_string(&first.means()).unwrap();
        let mut second = harmony();
        second.restore(&serde_json::from_str::<Vec<f64>>(&kept).unwrap());
        (4..9).for_each(|number| step(&mut second, number));
        assert_eq!(whole.means(), second.means());
        // A checkpoint without means starts over.
        second.restore(&[]);
        assert_eq!(second.means(), harmony().means());
    }
}
